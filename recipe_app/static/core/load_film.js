// The small film of a recording: made once, when somebody wants it first, and loaded so far that pictures can be asked for.

import { Film, follow } from "/static/core/film.js";
import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";

const LOOK_MS = 700;

// {video, front, facts, film}: `front` is what the headset saw, if it did, beside `video`; `status` says how far it is.
export async function opened(base, status) {
  const { address, front, facts } = await made(`${base}/film`, (text) => { status.textContent = text; });
  const video = await loaded(screenOf("steps.camera"), address);
  const beside = front && await loaded(screenOf("steps.front"), front), film = new Film(video, facts.fps, facts.frames);
  if (beside) follow(beside, video, film.fps);
  return { video, front: beside, facts, film };
}

// The same film of more lines where the other one is shown, at the same picture; `tell` how far it is.
export async function sharpen(base, video, tell) {
  const { address } = await made(`${base}/film?height=720`, tell), { currentTime, playbackRate, paused } = video;
  await loaded(video, address);
  Object.assign(video, { currentTime, playbackRate });
  if (!paused) video.play();
}

// The same beside questions: it helps, and nobody must wait for it.
export async function openedIn(films, base, making) {
  const { video, front, facts, film } = await opened(base, making);
  making.textContent = "";
  films.hidden = false;
  films.replaceChildren(...[video, front].filter(Boolean));
  return { facts, film };
}

async function made(place, tell) {
  let film = await ask(place);
  if (film.state === "none" || film.state === "failed") film = await ask(place, { body: {} });
  while (film.state !== "ready") {
    if (film.state === "failed") throw new Error(film.why);
    tell(t("steps.making", { done: String(Math.round(100 * (film.done || 0) / (film.whole || 1))) }));
    await new Promise((resolve) => { setTimeout(resolve, LOOK_MS); });
    film = await ask(place);
  }
  return film;
}

const screenOf = (name) => h("video", { preload: "auto", playsinline: true, "aria-label": t(name) });

function loaded(video, src) {
  return new Promise((resolve, reject) => {
    video.addEventListener("loadeddata", () => resolve(video), { once: true });
    video.addEventListener("error", () => reject(new Error(t("steps.no_film", { why: video.error.message }))), { once: true });
    video.src = src;
  });
}
