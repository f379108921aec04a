// The timeline: a lane per step with touches behind marks, and the video's position. Boundaries can be dragged; other touches seek the video.

import { t } from "/static/core/words.js";

const LANE = 26, LEFT = 210, CLOCK = 20, STRIP = 54, LEVEL = 22;
const NEAR_PX = { mouse: 8, pen: 12, touch: 22 }, STILL_PX = 4;
const RULES_S = [1, 2, 5, 10, 30, 60, 120, 300];

export class Lanes {
  constructor(canvas, film, facts, hand, drawn) {
    Object.assign(this, { canvas, film, facts, hand, drawn, zoom: 1, first: 0, pointer: null, held: null, isMoved: false, names: { sound: t("steps.sound"), motion: t("steps.motion"), errors: t("steps.errors") } });
    this.rows = new Map(facts.steps.map(({ node }, row) => [node, row]));
    this.pen = canvas.getContext("2d");
    this.levels = ["sound", "motion", "errors"].filter((name) => facts[name]?.length);
    if (facts.thumbnails?.count) {
      this.strip = new Image();
      this.strip.onload = drawn;
      this.strip.src = `data:image/jpeg;base64,${facts.thumbnails.jpeg}`;
    }
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#release(event));
    for (const end of ["pointercancel", "pointerleave"]) canvas.addEventListener(end, () => this.#forget());
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  get top() { return CLOCK + (this.strip ? STRIP : 0) + LEVEL * this.levels.length; } // start of the steps
  get width() { return this.canvas.clientWidth - LEFT; }
  get span() { return this.film.frames / this.zoom; }
  x(frame) { return LEFT + (frame - this.first) / this.span * this.width; }

  frameAt(x) { return this.first + (x - LEFT) / this.width * this.span; }

  zoomBy(factor, frame = this.film.shown) { // the current frame, or the place under the pointer, stays fixed
    const share = Math.min(1, Math.max(0, (frame - this.first) / this.span));
    this.zoom = Math.min(this.film.frames / 30, Math.max(1, this.zoom * factor));
    this.panTo(frame - share * this.span);
  }

  panTo(first) { this.first = Math.min(Math.max(0, first), this.film.frames - this.span); }

  follow(frame) { // keep the current frame visible, except after scrolling or while dragging
    if (this.held?.frame !== undefined || this.isMoved) return;
    if (frame < this.first || frame > this.first + this.span) this.panTo(frame - this.span / 2);
  }

  draw(marks, boundary) {
    const { canvas, pen } = this, style = getComputedStyle(document.body);
    const colour = (name) => style.getPropertyValue(name).trim();
    const height = this.top + LANE * this.rows.size;
    canvas.style.height = `${height}px`;
    canvas.width = canvas.clientWidth * devicePixelRatio;
    canvas.height = height * devicePixelRatio;
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.font = "14px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.#labels(marks, colour);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, this.width, height);
    pen.clip();
    pen.fillStyle = colour("--line");
    for (const [first, last] of this.facts.hidden) pen.fillRect(this.x(first), CLOCK, this.x(last + 1) - this.x(first), height);
    this.#ruler(colour);
    if (this.strip?.complete) this.#thumbnails();
    this.levels.forEach((name, row) => (name === "errors" ? this.#errors(row, colour) : this.#level(name, row, colour)));
    for (const touch of this.facts.touches) this.#touch(touch, colour);
    for (const mark of marks) if (!mark.missing) this.#mark(this.#asHeld(mark), boundary, colour);
    if (this.pointer) this.#pointerTime(colour);
    pen.fillStyle = colour("--bad");
    pen.fillRect(this.x(this.film.shown) - 1, 0, 2, height);
    pen.restore();
  }

  #labels(marks, colour) {
    this.pen.fillStyle = colour("--muted");
    this.levels.forEach((name, row) => this.pen.fillText(this.names[name], 4, this.top - LEVEL * (this.levels.length - row) + LEVEL / 2));
    this.facts.steps.forEach(({ node, label }, row) => {
      const middle = this.top + row * LANE + LANE / 2, missing = marks.some((mark) => mark.node === node && mark.missing);
      this.pen.fillStyle = colour(missing ? "--muted" : "--text");
      this.pen.fillText(shortened(this.pen, label, LEFT - 16), 4, middle);
      if (missing) this.pen.fillRect(4, middle, LEFT - 16, 1);
    });
  }

  #ruler(colour) {
    const least = this.span / this.film.fps / (this.width / 90);
    const step = RULES_S.find((seconds) => seconds >= least) ?? 600;
    this.pen.fillStyle = colour("--muted");
    for (let s = Math.ceil(this.first / this.film.fps / step) * step; s * this.film.fps < this.first + this.span; s += step) {
      this.pen.fillText(`${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`, this.x(s * this.film.fps) + 2, CLOCK / 2);
    }
  }

  #thumbnails() { // as many thumbnails as fit side by side
    const { count, width, every } = this.facts.thumbnails;
    let free = -Infinity;
    for (let k = 0; k < count; k++) {
      const x = this.x(k * every);
      if (x + width < LEFT || x < free) continue;
      if (x > LEFT + this.width) break;
      this.pen.drawImage(this.strip, k * width, 0, width, STRIP, x, CLOCK, width, STRIP);
      free = x + width;
    }
  }

  #level(name, row, colour) { // the maximum of each column
    const values = this.facts[name], bottom = this.top - LEVEL * (this.levels.length - row - 1) - 2;
    const perColumn = this.span / this.width / this.film.fps / this.facts.lane_s;
    this.pen.fillStyle = colour("--muted");
    for (let column = 0; column < this.width; column += 2) {
      const from = (this.first / this.film.fps / this.facts.lane_s) + column * perColumn;
      const most = Math.max(0, ...values.slice(Math.floor(from), Math.floor(from + 2 * perColumn) + 1));
      const height = most / 99 * (LEVEL - 4);
      this.pen.fillRect(LEFT + column, bottom - height, 2, height);
    }
  }

