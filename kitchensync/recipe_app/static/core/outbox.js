// Unsent operations: saved in IndexedDB before the screen changes, sent in order, deleted only after their receipt.

import { clockOf, estimate, exchange, wantsExchange } from "/static/core/clock.js";
import { change, read } from "/static/core/db.js";
import { newId } from "/static/core/ids.js";
import { ask, silent } from "/static/core/server.js";

const BATCH = 100;
const AGAIN_MS = 3000;
const listeners = new Set();
let waiting = [];
let refused = [];
let sounds = 0;
let failed = "";
let sending = null;
let next = null;
const accepted = new Map(); // operations with a receipt since this page was loaded
let who = { device: "", actor: "" };
export let problem = "";

export const identify = (device, actor) => { who = { device, actor }; };
export const onChange = (listener) => { listeners.add(listener); return () => listeners.delete(listener); };
export const unsent = () => waiting.length + sounds;
export const turnedDown = () => refused;
export const notKept = () => failed; // why the last touch could not be saved here, until one can
const tell = () => { for (const listener of listeners) listener(); };

const channel = new BroadcastChannel("kitchensync");
channel.onmessage = ({ data }) => { // another tab sent it: add it as accepted before it is removed from the unsent ones
  for (const op of data.taken ?? []) group(accepted, op.recording).push(op);
  load();
};

export async function load() {
  waiting = await read("outbox"); // read first, so that operations saved meanwhile come after them
  refused = await read("refused");
  sounds = (await read("sounds")).length;
  tell();
}

// A browser may lose its storage but keep its cookie: the server knows the last sequence number of this tablet.
export const countFrom = (used) => change(["meta"], ({ meta }) => {
  const counter = meta.get("seq");
  counter.onsuccess = () => { if ((counter.result?.value ?? 0) < used) meta.put({ key: "seq", value: used }); };
});

// Saves the actions of one touch, all or none; afterwards the caller may show them.
export async function add(recording, seen, actions, touch) {
  const entries = actions.map(({ kind, body, op_id }) => ({
    operation: { op_id: op_id ?? newId(), recording, actor: who.actor, kind, body: body ?? {}, seen }, touch, clock: clockOf(touch),
  }));
  await kept(["meta", "outbox"], ({ meta, outbox }) => {
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
  channel.postMessage({});
  drain();
  return entries.map((entry) => entry.operation);
}

async function kept(stores, act) { // if saving fails, every screen says so
  try {
    await change(stores, act);
    failed = "";
  } catch (error) {
    failed = error.message || error.name;
    tell();
    throw error;
  }
}

// The unconfirmed operations of a recording, in the form of the log.
export function pending(recording) {
  return waiting.filter(({ operation }) => operation.recording === recording).map(({ operation, touch, clock }) => ({
    ...operation, n: null, device: who.device, host_ns: estimate(touch, clock) ?? Math.round(touch.wall_ms * 1e6),
  }));
}

export const confirmed = (recording) => accepted.get(recording) ?? [];

// Sends unsent operations, then those that were saved meanwhile.
export function drain() {
  if (sending) return next ??= sending.then(() => { next = null; return drain(); });
  sending = navigator.locks.request("kitchensync-outbox", send).catch((error) => { problem = error.message; })
    .finally(() => { sending = null; tell(); });
  return sending;
}

async function send() {
  let most = BATCH;
  for (waiting = await read("outbox"); waiting.length; waiting = await read("outbox")) {
    if (wantsExchange(waiting[0].touch)) await exchange().catch(silent);
    const batch = waiting.slice(0, most);
    const operations = batch.map(({ operation, touch, clock }) => ({ ...operation, clock: clockOf(touch, clock) }));
    const receipts = await post(operations);
    if (receipts) channel.postMessage({ taken: await settle(batch, receipts) });
    most = receipts ? BATCH : Math.ceil(batch.length / 2);
    problem = "";
  }
  await sendSounds();
  await tellDumps();
}

// Receipts; null if the batch is too large or has a malformed operation: then smaller ones are tried, and a single one is refused.
async function post(operations) {
  try {
    return (await ask("/api/v1/ops", { body: { operations } })).receipts ?? [];
  } catch (error) {
    if (![413, 422].includes(error.status)) throw error;
    return operations.length > 1 ? null : [{ op_id: operations[0].op_id, error: error.message }];
  }
}

async function settle(batch, receipts) { // one transaction saves the receipts and deletes the operations from the outbox
  const answered = batch.filter((entry, place) => receipts[place]?.op_id === entry.operation.op_id);
  if (!answered.length) throw new Error("the answer has no receipts");
  const taken = new Map();
  await change(["outbox", "refused", "bundles"], (stores) => {
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
  return [...taken.values()].flat();
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
  await kept(["sounds"], (stores) => stores.sounds.put({ sha256, recording, blob }));
  await load();
}

// Deletes everything of these recordings from this tablet, sent or not.
export async function forget(recordings) {
  const held = { outbox: await read("outbox"), refused: await read("refused"), sounds: await read("sounds") };
  await change(["bundles", ...Object.keys(held)], (stores) => {
    for (const id of recordings) stores.bundles.delete(id);
    for (const name of ["outbox", "refused"]) {
      for (const entry of held[name]) if (recordings.includes(entry.operation.recording)) stores[name].delete(entry.seq);
    }
    for (const sound of held.sounds) if (recordings.includes(sound.recording)) stores.sounds.delete(sound.sha256);
  });
  for (const id of recordings) accepted.delete(id);
  await load();
}

async function sendSounds() {
  const problems = [];
  for (const { sha256, recording, blob } of await read("sounds")) {
    try {
      await ask(`/api/v1/voice/${recording}/${sha256}`, { method: "PUT", raw: blob, timeout: 60_000 });
      await change(["sounds"], (stores) => stores.sounds.delete(sha256));
    } catch (error) {
      if (!error.status) throw error; // no network: the others would fail too
      problems.push(error); // this one was refused: go on with the others
    }
  }
  await load();
  if (problems.length) throw problems[0];
}

// Tells the server about dumps that were saved elsewhere: a withdrawal lists them.
async function tellDumps() {
  const { recordings = [] } = (await read("meta", "dumped"))?.value ?? {};
  if (!recordings.length) return;
  await ask("/api/v1/dumped", { body: { recordings: recordings.slice(0, 200) } });
  await change(["meta"], (stores) => stores.meta.delete("dumped"));
}

async function noteDump(entries) {
  const before = (await read("meta", "dumped"))?.value?.recordings ?? [];
  const recordings = [...new Set([...before, ...entries])];
  await change(["meta"], (stores) => stores.meta.put({ key: "dumped", value: { recordings } }));
}

// All unsent data as the text of a dump; the last resort if the server is lost for good.
export async function dump() {
  const { site = "", was = "" } = (await read("meta", "me"))?.value ?? {};
  const held = await Promise.all((await read("sounds")).map(plainSound));
  const [waits, refused] = [await read("outbox"), await read("refused")];
  await noteDump([...[...waits, ...refused].map((entry) => entry.operation.recording), ...held.map((sound) => sound.recording)]);
  const clocked = waits.map((entry) => ({ ...entry, clock: clockOf(entry.touch, entry.clock) }));
  return JSON.stringify({ site, device: who.device || was, made_ms: Date.now(), waiting: clocked, refused, sounds: held });
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
