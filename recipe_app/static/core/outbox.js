// Operations on their way: kept in IndexedDB before the screen changes, sent in order, gone only with their receipt.

import { clockOf, estimate, exchange } from "/static/core/clock.js";
import { change, read } from "/static/core/db.js";
import { newId } from "/static/core/ids.js";
import { ask } from "/static/core/server.js";

const BATCH = 100;
const AGAIN_MS = 3000;
const listeners = new Set();
let waiting = [];
let refused = [];
let sounds = 0;
let sending = null;
const accepted = new Map(); // what got its receipt since this page was loaded
let who = { device: "", actor: "" };
export let problem = "";

export const identify = (device, actor) => { who = { device, actor }; };
export const onChange = (listener) => { listeners.add(listener); return () => listeners.delete(listener); };
export const unsent = () => waiting.length + sounds;
export const turnedDown = () => refused;
const tell = () => { for (const listener of listeners) listener(); };

const channel = new BroadcastChannel("kitchensync");
channel.onmessage = () => load();

export async function load() {
  [waiting, refused, sounds] = [await read("outbox"), await read("refused"), (await read("sounds")).length];
  tell();
}

// What one touch did: all of it is kept, or none; then the caller may show it.
export async function add(recording, seen, actions, touch) {
  const entries = actions.map(({ kind, body, op_id }) => ({
    operation: { op_id: op_id ?? newId(), recording, actor: who.actor, kind, body: body ?? {}, seen }, touch, clock: clockOf(touch),
  }));
  await change(["meta", "outbox"], ({ meta, outbox }) => {
    const counter = meta.get("seq");
    counter.onsuccess = () => {
      let seq = counter.result?.value ?? 0;
      for (const entry of entries) {
        entry.seq = entry.operation.seq = ++seq;
        outbox.put(entry);
      }
      meta.put({ key: "seq", value: seq });
    };
  });
  waiting.push(...entries);
  tell();
  channel.postMessage("kept");
  drain();
  return entries.map((entry) => entry.operation);
}

// The operations of a recording that the server has not confirmed, as the log would hold them.
export function pending(recording) {
  return waiting.filter(({ operation }) => operation.recording === recording).map(({ operation, touch }) => ({
    ...operation, n: null, device: who.device, host_ns: estimate(touch) ?? Math.round(touch.wall_ms * 1e6),
  }));
}

export const confirmed = (recording) => accepted.get(recording) ?? [];

export function drain() {
  sending ??= navigator.locks.request("kitchensync-outbox", send).catch((error) => { problem = error.message; })
    .finally(() => { sending = null; tell(); });
  return sending;
}

async function send() {
  for (waiting = await read("outbox"); waiting.length; waiting = await read("outbox")) {
    if (!clockOf(waiting[0].touch)) await exchange();
    const batch = waiting.slice(0, BATCH);
    const operations = batch.map(({ operation, touch }) => ({ ...operation, clock: clockOf(touch) }));
    const { receipts } = await ask("/api/v1/ops", { body: { operations } });
    await settle(batch, receipts);
    problem = "";
    channel.postMessage("sent");
  }
  await sendSounds();
}

async function settle(batch, receipts) { // the receipt and the end of waiting are one transaction
  const answered = batch.filter((entry, place) => receipts[place]?.op_id === entry.operation.op_id);
  if (!answered.length) throw new Error("the answer has no receipts");
  await change(["outbox", "refused", "bundles"], (stores) => {
    const taken = new Map();
    for (const entry of answered) {
      const receipt = receipts[batch.indexOf(entry)];
      stores.outbox.delete(entry.seq);
      if (receipt.error) stores.refused.put({ ...entry, error: receipt.error });
      else group(taken, entry.operation.recording).push({ ...entry.operation, ...receipt, device: who.device });
    }
    for (const [recording, ops] of taken) {
      keepAccepted(stores.bundles, recording, ops);
      group(accepted, recording).push(...ops);
    }
  });
  await load();
}

function group(map, key) {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
}

function keepAccepted(bundles, recording, ops) {
  const request = bundles.get(recording);
  request.onsuccess = () => {
    const bundle = request.result;
    if (!bundle) return;
    bundle.ops = merged(bundle.ops, ops);
    bundles.put(bundle);
  };
}

export function merged(known, more) {
  const all = new Map([...known, ...more].map((op) => [op.op_id, op]));
  return [...all.values()].sort((a, b) => a.n - b.n);
}

export async function addSound(recording, sha256, blob) {
  await change(["sounds"], (stores) => stores.sounds.put({ sha256, recording, blob }));
  await load();
}

async function sendSounds() {
  for (const { sha256, recording, blob } of await read("sounds")) {
    await ask(`/api/v1/voice/${recording}/${sha256}`, { method: "PUT", raw: blob, timeout: 60_000 });
    await change(["sounds"], (stores) => stores.sounds.delete(sha256));
  }
  await load();
}

// Everything that waits here, as the text of a dump; the last resort when the server is gone for good.
export async function dump({ sounds = true } = {}) {
  const site = (await read("meta", "me"))?.value.site ?? "";
  const held = sounds ? await Promise.all((await read("sounds")).map(plainSound)) : [];
  const clocked = (entries) => entries.map((entry) => ({ ...entry, clock: clockOf(entry.touch) ?? entry.clock }));
  return JSON.stringify({ site, device: who.device, made_ms: Date.now(), waiting: clocked(await read("outbox")), refused: await read("refused"), sounds: held });
}

async function plainSound({ sha256, recording, blob }) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return { sha256, recording, media_type: blob.type, base64: btoa(text) };
}

setInterval(() => { if (unsent()) drain(); }, AGAIN_MS);
addEventListener("online", drain);
addEventListener("focus", drain);
