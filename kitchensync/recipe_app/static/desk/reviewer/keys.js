// Keyboard shortcuts for all frequent actions.

import { t } from "/static/core/words.js";
import { newMark } from "/static/desk/reviewer/marks.js";

const SPEEDS = [0.25, 0.5, 1, 1.5, 2, 4];
const SHORT_S = 0.5; // hardly any step is shorter
const looked = (mark, end) => [...new Set([...mark.checked, end])];
const only = (mark, end) => mark.checked.filter((one) => one === end);

export function keysOf(page) {
  const { film, marks, lanes, steps } = page;
  const current = () => marks.all.get(page.chosen?.mark);
  const isChosen = ({ mark, end }) => mark === page.chosen?.mark && end === page.chosen?.end;
  const frameOf = (mark) => mark[page.chosen.end] ?? film.shown;
  const bounds = (node) => page.clips?.[node] ?? [0, film.frames - 1]; // evidence is inside its question's clip
  const within = (node, frame) => Math.min(bounds(node)[1], Math.max(bounds(node)[0], frame));

  function next(back = false) { // the next one that was not looked at, wrapping at the end
    const all = back ? marks.boundaries.reverse() : marks.boundaries;
    const here = all.findIndex(isChosen);
    page.choose([...all.slice(here + 1), ...all.slice(0, here + 1)].find(({ open }) => open));
  }

  page.allowed = ({ mark: id, end }, frame) => { // no step ends before it begins
    const mark = marks.all.get(id), [first, last] = bounds(mark.node);
    const [least, most] = end === "start" ? [first, mark.end ?? last] : [mark.start ?? first, last];
    return Math.min(most, Math.max(least, frame));
  };

  const isShort = ({ start, end }) => !page.clips && start !== null && end !== null && (end - start + 1) / film.fps < SHORT_S;
  const isWarned = (mark) => page.warnedOf === `${mark.mark} ${mark.start} ${mark.end}`;
  function warn(mark) { // the next Enter saves it
    page.warning = t("steps.short", { seconds: ((mark.end - mark.start + 1) / film.fps).toFixed(2) });
    page.warnedOf = `${mark.mark} ${mark.start} ${mark.end}`;
  }

  page.put = put;
  function put(frame) {
    const mark = current();
    if (!mark) return;
    const { end } = page.chosen, at = page.allowed(page.chosen, frame), by = at - frameOf(mark);
    const moved = { ...mark, [end]: at };
    page.warning = "";
    if (isShort(moved)) warn(moved);
    marks.change({ ...moved, checked: isShort(moved) ? mark.checked.filter((one) => one !== end) : looked(mark, end) });
    if (film.loop) film.loop = film.loop.map((edge) => Math.min(film.frames - 1, Math.max(0, edge + by)));
  }

  function confirm() {
    const mark = current();
    if (!mark) return;
    if (mark[page.chosen.end] === null) {
      page.warning = t(page.chosen.end === "start" ? "steps.no_start" : "steps.no_end");
      return;
    }
    if (isShort(mark) && !isWarned(mark)) return void warn(mark);
    if (!mark.checked.includes(page.chosen.end)) marks.change({ ...mark, checked: looked(mark, page.chosen.end) });
    if (marks.open.length) next();
    else page.finish.focus();
  }

  function add() { // a step begins here; next mark its end
    const node = Number(steps.value);
    const mark = { mark: newMark(), node, start: within(node, film.seen), end: null, checked: ["start"], removed: false, missing: false };
    marks.change(mark);
    page.choose(marks.boundaries.find((boundary) => boundary.mark === mark.mark && boundary.end === "end"));
  }

  function split() {
    const mark = current(), at = film.seen;
    if (!mark || mark.start === null || mark.end === null || at <= mark.start || at > mark.end) return;
    const later = { ...mark, mark: newMark(), start: at, checked: ["start", ...only(mark, "end")] };
    marks.change({ ...mark, end: at - 1, checked: [...only(mark, "start"), "end"] }, later);
  }

  function merge() { // join with the next mark of the same step
    const mark = current();
    const behind = marks.shown.filter(({ node, missing, start }) => node === mark?.node && !missing && start > (mark.end ?? mark.start));
    const later = behind.sort((a, b) => a.start - b.start)[0];
    if (later) marks.change({ ...mark, end: later.end, checked: [...only(mark, "start"), ...only(later, "end")] }, { ...later, removed: true });
  }

  function drop(how) {
    const mark = current();
    if (!mark) return;
    marks.change({ ...mark, ...how });
    next();
  }

  const nudge = (frames) => { const mark = current(); if (mark) put(frameOf(mark) + frames); };
  const speed = (by) => { film.video.playbackRate = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, SPEEDS.indexOf(film.video.playbackRate) + by))]; };

  const take = (person) => { // the answer of one of several people
    const at = page.choices[page.chosen?.mark]?.[page.chosen.end]?.[person];
    if (at !== undefined) put(at);
  };

  const acts = {
    Space: () => film.play(), ArrowLeft: () => film.step(-1), ArrowRight: () => film.step(1),
    "shift+ArrowLeft": () => film.step(-10), "shift+ArrowRight": () => film.step(10),
    Comma: () => nudge(-1), Period: () => nudge(1), k: () => nudge(-3), l: () => nudge(3), i: () => nudge(-10), o: () => nudge(10), // one row each
    Enter: confirm, Delete: () => drop({ removed: true }), BracketLeft: () => speed(-1), BracketRight: () => speed(1),
    n: () => next(), p: () => next(true), s: () => put(film.seen), a: add, x: split, m: merge, d: () => drop({ missing: true }),
    z: () => marks.undo(), y: () => marks.redo(), Escape: () => { film.loop = null; }, "+": () => lanes.zoomBy(2), "-": () => lanes.zoomBy(0.5),
  };

  page.act = (name) => acts[name](); // actions of touched buttons
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, input, textarea, summary, a")) return false;
    if (event.target.matches("button") && ["Space", "Enter"].includes(event.code)) return false;
    const person = "123456789".indexOf(event.key);
    const names = [`${event.shiftKey ? "shift+" : ""}${event.code}`, event.key.toLowerCase(), event.code.replace("Key", "").toLowerCase()]; // event.code for keyboards with other letters
    const act = person >= 0 ? () => take(person) : acts[names.find((name) => name in acts)];
    if (!act) return false;
    event.preventDefault();
    act();
    return true;
  };
}
