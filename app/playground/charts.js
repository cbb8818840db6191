// Figures of the last minutes, kept while the page is open, and drawn as lines.

const MINUTES = 5;
const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [300, 60];
const history = new Map(); // endpoint -> [{at, queue, rate, acceptance}]
const before = new Map();

export const CHARTS = [
  ["queue", "Queue depth (requests)", 0],
  ["rate", "Throughput (tokens/s)", 1],
  ["acceptance", "Acceptance length", 2],
];

export function add(name, stats) {
  const at = performance.now() / 1000;
  const last = before.get(name);
  before.set(name, { at, stats });
  const points = history.get(name) ?? [];
  history.set(name, points);
  if (!last || stats.answer_tokens < last.stats.answer_tokens) return; // the first look, or an engine started anew
  const sum = (acceptance) => acceptance.accepted.reduce((total, count) => total + count, 0);
  const drafts = stats.acceptance.drafts - last.stats.acceptance.drafts;
  points.push({
    at,
    queue: stats.waiting + stats.queued,
    rate: (stats.answer_tokens - last.stats.answer_tokens) / (at - last.at),
    acceptance: drafts > 0 ? 1 + (sum(stats.acceptance) - sum(last.stats.acceptance)) / drafts : null,
  });
  while (points.length && points[0].at < at - 60 * MINUTES) points.shift();
}

export function forget(names) {
  for (const name of history.keys()) if (!names.includes(name)) [history, before].forEach((map) => map.delete(name));
}

export function draw(name) {
  const points = history.get(name) ?? [];
  return CHARTS.map(([field, title, digits]) => chart(points, field, title, digits));
}

function chart(points, field, title, digits) {
  const figure = document.createElement("figure");
  const now = performance.now() / 1000;
  const known = points.filter((point) => point[field] !== null);
  const most = Math.max(0, ...known.map((point) => point[field]));
  const top = Math.max(1, most); // a line at 0 lies at the bottom
  const latest = known.at(-1)?.[field];
  const words = latest === undefined ? "no figure yet" : `now ${latest.toFixed(digits)}, at most ${most.toFixed(digits)}`;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${title}, last ${MINUTES} minutes: ${words}`);
  const line = document.createElementNS(SVG, "polyline");
  const x = (at) => WIDTH - ((now - at) / (60 * MINUTES)) * WIDTH;
  line.setAttribute("points", known.map((point) => `${x(point.at).toFixed(1)},${(HEIGHT - 2 - (point[field] / top) * (HEIGHT - 6)).toFixed(1)}`).join(" "));
  svg.append(line);
  const caption = document.createElement("figcaption");
  caption.textContent = `${title}: ${words}`;
  figure.append(svg, caption);
  return figure;
}
