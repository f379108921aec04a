// Draws a graph: each step below its prerequisites. Two touches, two keys or a drag add or remove an edge.

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, GAP, DROP, LETTERS, LINES] = [220, 84, 24, 56, 24, 3];

function made(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const x = (column) => GAP + column * (WIDTH + GAP);
const y = (layer) => GAP + layer * (HEIGHT + DROP);

function wrapped(text) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= LETTERS) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  if (lines.length > LINES || lines.some((line) => line.length > LETTERS + 4)) {
    return lines.slice(0, LINES).map((line, at) => (at === LINES - 1 && lines.length > LINES) || line.length > LETTERS + 4 ? `${line.slice(0, LETTERS)}…` : line);
  }
  return lines;
}

function box(node, [column, layer], { name, change, kind = () => "", marks = () => [] }) {
  const words = made("text", { x: x(column) + WIDTH / 2, "text-anchor": "middle" });
  const lines = wrapped(name(node));
  const top = y(layer) + HEIGHT / 2 - (lines.length - 1) * 11 + 6;
  words.append(...lines.map((line, at) => made("tspan", { x: x(column) + WIDTH / 2, y: top + at * 22 }, line)));
  const label = [name(node), ...marks(node)].join(" · "), title = made("title", {}, label);
  const corner = marks(node).length ? [made("text", { class: "mark", x: x(column) + WIDTH - 14, y: y(layer) + 24, "text-anchor": "middle" }, "!")] : [];
  const rect = made("rect", { x: x(column), y: y(layer), width: WIDTH, height: HEIGHT, rx: 12 });
  const use = change ? { tabindex: 0, role: "button", "aria-pressed": "false" } : { role: "img" };
  return made("g", { class: `node ${kind(node)}`, ...use, "aria-label": label, "data-node": node }, title, rect, words, ...corner);
}

function path(points) { // from the bottom of a box, around the boxes between, to the top of the next
  const middle = ([column]) => x(column) + WIDTH / 2;
  const [from, to] = [points[0], points.at(-1)];
  let [lastX, lastY] = [middle(from), y(from[1]) + HEIGHT];
  let said = `M ${lastX} ${lastY}`;
  const through = points.slice(1, -1).flatMap((point) => [[middle(point), y(point[1])], [middle(point), y(point[1]) + HEIGHT]]);
  for (const [nextX, nextY] of [...through, [middle(to), y(to[1]) - 6]]) {
    const half = (lastY + nextY) / 2;
    said += ` C ${lastX} ${half} ${nextX} ${half} ${nextX} ${nextY}`;
    [lastX, lastY] = [nextX, nextY];
  }
  return said;
}

// `name` gives a node's text, `kind` its class, `marks` the text in its corner; without `change` it is read-only.
export function drawGraph(place, { places, lines, redundant = [], cycle = [], columns, ...how }) {
  const nodes = Object.entries(places).map(([node, at]) => [Number(node), at]);
  const rows = Math.max(...nodes.map(([, [, layer]]) => layer)) + 1;
  const focused = place.querySelector(".node:focus")?.dataset.node;
  const isIn = (edge, edges) => edges.some(([before, after]) => before === edge[0] && after === edge[1]);
  const circle = cycle.slice(1).map((node, at) => [cycle[at], node]);
  const line = (edge) => (isIn(edge, circle) ? "wrong" : isIn(edge, redundant) ? "redundant" : "");
  const drawn = lines.map(({ edge, points }) => made("path", { class: line(edge), d: path(points), "marker-end": "url(#tip)" }));
  const tip = made("marker", { id: "tip", viewBox: "0 0 8 8", refX: 4, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" }, made("path", { d: "M 0 0 L 8 4 L 0 8 z" }));
  const size = { width: x(columns), height: y(rows) - DROP + GAP };
  const svg = made("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "group", "aria-label": place.dataset.title }, made("defs", {}, tip), ...drawn);
  const boxes = nodes.sort((a, b) => a[1][1] - b[1][1] || a[1][0] - b[1][0]).map(([node, at]) => box(node, at, how));
  svg.append(...boxes);
  if (how.change) choosing(svg, how.change);
  place.replaceChildren(svg);
  place.querySelector(`[data-node="${focused}"]`)?.focus();
}

function choosing(svg, change) {
  let first = null;
  const nodeOf = (element) => element?.closest?.(".node") ?? null;

  function choose(node) {
    if (first && node !== first) return change([Number(first.dataset.node), Number(node.dataset.node)]);
    first = first ? null : node;
    node.setAttribute("aria-pressed", String(first === node));
    return null;
  }

  svg.addEventListener("click", (event) => { if (nodeOf(event.target)) choose(nodeOf(event.target)); });
  svg.addEventListener("keydown", (event) => {
    if (!["Enter", " "].includes(event.key) || !nodeOf(event.target)) return;
    event.preventDefault();
    choose(nodeOf(event.target));
  });
  let dragged = null;
  svg.addEventListener("pointerdown", (event) => { dragged = nodeOf(event.target); });
  svg.addEventListener("pointerup", (event) => {
    const onto = nodeOf(document.elementFromPoint(event.clientX, event.clientY));
    if (dragged && onto && onto !== dragged) change([Number(dragged.dataset.node), Number(onto.dataset.node)]);
    dragged = null;
  });
}
