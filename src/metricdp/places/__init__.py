"""Ways to obtain a space: a grid, a road network, and the data that comes with the package."""

from metricdp.places import policy_graphs as policy_graphs
from metricdp.places.bundled import bundled_roads as bundled_roads
from metricdp.places.bundled import bundled_streets as bundled_streets
from metricdp.places.bundled import bundled_trips as bundled_trips
from metricdp.places.elastic import elastic as elastic
from metricdp.places.elastic import scaled as scaled
from metricdp.places.folders import BUNDLED_FOLDER as BUNDLED_FOLDER
from metricdp.places.folders import CENTERS as CENTERS
from metricdp.places.folders import data_folder as data_folder
from metricdp.places.policy import policy as policy
from metricdp.places.protection import ProtectionSets as ProtectionSets
from metricdp.places.protection import protection_sets as protection_sets
from metricdp.places.regions import region_scale as region_scale
from metricdp.places.regular import cell_radius as cell_radius
from metricdp.places.regular import grid as grid
from metricdp.places.regular import map_cells as map_cells
from metricdp.places.regular import map_shape as map_shape
from metricdp.places.regular import spread_places as spread_places
from metricdp.places.roads import road_network as road_network
from metricdp.places.roads import travel_time as travel_time
from metricdp.places.tree import LocationTree as LocationTree
from metricdp.places.tree import location_tree as location_tree
