// The marks of one person: changes are sent as actions, in order, and can be undone.

import { newId } from "/static/core/ids.js";
import { ask } from "/static/core/server.js";

const ENDS = ["start", "end"];
const AGAIN_MS = 2000;

export class Marks {
  constructor(address, marks, changed) {
    this.address = address;
    this.all = new Map(marks.map((mark) => [mark.mark, mark]));
    this.changed = changed;
    this.done = [];
    this.undone = [];
    this.waiting = [];
    this.problem = "";
    this.sending = null;
    this.closed = false; // read-only from now on
  }

  get shown() { return [...this.all.values()].filter((mark) => !mark.removed); }

  // All ends of all marks in time order; an unmarked end comes next to its other end.
  get boundaries() {
    const place = (mark, end) => mark[end] ?? mark[end === "start" ? "end" : "start"] ?? mark.near ?? 0;
    return this.shown.filter((mark) => !mark.missing)
      .flatMap((mark) => ENDS.map((end) => ({ mark: mark.mark, end, frame: mark[end], at: place(mark, end), open: !mark.checked.includes(end) })))
      .sort((a, b) => a.at - b.at || a.mark.localeCompare(b.mark) || b.end.localeCompare(a.end));
  }

  get open() { return this.boundaries.filter(({ open }) => open); }

  // One action: the marks after it.
  change(...marks) {
    if (this.closed) return;
    const before = marks.map((mark) => this.all.get(mark.mark) ?? { ...mark, removed: true });
    this.done.push({ before, after: marks });
    this.undone = [];
    this.#put(marks);
  }

  undo() { this.#turn(this.done, this.undone, "before"); }
  redo() { this.#turn(this.undone, this.done, "after"); }

  #turn(from, to, which) {
    const action = from.pop();
    if (!action) return;
    to.push(action);
    this.#put(action[which]);
  }

  #put(marks) {
    for (const mark of marks) this.all.set(mark.mark, mark);
    this.queue({ edits: marks.map(({ mark, node, start, end, checked, removed, missing }) => ({ mark, node, start, end, checked, removed, missing })) });
  }

  queue(said) { // other answers share this order
    this.waiting.push({ op_id: newId(), ...said });
    this.changed();
    this.sending ??= this.#send().finally(() => { this.sending = null; });
  }

  // Sends them in order and repeats the first one until the server has it; its id prevents duplicates.
  async #send() {
    while (this.waiting.length) {
      try {
        await ask(this.address, { body: this.waiting[0] });
        this.waiting.shift();
        this.problem = "";
      } catch (error) {
        this.problem = error.message;
        if (error.status && error.status < 500) this.waiting.shift(); // refused: a retry would be refused too
        else await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
      }
      this.changed();
    }
  }

  async saved() { while (this.sending) await this.sending; }
}

export const newMark = () => [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
