// What the live pages of one recording and of all say of cameras and disk, and the newest pictures of the streams.

import { h } from "/static/core/page.js";
import { t } from "/static/core/words.js";

const ANSWER_MS = 2500;

export const rounded = (value) => Math.round(value * 10) / 10;

export function ofCamera({ battery_percent: percent, minutes_left: minutes }) {
  return [...(percent === null ? [] : [t("live.battery", { percent })]), ...(minutes === null ? [] : [t("live.card", { minutes: Math.round(minutes) })])];
}

export function ofDisk(disk) {
  if (!disk?.free_bytes) return "";
  const gigabytes = rounded(disk.free_bytes / 1e9), minutes = disk.minutes_left;
  return minutes === null ? t("live.disk_hours", { gigabytes }) : t("live.disk", { gigabytes, minutes: Math.round(minutes) });
}

export function picturesAt(address) { // kept while the tiles are drawn anew; a stream without any has none
  const kept = new Map(), asked = new Set();
  let paused = false;
  async function renew(name) {
    if (asked.has(name)) return; // the last answer is on its way still
    asked.add(name);
    await fetched(name).catch(() => kept.delete(name));
    asked.delete(name);
  }
  async function fetched(name) {
    const answer = await fetch(`${address}/${name}`, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
    if (answer.status !== 200 || paused) return kept.delete(name);
    const drawn = await createImageBitmap(await answer.blob());
    if (paused) return kept.delete(name);
    const image = kept.get(name)?.image ?? h("canvas", { role: "img", "aria-label": name });
    [image.width, image.height] = [drawn.width, drawn.height];
    image.getContext("2d").drawImage(drawn, 0, 0);
    const age = Number(answer.headers.get("x-kitchensync-age-ms")) / 1000;
    return kept.set(name, { image, age: t("live.picture", { seconds: Math.round(age) }) });
  }
  return {
    look(names, isPaused) {
      paused = isPaused;
      if (paused) kept.clear();
      else names.forEach(renew);
    },
    of(name) {
      const { image, age } = kept.get(name) ?? {};
      return image && !paused ? [image, h("p", {}, age)] : [];
    },
  };
}
