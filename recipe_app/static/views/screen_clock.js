// The screen clock (docs/reference/screen-clock.md): a flash, then a count that moves on at each refresh of the glass.
// Cameras that film it can be put on one time, picture to picture. It says nothing of the recipe, and takes no touch.

import { touchNow } from "/static/core/clock.js";
import { h } from "/static/core/page.js";
import { t } from "/static/core/words.js";

const COLUMNS = 12;
const NUMBER_BITS = 12;
const CHECK_BITS = 4;
const SWEEP_BITS = 6;
const STRIDES = [1, 5]; // of the white column in the upper and the lower band
const LENGTH_MS = 2000;
const FLASH_MS = 100;
const NOTICE_MS = 1200;
const RIM = 0.031; // of the glass's width
const CODE = 0.2812; // of the face's height, both rows
const COLUMNS_FROM = 0.3281;
const EACH_MINUTE_MS = 60_000;

// When it is shown: once the recording runs, at the end, and each minute where the lab asks and nothing on the glass is hidden.
export class ScreenClock {
  constructor(recording) {
    Object.assign(this, { recording, running: null, rule: recording.bundle.screen_clock ?? "off" });
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.rule = "off";
    this.last = recording.state.screen_clock ? performance.now() : -Infinity;
  }

  hear({ health }) {
    if (health !== "recording" || this.rule === "off") return;
    this.isRecorded = true;
    const again = this.rule === "minute" && this.recording.shown.display === "steps" ? EACH_MINUTE_MS : Infinity;
    if (this.last === -Infinity || performance.now() - this.last > again) this.show();
  }

  async end() {
    if (this.isRecorded) await this.show();
  }

  show() {
    this.last = performance.now();
    this.running ??= showClock().then(async (shown) => {
      this.running = null;
      if (shown) await this.recording.act(shown.touch, { kind: "screen_clock", body: shown.body });
    });
    return this.running;
  }
}

// Resolves to when it was shown and what, or null where a touch ended it before it could be read.
export async function showClock({ notice = NOTICE_MS } = {}) {
  const number = 1 + crypto.getRandomValues(new Uint16Array(1))[0] % ((1 << NUMBER_BITS) - 1);
  const canvas = h("canvas", { "aria-hidden": "true" });
  const glass = h("div", { class: "screen-clock", role: "status" }, h("p", {}, t("screen_clock.look")));
  const ended = new AbortController();
  addEventListener("pointerdown", () => ended.abort(), { capture: true, passive: true, signal: ended.signal });
  document.body.append(glass); // it takes no touch: what lies below is touched as ever
  await new Promise((wake) => { setTimeout(wake, notice); });
  glass.replaceChildren(canvas);
  const shown = ended.signal.aborted ? null : await run(canvas, number, ended.signal);
  ended.abort();
  glass.remove();
  return shown;
}

function run(canvas, number, signal) {
  canvas.width = innerWidth * devicePixelRatio;
  canvas.height = innerHeight * devicePixelRatio;
  const pen = canvas.getContext("2d", { alpha: false, desynchronized: true });
  const touch = touchNow();
  const stamps = [];
  return new Promise((resolve) => {
    const step = (stamp) => {
      stamps.push(stamp);
      const since = stamp - stamps[0];
      if (signal.aborted || since >= LENGTH_MS) {
        const length = periodOf(stamps);
        resolve(since < LENGTH_MS / 2 ? null : { touch, body: { number, refresh_hz: Math.round(1e5 / length) / 100 } });
        return;
      }
      draw(pen, canvas, number, since < FLASH_MS ? null : Math.round((since - FLASH_MS) / periodOf(stamps)));
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}

// The middle one of the times between refreshes: one that was missed is twice as long.
function periodOf(stamps) {
  if (stamps.length < 2) return 1000 / 60;
  const apart = stamps.slice(1).map((stamp, k) => stamp - stamps[k]).sort((a, b) => a - b);
  return apart[apart.length >> 1];
}

function draw(pen, { width, height }, number, refresh) {
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, width, height);
  if (refresh === null) return;
  const rim = Math.round(width * RIM);
  const [wide, high] = [width - 2 * rim, height - 2 * rim];
  const edge = (k) => rim + Math.round(wide * k / COLUMNS);
  const level = (share) => rim + Math.round(high * share);
  pen.fillStyle = "#000";
  pen.fillRect(rim, rim, wide, high);
  pen.fillStyle = "#fff";
  code(number, Math.floor(refresh / COLUMNS)).forEach((white, place) => {
    const [row, column] = [Math.floor(place / COLUMNS), place % COLUMNS];
    if (white) pen.fillRect(edge(column), level(row * CODE / 2), edge(column + 1) - edge(column), level((row + 1) * CODE / 2) - level(row * CODE / 2));
  });
  STRIDES.forEach((stride, band) => {
    const lit = refresh * stride % COLUMNS;
    const [top, bottom] = [band, band + 1].map((part) => level(COLUMNS_FROM + (1 - COLUMNS_FROM) * part / STRIDES.length));
    pen.fillRect(edge(lit), top, edge(lit + 1) - edge(lit), bottom - top);
  });
}

function code(number, sweep) {
  const check = (number ^ number >> 4 ^ number >> 8) & (1 << CHECK_BITS) - 1;
  const counted = sweep % (1 << SWEEP_BITS);
  const bits = (value, count) => Array.from({ length: count }, (_, k) => value >> count - 1 - k & 1);
  return [1, 0, ...bits(number, NUMBER_BITS), ...bits(check, CHECK_BITS), ...bits(counted ^ counted >> 1, SWEEP_BITS)];
}
