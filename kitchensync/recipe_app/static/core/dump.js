// Writes a dump as a file; `kitchensync/recipe_app/exchange/dumps.py` reads it.

async function sha256(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function asFile(content) {
  return JSON.stringify({ schema: "tablet-dump/1", sha256: await sha256(content), content });
}
