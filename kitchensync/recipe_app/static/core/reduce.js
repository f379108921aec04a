// Computes the state of a recording from its operations, like operations/reduce.py; a test compares the two.
// Pure: no page, no network, no storage.

const PHASES = ["prepare", "checklist", "follow", "review", "done", "withdrawn"];
const COOKING = new Set(["start", "done", "reopen", "skip", "hold", "error", "recovered", "mark"]); // operations that *Undo* on the cooking screen takes back
const UNDOABLE = new Set([...COOKING, "plan_error", "edit_error", "add_error", "note", "voice", "hint"]);

export function reduceLog(ops) {
  const kept = once(ops);
  const gone = taken(kept);
  const state = empty();
  const versions = new Map();
  const cooked = new Set(kept.filter(isCooking).map((op) => op.op_id));
  for (const op of kept) {
    if (gone.has(op.op_id)) continue;
    HANDLERS[op.kind]?.(state, op);
    rememberVersions(state, versions, op);
    rememberLast(state, op);
    rememberUndo(state, op, cooked);
  }
  settle(state, versions);
  state.count = kept.length;
  return state;
}

const empty = () => ({
  recording: null, instructed: null, phase: PHASES[0], steps: {}, errors: {}, consent: null, checklist: {}, checked: null, capture: null,
  marks: [], notes: [], voices: [], timers: {}, hints: {}, awake: null, rest: null,
  holder: null, pauses: [], withdrawn: null, last: [], redo: [], count: 0,
});

function once(ops) {
  const known = new Map();
  for (const op of ops) if (!known.has(op.op_id)) known.set(op.op_id, op);
  return [...known.values()];
}

function taken(ops) { // newest first: a valid undo takes back earlier operations, but never a withdrawal
  const gone = new Set();
  const before = new Set(ops.filter(({ kind }) => UNDOABLE.has(kind) || kind === "undo").map((op) => op.op_id));
  for (const op of [...ops].reverse()) {
    before.delete(op.op_id);
    if (op.kind === "undo" && !gone.has(op.op_id)) {
      for (const target of op.body.undoes) if (before.has(target)) gone.add(target);
    }
  }
  return gone;
}

const newError = (error_id, planned, origin, at) => ({
  error_id, planned, origin, at, node: null, categories: [], subtype: "", expected: "", actual: "", text: "", language: "", before: null,
  description: "", outcome: "", outcome_note: "", intent: "", noticed: "", corrected_by: null, removed: false, conflicts: {},
});

const create = (planned, origin, timed) => (state, op) => {
  const id = op.body.error_id;
  if (!(id in state.errors)) state.errors[id] = newError(id, planned, origin, timed ? op.host_ns : null);
};

const BEGUN = ["open", "held", "stopped"]; // states with a run that is not done
const stepOf = (state, op) => (state.steps[op.body.node] ??= { state: "waiting", runs: [] });

const shown = ({ body }) => ("shown" in body ? { shown: body.shown } : {}); // the step's text as shown when it was touched

function start(state, op) {
  const step = stepOf(state, op);
  if (step.state === "held") step.runs.at(-1).holds.at(-1).end = op.host_ns;
  else if (step.state === "stopped") {
    const run = step.runs.at(-1);
    (run.holds ??= []).push({ start: run.stopped, end: op.host_ns });
    delete run.stopped;
  } else if (step.state !== "open") step.runs.push({ start: op.host_ns, end: null, ...shown(op) });
  step.state = "open";
}

function hold(state, op) { // the step pauses in the middle of its run until it is started again or done
  const step = stepOf(state, op);
  if (step.state !== "open") return;
  step.state = "held";
  (step.runs.at(-1).holds ??= []).push({ start: op.host_ns, end: null });
}

function done(state, op) {
  const step = stepOf(state, op);
  if (step.state === "held") step.runs.at(-1).holds.at(-1).end = op.host_ns;
  if (BEGUN.includes(step.state)) {
    delete step.runs.at(-1).stopped;
    step.runs.at(-1).end = op.host_ns;
  } else if (step.state !== "done") step.runs.push({ start: null, end: op.host_ns, ...shown(op) });
  step.state = "done";
}

function skip(state, op) {
  const step = stepOf(state, op);
  if (BEGUN.includes(step.state)) step.runs.pop();
  step.state = "skipped";
}

function end(state, op) { // started steps stop without being done
  phase("review")(state, op);
  for (const step of Object.values(state.steps)) {
    if (!["open", "held"].includes(step.state)) continue;
    const run = step.runs.at(-1);
    if (step.state === "held") run.holds.at(-1).end = op.host_ns;
    run.stopped = op.host_ns;
    step.state = "stopped";
  }
  state.rest = op.body.rest ?? null;
}

