// Records speech while the video pauses. It is sent every second, so that a closed page loses at most a second.

import { ask } from "/static/core/server.js";

const PART_MS = 500, AGAIN_MS = 1000, TAIL_MS = 500, LONGEST_MS = 115_000;
const TYPES = ["audio/webm;codecs=opus", "audio/webm", "audio/mp4"];

export class Talk {
  // The sound of a narration is sent to `address`; `full` is called when it reaches the longest duration.
  constructor(address, stream, full) {
    this.address = address;
    this.stream = stream;
    this.full = full;
    this.sent = 0;
    this.parts = [];
    this.sending = null;
    this.recorder = new MediaRecorder(stream, { mimeType: TYPES.find((type) => MediaRecorder.isTypeSupported(type)) });
    this.recorder.ondataavailable = ({ data }) => { this.parts.push(data); this.sending ??= this.#send().finally(() => { this.sending = null; }); };
    this.ended = new Promise((resolve) => { this.recorder.onstop = resolve; });
  }

  begin() {
    this.recorder.start(PART_MS);
    this.timer = setTimeout(this.full, LONGEST_MS);
  }

  async end() { // half a second later, so that no word is cut off
    clearTimeout(this.timer);
    await new Promise((resolve) => { setTimeout(resolve, TAIL_MS); });
    if (this.recorder.state !== "inactive") this.recorder.stop();
    await this.ended;
    this.stream.getTracks().forEach((track) => track.stop());
    while (this.sending) await this.sending;
  }

  async #send() {
    while (this.parts.length) {
      const raw = new Blob([this.parts[0]], { type: this.recorder.mimeType.split(";")[0] });
      try {
        if (raw.size) await ask(`${this.address}?at=${this.sent}`, { raw, method: "PUT" });
        this.sent += raw.size;
        this.parts.shift();
      } catch (error) {
        if (error.status && error.status < 500) throw error; // refused: a retry would be refused too
        await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
      }
    }
  }
}
