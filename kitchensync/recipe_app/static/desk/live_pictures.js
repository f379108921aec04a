// The newest frames of the streams, for the live pages of one recording and of all.

import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";

const ANSWER_MS = 2500;
// Kept while tiles are redrawn; a stream without frames has none. With `waitMs` this polls the server, which answers once
// there is something new.
export function picturesAt(address, waitMs = 0) {
  const kept = new Map();
  let names = [], paused = false, afterMs = 0, isAsking = false;
  const isWanted = () => names.length > 0 && !paused && !document.hidden;
  function clear() {
    kept.clear();
    afterMs = 0;
  }
  async function draw(name, { age_ms: age, jpeg }) {
    const drawn = await createImageBitmap(new Blob([Uint8Array.from(atob(jpeg), (one) => one.charCodeAt(0))]));
    const image = kept.get(name)?.image ?? h("canvas", { role: "img", "aria-label": name });
    [image.width, image.height] = [drawn.width, drawn.height];
    image.getContext("2d").drawImage(drawn, 0, 0);
    return [name, { image, age }];
  }
  async function renew() {
    const query = new URLSearchParams([["after_ms", afterMs], ["wait_ms", waitMs], ...names.map((name) => ["stream", name])]);
    const said = await ask(`${address}?${query}`, { timeout: ANSWER_MS });
    const heard = performance.now();
    if (said.paused) { // sooner than whoever calls us knows it
      paused = true;
      return clear();
    }
    const fresh = await Promise.all(Object.entries(said.pictures).map((entry) => draw(...entry)));
    if (paused) return clear();
    for (const [name, { image, age }] of fresh) {
      image.dataset.ageMs = Math.round(age + performance.now() - heard);
      kept.set(name, { image, taken: heard - age });
    }
    afterMs = said.until_ms;
  }
  async function follow() {
    isAsking = true;
    try {
      do await renew(); while (waitMs && isWanted());
    } catch {
      clear();
    }
    isAsking = false;
  }
  return {
    look(wanted, isPaused) {
      [names, paused] = [wanted, isPaused];
      if (paused) clear();
      if (!isAsking && isWanted()) follow();
    },
    of(name) {
      const { image, taken } = kept.get(name) ?? {};
      return image && !paused ? [image, h("p", {}, t("live.picture", { seconds: Math.round((performance.now() - taken) / 1000) }))] : [];
    },
  };
}
