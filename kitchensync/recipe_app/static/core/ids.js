// UUID version 7 (RFC 9562): sorted by time, made without network.

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // works without HTTPS too, unlike randomUUID
  let milliseconds = Date.now();
  for (let place = 5; place >= 0; place--) {
    bytes[place] = milliseconds % 256;
    milliseconds = Math.floor(milliseconds / 256);
  }
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
