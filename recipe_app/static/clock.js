// The tablet's clock against the capture clock: ask, and note our own time before and after.
// Only the exchange with the shortest way of the last minute is used; half its length bounds the error.

const PAGE = Math.random().toString(36).slice(2);
const KEPT_MS = 60_000;
let exchanges = [];

export function touchNow() {
  return { page: PAGE, touch_ms: performance.now(), wall_ms: Date.now() };
}

export async function measure(times) {
  for (let one = 0; one < times; one++) {
    await exchange();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

export async function exchange() {
  const sent_ms = performance.now();
  const wall_sent_ms = Date.now();
  const answer = await fetch("/api/clock", { cache: "no-store", signal: AbortSignal.timeout(3000) });
  const { host_ns } = await answer.json();
  const received_ms = performance.now();
  if (!Number.isFinite(host_ns)) throw new Error("no clock in the answer");
  exchanges.push({ sent_ms, received_ms, wall_sent_ms, wall_received_ms: Date.now(), host_ns });
  exchanges = exchanges.filter((one) => received_ms - one.received_ms < KEPT_MS).slice(-60);
}

// The clock fields of an operation: on this page's clock, or on the wall clock when the page was loaded anew since.
export function clockOf(touch) {
  if (!exchanges.length) return null;
  const best = exchanges.reduce((a, b) => (b.received_ms - b.sent_ms < a.received_ms - a.sent_ms ? b : a));
  if (touch.page === PAGE) {
    return { basis: "page", touch_ms: touch.touch_ms, sent_ms: best.sent_ms, received_ms: best.received_ms, host_ns: best.host_ns };
  }
  return { basis: "wall", touch_ms: touch.wall_ms, sent_ms: best.wall_sent_ms, received_ms: best.wall_received_ms, host_ns: best.host_ns };
}
