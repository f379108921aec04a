// A dump as a file and as QR frames; `recipe_app/dumps.py` reads both.

import { CAPACITY } from "/static/core/qr.js";

const HEAD = 48; // bytes of a frame that are no payload, at most

async function sha256(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function asFile(content) {
  return JSON.stringify({ schema: "tablet-dump/1", sha256: await sha256(content), content });
}

export async function asFrames(content) {
  const [form, bytes] = await packed(content);
  const payload = base64(bytes);
  const id = (await sha256(content)).slice(0, 16);
  const room = CAPACITY - HEAD;
  const count = Math.ceil(payload.length / room);
  return [...Array(count).keys()].map((place) => {
    const part = payload.slice(place * room, (place + 1) * room);
    return `KS1${form}:${id}:${place + 1}/${count}:${crc32(part)}:${part}`;
  });
}

async function packed(content) {
  const plain = new TextEncoder().encode(content);
  if (!("CompressionStream" in globalThis)) return ["p", plain];
  const stream = new Blob([plain]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return ["z", new Uint8Array(await new Response(stream).arrayBuffer())];
}

function base64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function crc32(text) {
  let rest = -1;
  for (const letter of text) {
    rest ^= letter.charCodeAt(0);
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  }
  return ((rest ^ -1) >>> 0).toString(16).padStart(8, "0");
}
