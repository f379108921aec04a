// A voice note: recorded here, saved in the browser's database, sent separately from its operation.

import { read } from "/static/core/db.js";
import { addSound } from "/static/core/outbox.js";
import { touchNow } from "/static/core/clock.js";
import { button, h } from "/static/core/page.js";
import { t } from "/static/core/words.js";
import { sheet, tell } from "/static/views/frame.js";

const TYPES = ["audio/mp4", "audio/webm;codecs=opus", "audio/webm"];
const LONGEST_MS = 120_000;

export async function recordVoice(recording, done) {
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    return tell(t(isSecureContext ? "voice.denied" : "voice.insecure"));
  }
  const safari = /^((?!chrome|android).)*safari/i.test(navigator.userAgent);
  const mimeType = (safari ? TYPES : TYPES.slice(1)).find((type) => MediaRecorder.isTypeSupported(type));
  const recorder = new MediaRecorder(stream, { mimeType });
  const parts = [];
  const touch = touchNow();
  recorder.ondataavailable = ({ data }) => parts.push(data);
  recorder.onstop = async () => {
    stream.getTracks().forEach((track) => track.stop());
    if (cancelled) return;
    const blob = new Blob(parts, { type: recorder.mimeType.replaceAll(" ", "") });
    const sha256 = await hash(blob);
    const seconds = (performance.now() - touch.touch_ms) / 1000;
    try {
      await addSound(recording.id, sha256, blob);
      await recording.act(touch, { kind: "voice", body: { sha256, media_type: blob.type, seconds } });
    } catch {
      return tell(t("voice.not_kept"));
    }
    return done();
  };
  let cancelled = false;
  recorder.start(1000);
  const stop = (keep) => { cancelled = !keep; if (recorder.state !== "inactive") recorder.stop(); };
  const timer = setTimeout(() => close(), LONGEST_MS);
  let keep = false;
  const close = sheet(t("voice.recording"), (shut) => [h("p", { class: "pulse", role: "status" }, t("voice.speak")),
    h("p", { class: "actions" }, button(t("cancel"), shut, { class: "quiet" }), button(t("voice.stop"), () => { keep = true; shut(); }, { class: "primary", id: "voice-stop" }))],
  { closed: () => { clearTimeout(timer); stop(keep); } });
  return null;
}

// Plays a note: the local sound until it is sent, then the server's.
export function voicePlayer(recording, sha256, name) {
  const player = h("audio", { controls: true, preload: "none", "aria-label": name, src: `/api/v1/voice/${recording.id}/${sha256}` });
  read("sounds", sha256).then((here) => { if (here) player.src = URL.createObjectURL(here.blob); });
  return player;
}

async function hash(blob) {
  const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
