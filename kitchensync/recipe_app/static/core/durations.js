// Finds durations in texts written on the tablet, for timers; like kitchensync/task_graphs/text/written_numbers.py and spans.py, compared by a test.

const WORDS = { one: 1, two: 2, three: 3, four: 4, five: 5, six: 6 };
const VULGAR = { "½": 1 / 2, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 1 / 4, "¾": 3 / 4, "⅕": 1 / 5, "⅖": 2 / 5, "⅗": 3 / 5, "⅘": 4 / 5,
  "⅙": 1 / 6, "⅚": 5 / 6, "⅛": 1 / 8, "⅜": 3 / 8, "⅝": 5 / 8, "⅞": 7 / 8 };
const SIGNS = Object.keys(VULGAR).join("");
const WORD = Object.keys(WORDS).join("|");
const MEASURE = String.raw`\s+(?:cup|tsp|tbsp|teaspoon|tablespoon|lit(?:re|er)|kg|kilo|ounce|pound|stick|pinch|hour|minute|second)`;
const numberBefore = (after) => String.raw`(?:(?<!\d)(?<!\d[.,/⁄])(?<![${SIGNS}])(?:\d+\s+and\s+a\s+half\b|\d+\s*[${SIGNS}]|\d+(?:\s+|-)\d+[/⁄]\d+|\d+[/⁄]\d+|[${SIGNS}]|\d+(?:[.,]\d+)*|(?<!\w)\.\d+)(?![\d${SIGNS}])(?![.,/⁄]\d)|\b(?:(?:${WORD})(?:\s+and\s+a\s+half)?|(?:half|(?:a\s+)?quarter\s+of)\s+an?${after})\b)`;
const NUMBER = numberBefore(`(?=${MEASURE})`);
const PLAIN = new RegExp(numberBefore(""), "gi");
const AMOUNT = String.raw`${NUMBER}(?:\s*(?:[-–—−]|to|bis)\s*${NUMBER})?`;
const UNIT = String.raw`(?:seconds?|secs?\.?|minutes?|mins?\.?|hours?|hrs?|h)\b`;
const BETWEEN = String.raw`(?:\s*-)?\s*(?:more\s+|additional\s+)?`;
const ONE = String.raw`${AMOUNT}${BETWEEN}${UNIT}`;
const ALL = new RegExp(String.raw`${ONE}(?:\s+(?:and\s+)?${ONE})*`, "gi");
const PART = new RegExp(String.raw`(${AMOUNT})${BETWEEN}(${UNIT})`, "gi");
const SECONDS = { s: 1, m: 60, h: 3600 };
const LONGEST = 86_400;

export function durations(text) {
  const said = text.match(ALL) ?? [];
  return said.map(duration).filter(({ seconds, most_seconds }) => seconds >= 1 && most_seconds <= LONGEST);
}

function duration(text) {
  let [least, most] = [0, 0];
  for (const [, amount, unit] of text.matchAll(PART)) {
    const values = amount.match(PLAIN).map((number) => value(number) * SECONDS[unit[0].toLowerCase()]);
    [least, most] = [least + Math.min(...values), most + Math.max(...values)];
  }
  return { seconds: Math.round(least), most_seconds: Math.round(most), text };
}

// NaN for an ambiguous number: then no timer is offered.
function value(number) {
  const said = number.toLowerCase().replaceAll("⁄", "/");
  if (/^\S+\s+and\s+a\s+half$/.test(said)) return (WORDS[said.split(/\s/)[0]] ?? Number.parseInt(said, 10)) + 1 / 2;
  if (said.startsWith("half")) return 1 / 2;
  if (said.includes("quarter")) return 1 / 4;
  if (said in WORDS) return WORDS[said];
  if (said.at(-1) in VULGAR) return Number(said.slice(0, -1).trim() || 0) + VULGAR[said.at(-1)];
  if (said.includes("/")) {
    const [, whole = 0, above, below] = said.match(/^(?:(\d+)[\s-]+)?(\d+)\/(\d+)$/);
    return Number(below) ? Number(whole) + Number(above) / Number(below) : NaN;
  }
  if (/^[1-9]\d{0,2}(?:,\d{3})+$/.test(said)) return Number(said.replaceAll(",", ""));
  if (/^[1-9]\d{0,2}(?:\.\d{3})+$|^.*[.,].*[.,].*$/.test(said)) return NaN;
  return Number(said.replace(",", "."));
}
