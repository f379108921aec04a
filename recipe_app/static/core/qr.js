// QR codes without a server: version 10, error correction L, bytes (ISO/IEC 18004). One size is enough for frames
// of a dump, and any mask may be used: what is shown is compressed, so it has no patterns to break up.

export const CAPACITY = 271; // bytes
const SIZE = 57;
const BLOCKS = [68, 68, 69, 69]; // data codewords
const CHECKS = 18; // error-correction codewords a block
const ALIGNMENT = [6, 28, 50];
const MASK = 0;

const exp = new Uint8Array(512);
const log = new Uint8Array(256);
for (let power = 0, value = 1; power < 255; power++) { // GF(256) of the standard, x^8 + x^4 + x^3 + x^2 + 1
  exp[power] = exp[power + 255] = value;
  log[value] = power;
  value = value & 0x80 ? (value << 1) ^ 0x11d : value << 1;
}
const times = (a, b) => (a && b ? exp[log[a] + log[b]] : 0);

function generator() {
  let polynomial = [1];
  for (let power = 0; power < CHECKS; power++) {
    const next = [...polynomial, 0];
    polynomial.forEach((factor, place) => { next[place + 1] ^= times(factor, exp[power]); });
    polynomial = next;
  }
  return polynomial.slice(1);
}

function checksOf(data, polynomial) {
  const rest = new Array(CHECKS).fill(0);
  for (const byte of data) {
    const factor = byte ^ rest.shift();
    rest.push(0);
    polynomial.forEach((one, place) => { rest[place] ^= times(one, factor); });
  }
  return rest;
}

function codewords(bytes) {
  const all = [0x40 | (bytes.length >> 12), (bytes.length >> 4) & 0xff]; // byte mode, 16 bits of length
  let half = bytes.length & 0xf;
  for (const byte of bytes) {
    all.push((half << 4) | (byte >> 4));
    half = byte & 0xf;
  }
  all.push(half << 4); // ends with the terminator
  const room = BLOCKS.reduce((sum, length) => sum + length);
  for (let pad = 0xec; all.length < room; pad ^= 0xec ^ 0x11) all.push(pad);
  return all;
}

function interleaved(data) {
  const polynomial = generator();
  let at = 0;
  const blocks = BLOCKS.map((length) => data.slice(at, at += length));
  const checks = blocks.map((block) => checksOf(block, polynomial));
  const column = (rows, place) => rows.filter((row) => place < row.length).map((row) => row[place]);
  return [...Array(Math.max(...BLOCKS)).keys()].flatMap((place) => column(blocks, place))
    .concat([...Array(CHECKS).keys()].flatMap((place) => column(checks, place)));
}

function patterns() { // null where data goes
  const grid = Array.from({ length: SIZE }, () => new Array(SIZE).fill(null));
  const set = (x, y, dark) => { if (x >= 0 && y >= 0 && x < SIZE && y < SIZE) grid[y][x] = Boolean(dark); };
  for (let place = 0; place < SIZE; place++) { set(6, place, place % 2 === 0); set(place, 6, place % 2 === 0); }
  for (const [x, y] of [[3, 3], [SIZE - 4, 3], [3, SIZE - 4]]) {
    for (let dy = -4; dy <= 4; dy++) {
      for (let dx = -4; dx <= 4; dx++) set(x + dx, y + dy, ![2, 4].includes(Math.max(Math.abs(dx), Math.abs(dy))));
    }
  }
  for (const y of ALIGNMENT) {
    for (const x of ALIGNMENT) {
      if ([x, y].includes(6) && (x === y || [x, y].includes(ALIGNMENT.at(-1)))) continue;
      for (let dy = -2; dy <= 2; dy++) {
        for (let dx = -2; dx <= 2; dx++) set(x + dx, y + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
      }
    }
  }
  facts(set);
  return grid;
}

function remainder(value, bits, polynomial) {
  let rest = value;
  for (let bit = 0; bit < bits; bit++) rest = (rest << 1) ^ ((rest >> (bits - 1)) * polynomial);
  return (value << bits) | rest;
}

function facts(set) { // version and format, each twice
  const format = remainder((1 << 3) | MASK, 10, 0x537) ^ 0x5412;
  const version = remainder(10, 12, 0x1f25);
  const bit = (value, place) => (value >> place) & 1;
  for (let place = 0; place < 15; place++) {
    const dark = bit(format, place);
    if (place < 6) set(8, place, dark);
    else if (place < 8) set(8, place + 1, dark);
    else set(place === 8 ? 7 : 14 - place, 8, dark);
    if (place < 8) set(SIZE - 1 - place, 8, dark);
    else set(8, SIZE - 15 + place, dark);
  }
  set(8, SIZE - 8, true);
  for (let place = 0; place < 18; place++) {
    const [a, b] = [SIZE - 11 + (place % 3), Math.floor(place / 3)];
    set(a, b, bit(version, place));
    set(b, a, bit(version, place));
  }
}

// Rows of true (dark) and false for a text of at most CAPACITY bytes.
export function qr(text) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length > CAPACITY) throw new Error(`${bytes.length} bytes do not fit into one frame`);
  const grid = patterns();
  const words = interleaved(codewords(bytes));
  let place = 0;
  for (let right = SIZE - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < SIZE; step++) {
      for (const x of [right, right - 1]) {
        const y = (right + 1) & 2 ? step : SIZE - 1 - step;
        if (grid[y][x] !== null) continue;
        const dark = place < words.length * 8 && (words[place >> 3] >> (7 - (place & 7))) & 1;
        grid[y][x] = Boolean(dark) !== ((x + y) % 2 === 0);
        place++;
      }
    }
  }
  return grid;
}

export function drawn(grid, scale) { // a canvas with the quiet zone of four modules
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = (SIZE + 8) * scale;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = "#000";
  grid.forEach((row, y) => row.forEach((dark, x) => { if (dark) pen.fillRect((x + 4) * scale, (y + 4) * scale, scale, scale); }));
  return canvas;
}
