// The tablet's clock against the capture clock: ask, and note our own time before and after the answer.
// A touch uses the exchange that bounds its error best: half the way there and back, plus drift since then.

const PAGE = Math.random().toString(36).slice(2);
const KEPT = 400;
const DRIFT_PPM = 100; // two quartz clocks differ by less
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
  const { host_ns, clock_id } = await answer.json();
  const received_ms = performance.now();
  if (!Number.isFinite(host_ns)) throw new Error("no clock in the answer");
  if (exchanges.length && exchanges.at(-1).clock_id !== clock_id) exchanges = []; // the computer was restarted
  exchanges.push({ sent_ms, received_ms, wall_sent_ms, wall_received_ms: Date.now(), host_ns, clock_id });
  if (exchanges.length > KEPT) thin();
}

function thin() { // keep the shorter way of every two neighbours: the outage that a late touch needs stays bracketed
  exchanges = exchanges.filter((one, place) => {
    const other = exchanges[place ^ 1];
    return !other || one.received_ms - one.sent_ms <= other.received_ms - other.sent_ms;
  });
}

function best(at_ms, [sent, received]) {
  const doubt = (one) =>
    (one[received] - one[sent]) / 2 + Math.abs(at_ms - (one[sent] + one[received]) / 2) * DRIFT_PPM * 1e-6;
  return exchanges.reduce((a, b) => (doubt(b) < doubt(a) ? b : a));
}

// The clock fields of an operation: on this page's clock, or on the wall clock when the page was loaded anew since.
export function clockOf(touch) {
  if (!exchanges.length) return null;
  const page = touch.page === PAGE;
  const keys = page ? ["sent_ms", "received_ms"] : ["wall_sent_ms", "wall_received_ms"];
  const touch_ms = page ? touch.touch_ms : touch.wall_ms;
  const { host_ns, clock_id, ...times } = best(touch_ms, keys);
  return {
    basis: page ? "page" : "wall", touch_ms, sent_ms: times[keys[0]], received_ms: times[keys[1]],
    host_ns, clock_id, wall_ms: touch.wall_ms,
  };
}

// Our own guess of a touch on the capture clock, for the order of things that were not sent yet.
export function estimate(touch) {
  const clock = clockOf(touch);
  if (!clock) return null;
  return Math.round(clock.host_ns + (clock.touch_ms - (clock.sent_ms + clock.received_ms) / 2) * 1e6);
}
