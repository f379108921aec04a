// Operations wait here, in the browser's own storage, until the server's receipt for their id has come. None expires.

import { clockOf, exchange } from "/static/clock.js";

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // works without HTTPS too, unlike randomUUID
  let milliseconds = Date.now();
  for (let place = 5; place >= 0; place--) {
    bytes[place] = milliseconds % 256;
    milliseconds = Math.floor(milliseconds / 256);
  }
  bytes[6] = (bytes[6] & 0x0f) | 0x70; // UUID version 7: sorted by time
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

export class Outbox {
  constructor(recording, { onReceipt, onChange }) {
    this.recording = recording;
    this.key = `kitchensync.outbox.${recording}`;
    this.refusedKey = `kitchensync.refused.${recording}`;
    this.onReceipt = onReceipt;
    this.onChange = onChange;
    this.sending = false;
    this.problem = "";
    this.memory = new Map();
    this.unsafe = false;
  }

  waiting() {
    return this.read(this.key);
  }

  refused() {
    return this.read(this.refusedKey);
  }

  read(key) {
    if (this.memory.has(key)) return this.memory.get(key);
    try {
      return JSON.parse(localStorage.getItem(key) || "[]");
    } catch {
      return [];
    }
  }

  write(key, entries) {
    try {
      localStorage.setItem(key, JSON.stringify(entries));
      this.memory.delete(key);
    } catch { // full or forbidden: keep it here, and say that a reload would lose it
      this.memory.set(key, entries);
    }
    this.unsafe = [...this.memory.values()].some((kept) => kept.length > 0);
  }

  add(operation, touch) {
    const entry = { operation: { op_id: newId(), ...operation }, touch };
    this.write(this.key, [...this.waiting(), entry]); // stored before the screen changes
    this.drain();
    return entry.operation;
  }

  async drain() {
    if (this.sending) return;
    this.sending = true;
    try {
      for (let first = this.waiting()[0]; first; first = this.waiting()[0]) {
        if (!(await this.send(first))) break;
      }
    } finally {
      this.sending = false;
      this.onChange();
    }
  }

  async send({ operation, touch }) {
    try {
      if (!clockOf(touch)) await exchange();
      const answer = await fetch(`/api/recordings/${encodeURIComponent(this.recording)}/operations`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...operation, clock: clockOf(touch) }),
        signal: AbortSignal.timeout(8000),
      });
      const receipt = await answer.json();
      if (answer.ok && receipt.op_id === operation.op_id) {
        this.remove(operation.op_id);
        this.problem = "";
        this.onReceipt(receipt);
        return true;
      }
      this.problem = receipt.error || `the server answered ${answer.status}`;
      if (answer.status === 409 || answer.status === 422) { // it will never be taken: keep it aside, and say so
        this.write(this.refusedKey, [...this.refused(), { operation, touch, error: this.problem }]);
        this.remove(operation.op_id);
        return true;
      }
    } catch {
      this.problem = "the server is not reached";
    }
    return false;
  }

  remove(opId) {
    this.write(this.key, this.waiting().filter((entry) => entry.operation.op_id !== opId));
  }
}
