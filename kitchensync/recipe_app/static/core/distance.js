// Letter sizes for the cook's viewing distance: capitals of 23 minutes of arc, at least 16
// (ISO 9241-3), at 160 pixels an inch and capitals of 0.7 em.

const PIXELS_PER_M = 160 / 0.0254;
const CAPITALS = 0.7;
const minute = Math.PI / 180 / 60;
export const DISTANCES = [0.5, 0.7, 1, 1.5];
const STEPS = [23, 20, 18, 16, 14, 12, 11, 10]; // minutes of arc, tried in this order

const pixels = (metres, minutes) => Math.round((metres * minutes * minute * PIXELS_PER_M) / CAPITALS);

// The sizes of a step's text, largest first, and the smallest that is easy to read.
export function sizesFor(metres) {
  return { sizes: STEPS.map((minutes) => pixels(metres, minutes)), least: pixels(metres, 16) };
}

export const distance = () => (DISTANCES.includes(Number(localStorage.getItem("distance"))) ? Number(localStorage.getItem("distance")) : 1);
export const setDistance = (metres) => localStorage.setItem("distance", metres);
