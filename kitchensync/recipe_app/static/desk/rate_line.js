// Packets per second of the last polls, as a small chart.

const WIDE = 240, HIGH = 40;

export function rateLine(rates, nominal) { // dashed: the nominal rate
  const top = Math.max(nominal, ...rates, 1) * 1.1;
  const points = rates.map((rate, place) => `${(place * WIDE) / Math.max(rates.length - 1, 1)},${HIGH - (rate / top) * HIGH}`);
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawing.setAttribute("viewBox", `0 0 ${WIDE} ${HIGH}`);
  drawing.setAttribute("aria-hidden", "true");
  for (const [name, drawn] of [["nominal", `0,${HIGH - (nominal / top) * HIGH} ${WIDE},${HIGH - (nominal / top) * HIGH}`], ["rate", points.join(" ")]]) {
    const part = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    part.setAttribute("class", name);
    part.setAttribute("points", drawn);
    drawing.append(part);
  }
  return drawing;
}
