// Loads the small video of a recording until frames can be requested; it is made at the first request.

import { Film, follow } from "/static/core/film.js";
import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";

const LOOK_MS = 700;

// {video, front, facts, film}: `front` is the headset's video beside `video`, if any; `status` shows the progress.
export async function opened(base, status) {
  const { address, front, facts } = await made(`${base}/film`, status);
  const video = await loaded(screenOf("steps.camera"), address);
  const beside = front && await loaded(screenOf("steps.front"), front), film = new Film(video, facts.fps, facts.frames);
  if (beside) follow(beside, video, film.fps);
  return { video, front: beside, facts, film };
}

// Replaces the video by one of higher resolution at the same frame; `status` shows the progress.
export async function sharpen(base, video, status) {
  const { address } = await made(`${base}/film?height=720`, status), { currentTime, playbackRate, paused } = video;
  await loaded(video, address);
  Object.assign(video, { currentTime, playbackRate });
  if (!paused) video.play();
}

// The same beside questions: helpful but optional, so nothing waits for it.
export async function openedIn(films, base, making) {
  const { video, front, facts, film } = await opened(base, making);
  making.textContent = "";
  films.hidden = false;
  films.replaceChildren(...[video, front].filter(Boolean));
  return { facts, film };
}

// Polls until a video is made; if that fails, `status` shows the reason and offers a retry.
async function made(place, status) {
  let film = await ask(place);
  while (film.state !== "ready") {
    if (film.state === "absent") throw new Error(t("film.absent"));
    if (film.state === "failed") {
      await askedAgain(film, status);
      film = await ask(place, { body: {} });
    } else {
      status.textContent = stateOf(film);
      await new Promise((resolve) => { setTimeout(resolve, LOOK_MS); });
      if (!status.isConnected) await new Promise(() => null); // another screen is shown: stop here
      film = await ask(place).catch((problem) => { // no network for a while: keep the line
        if (problem.status) throw problem;
        return film;
      });
    }
  }
  return film;
}

const askedAgain = (film, status) => new Promise((resolve) => {
  const again = button(t("failed.again"), resolve, { class: "quiet", "data-key": "film-again" });
  status.replaceChildren(film.on_card ? t("film.on_card") : t("film.failed", { why: film.why }), " ", again);
});

// One line: the current state of the video, and about how long it takes.
function stateOf({ state, wait, done, whole, left_s: left }) {
  if (state === "waiting") return t(wait === "recording" ? "film.waits_for_recording" : "film.waits_for_video");
  const time = left === null || left === undefined ? "" : left < 60 ? t("film.left.seconds") : t("film.left", { count: Math.round(left / 60) });
  const said = state === "copying" ? t("film.copying") : state === "synchronizing" ? t("film.synchronizing") : t("steps.making", { done: String(Math.round(100 * (done || 0) / (whole || 1))) });
  return time ? t("film.with_time", { said, time }) : said;
}

const screenOf = (name) => h("video", { preload: "auto", playsinline: true, "aria-label": t(name) });

function loaded(video, src) {
  return new Promise((resolve, reject) => {
    video.addEventListener("loadeddata", () => resolve(video), { once: true });
    video.addEventListener("error", () => reject(new Error(t("steps.no_film", { why: video.error.message }))), { once: true });
    video.src = src;
  });
}
