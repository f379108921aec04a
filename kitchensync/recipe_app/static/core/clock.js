// The offset of the tablet's clock to the capture clock, from exchanges with our own time before and after the answer.
// A touch uses the exchange with the smallest error bound: half of the round trip plus drift since then.

const PAGE = Math.random().toString(36).slice(2);
const KEPT = 400;
const DRIFT_PPM = 100; // largest drift of two quartz clocks
const WALL_MS = 1000; // undetected step of the wall clock; both as in touch_clock.py
const PARTED_MS = 500; // difference of the clocks that shows a sleep (stops the page's clock) or a step of the wall clock
let exchanges = [];

export function touchNow() {
  return { page: PAGE, touch_ms: performance.now(), wall_ms: Date.now() };
}

export async function measure(times) {
  for (let one = 0; one < times; one++) {
    await exchange();
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}

export async function exchange() {
  const sent_ms = performance.now();
  const wall_sent_ms = Date.now();
  const answer = await fetch("/api/v1/time", { cache: "no-store", signal: AbortSignal.timeout(3000) });
  const { host_ns, clock_id, signature } = await answer.json();
  const received_ms = performance.now();
  if (!Number.isFinite(host_ns)) throw new Error("no clock in the answer");
  if (exchanges.length && exchanges.at(-1).clock_id !== clock_id) exchanges = []; // the computer was restarted
  exchanges.push({ sent_ms, received_ms, wall_sent_ms, wall_received_ms: Date.now(), host_ns, clock_id, signature });
  if (exchanges.length > KEPT) thin();
}

function thin() { // keeps the shorter round trip of every two neighbours, so that exchanges on both sides of an outage remain
  exchanges = exchanges.filter((exchange, place) => {
    const other = exchanges[place ^ 1];
    return !other || exchange.received_ms - exchange.sent_ms <= other.received_ms - other.sent_ms;
  });
}

const doubt = (at_ms, sent_ms, received_ms) =>
  (received_ms - sent_ms) / 2 + Math.abs(at_ms - (sent_ms + received_ms) / 2) * DRIFT_PPM * 1e-6;

function best(from, at_ms, [sent, received]) {
  const of = (one) => doubt(at_ms, one[sent], one[received]);
  return from.reduce((a, b) => (of(b) < of(a) ? b : a));
}

// The exchanges between which and the touch this page's clock ran without a stop.
const steady = (touch) => (touch.page !== PAGE ? [] : exchanges.filter((exchange) => {
  const parted = Math.abs(exchange.wall_sent_ms - exchange.sent_ms - (touch.wall_ms - touch.touch_ms));
  return parted < PARTED_MS + Math.abs(exchange.sent_ms - touch.touch_ms) * 2 * DRIFT_PPM * 1e-6;
}));

// Whether a new exchange would improve the time of a touch.
export const wantsExchange = (touch) => !exchanges.length || (touch.page === PAGE && !steady(touch).length);

// The clock fields of an operation: on this page's clock, or on the wall clock if the page was reloaded since then or
// its clock stopped; `earlier` are the fields from when it was saved, used if they are more accurate.
export function clockOf(touch, earlier = null) {
  if (!exchanges.length) return earlier;
  const near = steady(touch);
  const page = near.length > 0;
  const keys = page ? ["sent_ms", "received_ms"] : ["wall_sent_ms", "wall_received_ms"];
  const touch_ms = page ? touch.touch_ms : touch.wall_ms;
  const { host_ns, clock_id, signature, ...times } = best(page ? near : exchanges, touch_ms, keys);
  const fresh = {
    basis: page ? "page" : "wall", touch_ms, sent_ms: times[keys[0]], received_ms: times[keys[1]],
    host_ns, clock_id, signature, wall_ms: touch.wall_ms,
  };
  return earlier?.signature && earlier.clock_id === clock_id && doubtOf(earlier) < doubtOf(fresh) ? earlier : fresh;
}

const doubtOf = ({ basis, touch_ms, sent_ms, received_ms }) => doubt(touch_ms, sent_ms, received_ms) + (basis === "wall" ? WALL_MS : 0);

// Our estimate of a touch on the capture clock, to sort unsent operations.
export function estimate(touch, earlier) {
  const clock = clockOf(touch, earlier);
  if (!clock) return null;
  return Math.round(clock.host_ns + (clock.touch_ms - (clock.sent_ms + clock.received_ms) / 2) * 1e6);
}
