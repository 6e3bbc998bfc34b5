/** The map: streets from this machine, points and circles on it, and a background of one's own. */

import { get } from "./api.js";
import { say } from "./words.js";

const EARTH_METRES = 6371009;
const empty = { type: "FeatureCollection", features: [] };
let loaded;

/** Load the library once; it is the largest part of the page. */
function library() {
  loaded ??= new Promise((resolve, reject) => {
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "vendor/maplibre-gl.css" });
    const script = Object.assign(document.createElement("script"), { src: "vendor/maplibre-gl.js" });
    script.onload = () => resolve(globalThis.maplibregl);
    script.onerror = () => reject(new Error("vendor/maplibre-gl.js"));
    document.head.append(style, script);
  });
  return loaded;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const point = ([lat, lon], properties = {}) => ({ type: "Feature", properties, geometry: { type: "Point", coordinates: [lon, lat] } });
export const points = (places, properties = {}) => ({ type: "FeatureCollection", features: places.map((place) => point(place, properties)) });

/** A circle of so many metres around a place, as a ring of points on the sphere. */
export function circle([lat, lon], radius, properties = {}) {
  const [a, b] = [(lat * Math.PI) / 180, (lon * Math.PI) / 180];
  const angle = radius / EARTH_METRES;
  const ring = Array.from({ length: 97 }, (_, k) => {
    const bearing = (2 * Math.PI * k) / 96;
    const north = Math.asin(Math.sin(a) * Math.cos(angle) + Math.cos(a) * Math.sin(angle) * Math.cos(bearing));
    const east = b + Math.atan2(Math.sin(bearing) * Math.sin(angle) * Math.cos(a), Math.cos(angle) - Math.sin(a) * Math.sin(north));
    return [(east * 180) / Math.PI, (north * 180) / Math.PI];
  });
  return { type: "Feature", properties, geometry: { type: "Polygon", coordinates: [ring] } };
}

const LAYERS = [
  { id: "streets", source: "streets", type: "line", filter: ["==", ["get", "kind"], "street"], paint: { "line-width": ["interpolate", ["linear"], ["zoom"], 11, 0.4, 16, 3] } },
  { id: "areas", source: "areas", type: "fill", paint: { "fill-color": ["get", "colour"], "fill-opacity": 0.1 } },
  { id: "rings", source: "areas", type: "line", paint: { "line-color": ["get", "colour"], "line-width": 2, "line-dasharray": [3, 2] } },
  { id: "links", source: "links", type: "line", paint: { "line-color": ["get", "colour"], "line-width": 2 } },
  { id: "cloud", source: "cloud", type: "circle", paint: { "circle-radius": ["coalesce", ["get", "size"], 3.5], "circle-color": ["get", "colour"], "circle-opacity": ["coalesce", ["get", "opacity"], 0.55] } },
  { id: "places", source: "places", type: "circle", paint: { "circle-radius": 7, "circle-color": ["get", "colour"], "circle-stroke-width": 2, "circle-stroke-color": "#ffffff" } },
];

/**
 * Make a map in an element: `show({cloud, areas, places, links})` replaces what is given, `onPlace` hears clicks and Enter,
 * `fit(places)` brings them into view.
 */
export async function makeMap(element, { centre = [41.1496, -8.611], zoom = 13.2, onPlace = null, label } = {}) {
  const [{ Map: MapLibre, AttributionControl, NavigationControl, LngLatBounds }, streets] = await Promise.all([
    library(), get("/studio/streets"),
  ]);
  const sources = Object.fromEntries(["areas", "links", "cloud", "places", "background"].map((name) => [name, { type: "geojson", data: empty }]));
  sources.streets = { type: "geojson", data: streets, attribution: streets.attribution };
  const background = { id: "land", type: "background", paint: { "background-color": colour("map-land") } };
  const own = [
    { id: "own-areas", source: "background", type: "fill", filter: ["==", ["geometry-type"], "Polygon"], paint: { "fill-color": colour("map-street"), "fill-opacity": 0.25 } },
    { id: "own-lines", source: "background", type: "line", paint: { "line-color": colour("map-street"), "line-width": 1 } },
  ];
  const style = { version: 8, sources, layers: [background, ...own, ...LAYERS] };
  const map = new MapLibre({
    container: element, style, center: [centre[1], centre[0]], zoom, attributionControl: false, dragRotate: false, pitchWithRotate: false,
    canvasContextAttributes: { preserveDrawingBuffer: true }, locale: { "Map.Title": label ?? say("map.label") },
  });
  map.addControl(new AttributionControl({ compact: false }));
  map.addControl(new NavigationControl({ showCompass: false }), "top-right");
  map.touchZoomRotate.disableRotation();
  await new Promise((resolve) => map.once("load", resolve));
  map.setPaintProperty("streets", "line-color", colour("map-street"));
  const canvas = map.getCanvas();
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", label ?? say("map.label"));
  if (onPlace) {
    const there = (place) => onPlace([place.wrap().lat, place.wrap().lng]); // the map goes round the Earth more than once
    map.on("click", ({ lngLat }) => there(lngLat));
    canvas.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      there(map.getCenter());
    });
  }
  return {
    map,
    show(what) {
      for (const [name, data] of Object.entries(what)) map.getSource(name).setData(Array.isArray(data) ? { type: "FeatureCollection", features: data } : data);
    },
    fit(places, padding = 40) {
      if (places.length === 0) return;
      const bounds = new LngLatBounds();
      for (const [lat, lon] of places) bounds.extend([lon, lat]);
      map.fitBounds(bounds, { padding, maxZoom: 16, animate: false });
    },
    centre() {
      const { lat, lng } = map.getCenter().wrap();
      return [lat, lng];
    },
    recolour() {
      map.setPaintProperty("land", "background-color", colour("map-land"));
      map.setPaintProperty("streets", "line-color", colour("map-street"));
    },
    /** Put a file of one's own behind everything: GeoJSON, or PMTiles whose layers are drawn as lines and areas. */
    async background(file) {
      if (!file.name.toLowerCase().endsWith(".pmtiles")) {
        map.getSource("background").setData(JSON.parse(await file.text()));
        return;
      }
      const { PMTiles, FileSource, Protocol } = await import("./vendor/pmtiles.js");
      const protocol = new Protocol();
      const tiles = new PMTiles(new FileSource(file));
      protocol.add(tiles);
      globalThis.maplibregl.addProtocol("pmtiles", protocol.tile);
      const [header, facts] = [await tiles.getHeader(), await tiles.getMetadata()];
      map.addSource("tiles", header.tileType === 1 ? { type: "vector", url: `pmtiles://${file.name}` } : { type: "raster", url: `pmtiles://${file.name}`, tileSize: 256 });
      if (header.tileType !== 1) map.addLayer({ id: "tiles", source: "tiles", type: "raster" }, "streets");
      else {
        for (const { id } of facts.vector_layers ?? []) {
          map.addLayer({ id: `tiles-${id}`, source: "tiles", "source-layer": id, type: "line", paint: { "line-color": colour("map-street"), "line-width": 0.7 } }, "streets");
        }
      }
    },
    remove() {
      map.remove();
    },
  };
}

export { colour };
