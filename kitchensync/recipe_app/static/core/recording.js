// One recording on the tablet: its bundle, its operations and the resulting state.

import { touchNow } from "/static/core/clock.js";
import { change, read } from "/static/core/db.js";
import { numberedSteps, planOf } from "/static/core/plan.js";
import { reduceLog } from "/static/core/reduce.js";
import { newId } from "/static/core/ids.js";
import * as outbox from "/static/core/outbox.js";
import { ask, soonOr } from "/static/core/server.js";
import { languageName, tongue } from "/static/core/words.js";

const CHOOSE_MS = 20_000; // drawing a script of a large recipe is slow
const UNDO_MOST = 4; // operations that one undo takes back, as in operations/kinds.py

export class Recording {
  static async open(id) { // from the local copy if the server does not answer soon, or without network
    const kept = await read("bundles", id);
    const fresh = ask(`/api/v1/bundle/${id}`).then((bundle) => keepBundle(bundle));
    return new Recording(await (kept ? soonOr(kept, fresh) : fresh));
  }

  constructor(bundle) {
    this.bundle = bundle;
    this.id = bundle.recording;
    this.reduceAgain();
  }

  get shown() { return this.state.recording; }
  get ops() { return outbox.merged(this.bundle.ops, outbox.confirmed(this.id)); }
  get known() { return [...this.ops, ...outbox.pending(this.id)]; } // confirmed or not
  get seen() { return this.bundle.seen ?? 0; } // the log is known up to here: other operations may precede those with later receipts
  get tongue() { return tongue(this.shown.language); }
  text(node) { return this.shown.steps[node]?.text ?? ""; }

  tongueOf({ language }) { return tongue(language); }
  foreign(step) { return step.language !== (this.shown.language ?? "") ? languageName(step.language) : ""; } // planned texts may be in another language

  reduceAgain() {
    this.state = reduceLog(this.known);
    this.plan = planOf(this.state);
    this.numbers = new Map(numberedSteps(this.state, this.plan));
  }

  // Saves the actions of one touch, then updates the state.
  async act(touch, ...actions) {
    const operations = await outbox.add(this.id, this.seen, actions, touch);
    this.reduceAgain();
    return operations;
  }

  // One tablet at a time: true if this tablet holds the recording; claims it if it was never held or was released.
  async take(device) {
    const claimed = this.known.some(({ kind }) => kind === "claim");
    if (!claimed) await this.act(touchNow(), { kind: "claim" });
    return this.state.holder === device;
  }

  undo(touch, targets) {
    const parts = Array.from({ length: Math.ceil(targets.length / UNDO_MOST) }, (_, part) => targets.slice(part * UNDO_MOST, (part + 1) * UNDO_MOST));
    return this.act(touch, ...parts.map((undoes) => ({ kind: "undo", body: { undoes } })));
  }

  async refresh() { // operations of other devices
    const { ops } = await ask(`/api/v1/ops/${this.id}?after=${this.seen}`, { timeout: 4000 });
    const known = new Set(this.ops.map((op) => op.op_id));
    if (ops.length) {
      this.bundle = await keep(this.id, (kept) => kept, ops) ?? this.bundle;
      this.reduceAgain();
    }
    return ops.filter((op) => !known.has(op.op_id)).length;
  }
}

const keepBundle = (bundle) => keep(bundle.recording, () => bundle, bundle.ops);

// Adds the server's gapless operations to the local copy in one transaction, because receipts may come meanwhile.
const keep = (id, made, ops) => change(["bundles"], ({ bundles }, answer) => {
  const request = bundles.get(id);
  request.onsuccess = () => {
    const kept = request.result;
    const bundle = made(kept);
    if (!bundle) return;
    const seen = Math.max(bundle.seen ?? 0, ...ops.map((op) => op.n));
    const whole = { ...bundle, seen, ops: outbox.merged(kept?.ops ?? [], ops) };
    bundles.put(whole);
    answer(whole);
  };
});

const asked = { choice: "", op_id: "" };

// Begins a recording; a retry of the same choice after a lost answer is the same recording.
export async function choose(choice) {
  const said = JSON.stringify(choice);
  if (asked.choice !== said) Object.assign(asked, { choice: said, op_id: newId() });
  const bundle = await ask("/api/v1/recordings", { body: { op_id: asked.op_id, ...choice }, timeout: CHOOSE_MS });
  asked.choice = "";
  const recording = new Recording(await keepBundle(bundle));
  for (const address of Object.values(recording.shown.pictures ?? {})) fetch(address).catch(() => null); // cached for use without network
  return recording;
}
