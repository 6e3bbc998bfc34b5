// The sampler of metricdp in a page: click a crossing, and draw what others would be told. Nothing leaves the page.
import { open } from "./metricdp.js";

const here = new URL(".", import.meta.url);
const SVG = "http://www.w3.org/2000/svg";
const DRAWS = 200;

/** Make an element of the drawing. */
function shape(parent, name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

/** Return the code of the place that is nearest to a point of the drawing. */
function nearest(points, x, y) {
  let best = 0;
  points.forEach(([a, b], k) => {
    if (Math.hypot(a - x, b - y) < Math.hypot(points[best][0] - x, points[best][1] - y)) best = k;
  });
  return best;
}

/** Put the drawing and its controls into an element. */
export async function start(root) {
  const { places, streets } = await (await fetch(new URL("porto.json", here))).json();
  const mechanisms = {};
  for (const metres of [100, 300]) {
    mechanisms[metres] = await open(new URL(`porto_${metres}.mdp`, here));
  }
  const latitudes = places.map((place) => place[0]);
  const longitudes = places.map((place) => place[1]);
  const [top, left] = [Math.max(...latitudes), Math.min(...longitudes)];
  const narrow = Math.cos((top * Math.PI) / 180);
  const scale = 560 / ((Math.max(...longitudes) - left) * narrow);
  const height = Math.ceil((top - Math.min(...latitudes)) * scale) + 40;
  const points = places.map(([lat, lon]) => [20 + (lon - left) * narrow * scale, 20 + (top - lat) * scale]);

  root.innerHTML = `<p><label>Guarantee: a factor of two at most at
      <select><option value="100">100 m</option><option value="300">300 m</option></select></label>
      <button type="button" style="border: 1px solid; border-radius: .3rem; padding: .2rem .6rem">Draw again</button></p>`;
  const [choice, button] = [root.querySelector("select"), root.querySelector("button")];
  const drawing = shape(root, "svg", {
    viewBox: `0 0 600 ${height}`, width: "100%", role: "img", "aria-label": "Crossings of central Porto. Click one.",
    style: "max-width: 40rem; cursor: crosshair; touch-action: manipulation; background: rgba(128, 128, 128, .08)",
  });
  for (const [from, to] of streets) {
    const [[x1, y1], [x2, y2]] = [points[from], points[to]];
    shape(drawing, "line", { x1, y1, x2, y2, stroke: "#8a9a97", "stroke-width": 1.5 });
  }
  for (const [cx, cy] of points) shape(drawing, "circle", { cx, cy, r: 2, fill: "#8a9a97" });
  const cloud = shape(drawing, "g", {});
  const truth = shape(drawing, "circle", { r: 9, fill: "none", stroke: "#e4572e", "stroke-width": 3 });
  const said = document.createElement("p");
  said.setAttribute("role", "status");
  root.append(said);
  let code = nearest(points, 300, height / 2);

  function draw() {
    const mechanism = mechanisms[choice.value];
    const counts = new Map();
    for (let k = 0; k < DRAWS; k++) {
      const report = mechanism.sample(mechanism.secretAt(code)); // words of crypto.getRandomValues
      counts.set(report.code, (counts.get(report.code) ?? 0) + 1);
    }
    cloud.replaceChildren();
    for (const [place, count] of counts) {
      const [cx, cy] = points[place];
      shape(cloud, "circle", { cx, cy, r: 3 + 2 * Math.sqrt(count), fill: "#0b7a6f", "fill-opacity": 0.55 });
    }
    truth.setAttribute("cx", points[code][0]);
    truth.setAttribute("cy", points[code][1]);
    said.textContent = `${DRAWS} reports fell on ${counts.size} crossings, ${counts.get(code) ?? 0} of them on the true one. `
      + mechanism.explain().short;
    root.dataset.drawn = JSON.stringify({ code, different: counts.size, reports: DRAWS });
  }

  drawing.addEventListener("click", (event) => {
    const box = drawing.getBoundingClientRect();
    code = nearest(points, ((event.clientX - box.left) * 600) / box.width, ((event.clientY - box.top) * height) / box.height);
    draw();
  });
  button.addEventListener("click", draw);
  choice.addEventListener("change", draw);
  draw();
}

const root = document.getElementById("try-sampler");
if (root) {
  start(root).catch((error) => {
    root.textContent = `The sampler did not start: ${error.message}`;
    root.dataset.failed = error.message;
  });
}