  #errors(row, colour) { // each above its step
    const y = this.top - LEVEL * (this.levels.length - row);
    for (const { start, end, text } of this.facts.errors) {
      this.pen.fillStyle = colour("--bad");
      this.pen.fillRect(this.x(start), y + LEVEL - 4, Math.max(3, this.x(end + 1) - this.x(start)), 2);
      this.pen.fillText(shortened(this.pen, text, Math.max(20, this.x(end + 1) - this.x(start))), this.x(start), y + LEVEL / 2 - 1);
    }
  }

  #touch({ node, start, end, doubt }, colour) { // as wide as its uncertainty; nothing for an open boundary
    const y = this.top + this.rows.get(node) * LANE, known = [start, end === null ? null : end + 1].filter((frame) => frame !== null);
    this.pen.fillStyle = colour("--line");
    for (const frame of known) this.pen.fillRect(this.x(frame - doubt), y, Math.max(2, this.x(frame + doubt) - this.x(frame - doubt)), LANE);
  }

  #mark({ mark, node, start, end, checked }, boundary, colour) {
    const y = this.top + this.rows.get(node) * LANE + 4, from = this.x(start ?? end ?? 0), to = this.x((end ?? start ?? 0) + 1);
    this.pen.fillStyle = colour("--accent-soft");
    this.pen.fillRect(from, y, Math.max(3, to - from), LANE - 8);
    for (const [name, at, frame] of [["start", from, start], ["end", to, end]]) {
      const isChosen = boundary?.mark === mark && boundary.end === name;
      this.pen.fillStyle = colour(isChosen ? "--bad" : checked.includes(name) ? "--good" : "--accent");
      if (frame === null) this.pen.fillText("?", at + (name === "end" ? 8 : -14), y + LANE / 2 - 4);
      else this.pen.fillRect(at - (isChosen ? 3 : 1), y - (isChosen ? 4 : 0), isChosen ? 6 : 3, LANE - 8 + (isChosen ? 8 : 0));
    }
  }

  #asHeld(mark) { return this.held?.frame !== undefined && this.held.one.mark === mark.mark ? { ...mark, [this.held.one.end]: this.held.frame } : mark; }

  #pointerTime(colour) {
    const seconds = Math.max(0, this.frameAt(this.pointer)) / this.film.fps, text = `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
    const x = Math.min(this.pointer + 4, LEFT + this.width - 50);
    this.pen.fillStyle = colour("--raised");
    this.pen.fillRect(x - 2, 0, 50, CLOCK);
    this.pen.fillStyle = colour("--text");
    this.pen.fillText(text, x, CLOCK / 2);
    this.pen.fillRect(this.pointer, 0, 1, this.top + LANE * this.rows.size);
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, node: this.facts.steps[Math.floor((event.clientY - box.top - this.top) / LANE)]?.node };
  }

  #boundaryAt({ x, node }, near) { // the nearest in its lane; an end is drawn after its last frame
    const away = (one) => Math.abs(this.x(one.end === "end" && one.frame !== null ? one.at + 1 : one.at) - x);
    return this.hand.boundaries(node).filter((boundary) => away(boundary) < near).sort((a, b) => away(a) - away(b))[0];
  }

  #press(event) {
    const at = this.#place(event);
    if (at.x < LEFT || event.button > 0 || !event.isPrimary) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { from: at.x, one: this.#boundaryAt(at, NEAR_PX[event.pointerType] ?? NEAR_PX.mouse) };
  }

  #move(event) {
    if (!event.isPrimary) return;
    const at = this.#place(event), { held } = this;
    this.pointer = at.x < LEFT ? null : at.x;
    this.canvas.style.cursor = held?.one || this.#boundaryAt(at, NEAR_PX.mouse) ? "ew-resize" : "";
    if (held?.one && held.one.frame !== null && (held.frame !== undefined || Math.abs(at.x - held.from) >= STILL_PX)) {
      const frame = this.hand.allowed(held.one, Math.round(this.frameAt(Math.min(LEFT + this.width, Math.max(LEFT, at.x)))) - (held.one.end === "end" ? 1 : 0));
      if (frame !== held.frame) this.hand.look(held.one, frame);
      held.frame = frame;
    }
    this.drawn();
  }

  #release(event) {
    if (!event.isPrimary) return;
    const { held } = this, { x } = this.#place(event);
    this.held = null;
    if (held?.frame !== undefined) this.hand.put(held.one, held.frame);
    else if (held?.one) this.hand.choose(held.one);
    else if (held && Math.abs(x - held.from) < STILL_PX) this.hand.go(this.frameAt(x));
  }

  #forget() {
    this.held = this.pointer = null;
    this.drawn();
  }

  #wheel(event) { // Ctrl or pinch zooms at the pointer; horizontal movement scrolls along the video
    const along = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    this.isMoved = true;
    if (event.ctrlKey) this.zoomBy(2 ** (-event.deltaY / 200), this.frameAt(this.#place(event).x));
    else this.panTo(this.first + along / this.width * this.span);
    this.drawn();
  }
}

function shortened(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let most = text.length;
  while (most > 1 && pen.measureText(`${text.slice(0, most)}…`).width > width) most -= 1;
  return `${text.slice(0, most)}…`;
}