function begin(state, op) {
  if (state.recording) return;
  state.recording = op.body;
  for (const node of op.body.order) state.steps[node] = { state: "waiting", runs: [] };
  for (const { error_id } of op.body.planned) state.errors[error_id] = newError(error_id, true, "script", null);
}

const phase = (name) => (state, op) => {
  if (PHASES.indexOf(name) > PHASES.indexOf(state.phase)) state.phase = name;
  if (op.kind === "checked") state.checked = op.body;
};
const put = (name) => (state, op) => { state[name] = op.body; };
const append = (name) => (state, op) => { state[name].push({ ...op.body, op_id: op.op_id, at: op.host_ns }); };

const HANDLERS = {
  recording: begin,
  capture: (state, { body }) => { if (!body.reasons.length) state.capture = body; }, // refused commands change nothing
  plan_error: create(true, "self", false),
  error: create(false, "follow", true),
  add_error: create(false, "review", false),
  instructed: put("instructed"),
  prepared: phase("checklist"),
  consent: put("consent"),
  check: (state, op) => { state.checklist[op.body.item] = op.body.checked; },
  checked: phase("follow"),
  start,
  done,
  reopen: start,
  skip,
  hold,
  mark: append("marks"),
  note: append("notes"),
  voice: append("voices"),
  timer: (state, { body, host_ns }) => { state.timers[body.node] = { seconds: body.seconds, action: body.action, at: host_ns }; },
  hint: (state, { body }) => { state.hints[body.use] = (state.hints[body.use] ?? 0) + 1; },
  awake: put("awake"),
  end,
  finish: phase("done"),
  claim: (state, op) => { state.holder = op.device; },
  release: (state) => { state.holder = null; },
  pause: (state, op) => { if (state.pauses.at(-1)?.end !== null) state.pauses.push({ start: op.host_ns, end: null }); },
  resume: (state, op) => { if (state.pauses.at(-1)?.end === null) state.pauses.at(-1).end = op.host_ns; },
  withdraw: (state, op) => { [state.withdrawn, state.phase] = [{ at: op.host_ns, before: state.withdrawn?.before ?? state.phase, n: op.n }, "withdrawn"]; },
  close_review: (state, { body }) => { state.review_closed = body.closed; }, // absent in old recordings
  keep: (state) => { if (state.withdrawn) [state.phase, state.withdrawn] = [state.withdrawn.before, null]; },
};

function rememberVersions(state, versions, op) {
  for (const change of changesOf(op)) {
    if (!(change.error_id in state.errors) || !change.fields) continue;
    for (const [name, value] of Object.entries(change.fields)) {
      const key = `${change.error_id} ${name}`;
      if (!versions.has(key)) versions.set(key, []);
      versions.get(key).push({ ...op, value, order: versions.get(key).length });
    }
  }
}

function changesOf({ kind, body, host_ns }) {
  if (kind === "recovered") return [{ error_id: body.error_id, fields: body.left_out ? { corrected_by: -1 } : { corrected_by: body.error_id, corrected_at: host_ns } }];
  return kind === "recording" ? body.planned : [body];
}

const isCooking = (op) => COOKING.has(op.kind) && op.device !== "server";

function rememberLast(state, op) {
  if (!isCooking(op)) return;
  const together = op.body.with_op;
  state.last = together && state.last.includes(together) ? [...state.last, op.op_id] : [op.op_id];
}

function rememberUndo(state, op, cooked) { // operations that could be redone, newest last; any new operation clears them
  if (isCooking(op)) state.redo = [];
  else if (op.kind === "undo" && op.body.undoes.some((target) => cooked.has(target))) state.redo = [...state.redo, op.op_id];
}

function settle(state, versions) {
  for (const [key, made] of versions) {
    const [id, name] = key.split(" ");
    const heads = made.filter((one) => !made.some((other) => knew(other, one))).sort(byTouch);
    const shown = heads.at(-1);
    state.errors[id][name] = shown.value;
    if (heads.some((head) => JSON.stringify(head.value) !== JSON.stringify(shown.value))) {
      state.errors[id].conflicts[name] = heads.map(({ op_id, device, host_ns, value }) => ({ op_id, device, host_ns, value }));
    }
  }
}

const byTouch = (one, other) => ((one.host_ns ?? 0) - (other.host_ns ?? 0)) || (one.op_id > other.op_id ? 1 : -1);
const place = (op) => op.n ?? Infinity;

function knew(later, earlier) { // made by somebody who had seen the other version
  if (later === earlier || place(later) < place(earlier)) return false;
  if (later.device === earlier.device && later.device !== "server") return place(later) > place(earlier) || later.order > earlier.order;
  return earlier.n !== null && earlier.n <= later.seen;
}
