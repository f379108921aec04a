// QR codes of links, made in the page: error correction L, byte mode (ISO/IEC 18004). Two sizes are enough: version 6, with a
// mask that breaks up the padding, and version 10 for long addresses.

const LONG = { version: 10, capacity: 271, size: 57, blocks: [68, 68, 69, 69], alignment: [6, 28, 50], mask: 0 }; // blocks of data codewords
const LINK = { version: 6, capacity: 134, size: 41, blocks: [68, 68], alignment: [6, 34], mask: 2 };
const CHECKS = 18; // error-correction codewords per block
const MASKED = { 0: (x, y) => (x + y) % 2 === 0, 2: (x) => x % 3 === 0 };

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

function codewords(bytes, { version, blocks }) {
  const all = version < 10 ? [0x40 | (bytes.length >> 4)] // byte mode, 8 bits of length
    : [0x40 | (bytes.length >> 12), (bytes.length >> 4) & 0xff]; // or 16
  let half = bytes.length & 0xf;
  for (const byte of bytes) {
    all.push((half << 4) | (byte >> 4));
    half = byte & 0xf;
  }
  all.push(half << 4); // ends with the terminator
  const room = blocks.reduce((sum, length) => sum + length);
  for (let pad = 0xec; all.length < room; pad ^= 0xec ^ 0x11) all.push(pad);
  return all;
}

function interleaved(data, lengths) {
  const polynomial = generator();
  let at = 0;
  const blocks = lengths.map((length) => data.slice(at, at += length));
  const checks = blocks.map((block) => checksOf(block, polynomial));
  const column = (rows, place) => rows.filter((row) => place < row.length).map((row) => row[place]);
  return [...Array(Math.max(...lengths)).keys()].flatMap((place) => column(blocks, place))
    .concat([...Array(CHECKS).keys()].flatMap((place) => column(checks, place)));
}

function patterns(form) { // null for data modules
  const { size, alignment } = form;
  const grid = Array.from({ length: size }, () => new Array(size).fill(null));
  const set = (x, y, dark) => { if (x >= 0 && y >= 0 && x < size && y < size) grid[y][x] = Boolean(dark); };
  for (let place = 0; place < size; place++) { set(6, place, place % 2 === 0); set(place, 6, place % 2 === 0); }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) {
    for (let dy = -4; dy <= 4; dy++) {
      for (let dx = -4; dx <= 4; dx++) set(x + dx, y + dy, ![2, 4].includes(Math.max(Math.abs(dx), Math.abs(dy))));
    }
  }
  for (const y of alignment) {
    for (const x of alignment) {
      if ([x, y].includes(6) && (x === y || [x, y].includes(alignment.at(-1)))) continue;
      for (let dy = -2; dy <= 2; dy++) {
        for (let dx = -2; dx <= 2; dx++) set(x + dx, y + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
      }
    }
  }
  facts(set, form);
  return grid;
}

function remainder(value, bits, polynomial) {
  let rest = value;
  for (let bit = 0; bit < bits; bit++) rest = (rest << 1) ^ ((rest >> (bits - 1)) * polynomial);
  return (value << bits) | rest;
}

function facts(set, { version: number, size, mask }) { // format and, for large codes, version, each twice
  const format = remainder((1 << 3) | mask, 10, 0x537) ^ 0x5412;
  const version = remainder(number, 12, 0x1f25);
  const bit = (value, place) => (value >> place) & 1;
  for (let place = 0; place < 15; place++) {
    const dark = bit(format, place);
    if (place < 6) set(8, place, dark);
    else if (place < 8) set(8, place + 1, dark);
    else set(place === 8 ? 7 : 14 - place, 8, dark);
    if (place < 8) set(size - 1 - place, 8, dark);
    else set(8, size - 15 + place, dark);
  }
  set(8, size - 8, true);
  for (let place = 0; place < 18 && number >= 7; place++) {
    const [a, b] = [size - 11 + (place % 3), Math.floor(place / 3)];
    set(a, b, bit(version, place));
    set(b, a, bit(version, place));
  }
}

// Rows of true (dark) and false; fewer for a short link, so that cameras read it more easily.
export function qrOfLink(text) {
  const bytes = new TextEncoder().encode(text);
  return made(bytes, bytes.length > LINK.capacity ? LONG : LINK);
}

function made(bytes, form) {
  if (bytes.length > form.capacity) throw new Error(`${bytes.length} bytes do not fit into one code`);
  const grid = patterns(form);
  const words = interleaved(codewords(bytes, form), form.blocks);
  const { size } = form;
  let place = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step++) {
      for (const x of [right, right - 1]) {
        const y = (right + 1) & 2 ? step : size - 1 - step;
        if (grid[y][x] !== null) continue;
        const dark = place < words.length * 8 && (words[place >> 3] >> (7 - (place & 7))) & 1;
        grid[y][x] = Boolean(dark) !== MASKED[form.mask](x, y);
        place++;
      }
    }
  }
  return grid;
}

export function drawn(grid, scale) { // a canvas with a quiet zone of four modules
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = (grid.length + 8) * scale;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = "#000";
  grid.forEach((row, y) => row.forEach((dark, x) => { if (dark) pen.fillRect((x + 4) * scale, (y + 4) * scale, scale, scale); }));
  return canvas;
}
