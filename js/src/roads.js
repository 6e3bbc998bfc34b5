/** Shortest ways along a network of roads, by Dijkstra's algorithm. */

/** Return the length of the shortest way between two nodes; the ways from the last start are cached. */
export function pathMeasure(roads) {
  let [start, ways, there, back] = [-1, null, null, null];
  return (a, b) => {
    if (there === null) {
      there = neighbours(roads, false);
      back = roads.oneWay === "open" ? null : neighbours(roads, true);
    }
    if (start !== a[0]) {
      ways = waysFrom(a[0], there, roads.nodes);
      // The longer of there and back: a metric, which one-way streets alone are not.
      if (back !== null) waysFrom(a[0], back, roads.nodes).forEach((way, node) => (ways[node] = Math.max(ways[node], way)));
      start = a[0];
    }
    return ways[b[0]];
  };
}

/** Return the streets out of every node: those of node k stand from `starts[k]` to `starts[k + 1]`. */
function neighbours({ edges, lengths, nodes, oneWay }, reversed) {
  const open = oneWay === "open";
  const starts = new Uint32Array(nodes + 1);
  const ends = (street) => (reversed ? [edges[2 * street + 1], edges[2 * street]] : [edges[2 * street], edges[2 * street + 1]]);
  for (let street = 0; street < lengths.length; street++) {
    const [from, to] = ends(street);
    starts[from + 1] += 1;
    if (open) starts[to + 1] += 1;
  }
  for (let node = 0; node < nodes; node++) starts[node + 1] += starts[node];
  const [targets, steps] = [new Uint32Array(starts[nodes]), new Float64Array(starts[nodes])];
  const free = starts.slice();
  const put = (from, to, street) => {
    targets[free[from]] = to;
    steps[free[from]++] = lengths[street];
  };
  for (let street = 0; street < lengths.length; street++) {
    const [from, to] = ends(street);
    put(from, to, street);
    if (open) put(to, from, street);
  }
  return { starts, targets, steps };
}

function waysFrom(start, { starts, targets, steps }, nodes) {
  const ways = new Float64Array(nodes).fill(Infinity);
  ways[start] = 0;
  const heap = [[0, start]]; // [way, node], the shortest way on top
  while (heap.length > 0) {
    const [way, node] = popLeast(heap);
    if (way > ways[node]) continue; // a shorter way was found meanwhile
    for (let k = starts[node]; k < starts[node + 1]; k++) {
      const longer = way + steps[k];
      if (longer < ways[targets[k]]) {
        ways[targets[k]] = longer;
        pushOn(heap, [longer, targets[k]]);
      }
    }
  }
  return ways;
}

function pushOn(heap, item) {
  let at = heap.push(item) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent][0] <= item[0]) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = item;
}

function popLeast(heap) {
  const least = heap[0];
  const item = heap.pop();
  if (heap.length === 0) return least;
  let at = 0;
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    if (child + 1 < heap.length && heap[child + 1][0] < heap[child][0]) child += 1;
    if (heap[child][0] >= item[0]) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = item;
  return least;
}
