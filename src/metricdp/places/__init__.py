"""Ways to obtain a space: a grid, a road network, and the data that comes with the package."""

from metricdp.places import policies
from metricdp.places.bundled import bundled_roads, bundled_streets, bundled_trips
from metricdp.places.elastic import elastic, scaled
from metricdp.places.folders import CENTERS, data_folder
from metricdp.places.policy import policy
from metricdp.places.protection import ProtectionSets, protection_sets
from metricdp.places.regions import region_scale
from metricdp.places.regular import cell_radius, grid, map_cells, map_shape
from metricdp.places.roads import road_network, travel_time
from metricdp.places.spread import spread_places
from metricdp.places.tree import LocationTree, location_tree

__all__ = [
    "CENTERS",
    "LocationTree",
    "ProtectionSets",
    "bundled_roads",
    "bundled_streets",
    "bundled_trips",
    "cell_radius",
    "data_folder",
    "elastic",
    "grid",
    "location_tree",
    "map_cells",
    "map_shape",
    "policies",
    "policy",
    "protection_sets",
    "region_scale",
    "road_network",
    "scaled",
    "spread_places",
    "travel_time",
]
