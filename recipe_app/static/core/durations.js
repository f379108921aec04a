// The durations that a text names, for timers of what was written on the tablet; as graphs/text/timers.py, and a test compares.

const WORDS = { one: 1, two: 2, three: 3, four: 4, five: 5, six: 6 };
const NUMBER = String.raw`(?:\d+\s+\d+/\d+|\d+/\d+|\d+\.\d+|\d+|(?:one|two|three|four|five|six)\b)`;
const AMOUNT = String.raw`${NUMBER}(?:\s*(?:-|–|to)\s*${NUMBER})?`;
const UNIT = String.raw`(?:seconds?|secs?\.?|minutes?|mins?\.?|hours?|hrs?)\b`;
const ONE = String.raw`${AMOUNT}\s+(?:more\s+|additional\s+)?${UNIT}`;
const SECONDS = { s: 1, m: 60, h: 3600 };
const LONGEST = 86_400;

export function durations(text) {
  const said = text.match(new RegExp(String.raw`${ONE}(?:\s+(?:and\s+)?${ONE})*`, "gi")) ?? [];
  return said.map(duration).filter(({ seconds, most_seconds }) => seconds >= 1 && most_seconds <= LONGEST);
}

function duration(text) {
  let [least, most] = [0, 0];
  for (const [, amount, unit] of text.matchAll(new RegExp(String.raw`(${AMOUNT})\s+(?:more\s+|additional\s+)?(${UNIT})`, "gi"))) {
    const values = amount.match(new RegExp(NUMBER, "gi")).map((number) => value(number) * SECONDS[unit[0].toLowerCase()]);
    [least, most] = [least + Math.min(...values), most + Math.max(...values)];
  }
  return { seconds: Math.round(least), most_seconds: Math.round(most), text };
}

const value = (number) => WORDS[number.toLowerCase()] ?? number.split(/\s+/).map(fraction).reduce((sum, part) => sum + part, 0);

function fraction(part) {
  const [above, below = 1] = part.split("/").map(Number);
  return above / below;
}
