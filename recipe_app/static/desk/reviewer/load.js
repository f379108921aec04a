// The small film of a recording: made once, when somebody wants it first, and loaded so far that pictures can be asked for.

import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";

const LOOK_MS = 700;

// {video, front, facts}: `front` is what the headset saw, if it did; `status` says how far the film is.
export async function opened(base, status) {
  const { address, front, facts } = await made(base, status);
  const video = await loaded(address, "steps.camera");
  return { video, front: front && await loaded(front, "steps.front"), facts };
}

async function made(base, status) {
  let film = await ask(`${base}/film`);
  if (film.state === "none" || film.state === "failed") film = await ask(`${base}/film`, { body: {} });
  while (film.state !== "ready") {
    if (film.state === "failed") throw new Error(film.why);
    status.textContent = t("steps.making", { done: String(Math.round(100 * (film.done || 0) / (film.whole || 1))) });
    await new Promise((resolve) => { setTimeout(resolve, LOOK_MS); });
    film = await ask(`${base}/film`);
  }
  return film;
}

function loaded(src, name) {
  const video = h("video", { src, preload: "auto", playsinline: true, "aria-label": t(name) });
  return new Promise((resolve, reject) => {
    video.addEventListener("loadeddata", () => resolve(video), { once: true });
    video.addEventListener("error", () => reject(new Error(t("steps.no_film", { why: video.error.message }))), { once: true });
  });
}
