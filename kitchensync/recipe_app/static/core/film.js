// A video with a constant rate, addressed by frame number: exact, since it seeks to the middle of a frame.

const REACTION_S = 0.25; // reaction time from seeing something to pressing the key

export class Film {
  constructor(video, [up, down], frames) {
    this.video = video;
    this.fps = up / down;
    this.frames = frames;
    this.shown = 0; // the frame on the screen, as reported by the browser
    this.wanted = 0;
    this.asked = false; // `wanted` was requested, and the video has not played since
    this.loop = null; // [first, last] frame of the loop
    this.listeners = [];
    const drawn = (_, { mediaTime }) => {
      this.#tell(this.at(mediaTime));
      video.requestVideoFrameCallback(drawn);
    };
    video.requestVideoFrameCallback(drawn);
    video.addEventListener("seeked", () => video.paused && this.#tell(this.wanted)); // browsers do not draw a hidden video
  }

  #tell(frame) {
    this.shown = frame;
    if (!this.video.paused) this.asked = false;
    if (this.loop && !this.video.paused && frame >= this.loop[1]) this.go(this.loop[0]);
    this.listeners.forEach((listener) => listener(frame));
  }

  // The frame that a key press refers to.
  get seen() { return this.video.paused ? this.shown : Math.max(0, this.shown - Math.round(REACTION_S * this.video.playbackRate * this.fps)); }

  at(seconds) { return Math.min(this.frames - 1, Math.max(0, Math.round(seconds * this.fps))); }
  onFrame(listener) { this.listeners.push(listener); }

  go(frame) { // the middle of a frame: at its start rounding could show the frame before
    this.wanted = Math.min(this.frames - 1, Math.max(0, Math.round(frame)));
    this.asked = true;
    this.video.currentTime = (this.wanted + 0.5) / this.fps;
  }

  step(frames) {
    this.video.pause();
    this.go((this.asked || this.video.seeking ? this.wanted : this.shown) + frames); // keys may be faster than frames
  }

  play() {
    if (this.video.paused) this.video.play();
    else this.video.pause();
  }

  around(frame, seconds) { // loops around a frame
    const half = Math.round(seconds * this.fps / 2);
    this.loop = [Math.max(0, frame - half), Math.min(this.frames - 1, frame + half)];
    this.go(this.loop[0]);
    this.video.play().catch(() => null); // refused before the first touch of the page, or stopped meanwhile
  }
}

// The number of the frame at a time of the capture clock; null if the video has none.
// `taken` are pieces of the video, each a list of [number, ns] of some frames.
export function pictureAt(taken, at_ns) {
  const piece = taken.find((knots) => knots[0][1] <= at_ns && at_ns < knots.at(-1)[1] + NEAR_NS);
  if (!piece) return null;
  const after = piece.findIndex(([, ns]) => ns > at_ns);
  if (after < 0) return piece.at(-1)[0];
  const [[first, from], [last, to]] = [piece[after - 1], piece[after]];
  return Math.floor(first + (last - first) * (at_ns - from) / (to - from));
}

// The capture time of a frame; null if its piece of the video has no known time.
export function momentOf(taken, picture) {
  const piece = taken.find((knots) => knots[0][0] <= picture && picture <= knots.at(-1)[0]);
  if (!piece) return null;
  const after = Math.max(1, piece.findIndex(([number]) => number >= picture));
  if (after >= piece.length) return piece[0][1];
  const [[first, from], [last, to]] = [piece[after - 1], piece[after]];
  return Math.round(from + (to - from) * (picture - first) / (last - first));
}

const NEAR_NS = 5e7; // the last frame of a piece is shown for this long
const APART = 2; // largest difference of the videos while they play, frames

// Keeps a second video of the same length at the same time as the first.
export function follow(front, video, fps) {
  const meet = () => { front.currentTime = video.currentTime; };
  front.muted = true;
  video.addEventListener("seeking", meet);
  video.addEventListener("play", () => front.play().catch(() => null)); // refused if it was stopped meanwhile
  video.addEventListener("pause", () => { front.pause(); meet(); });
  video.addEventListener("ratechange", () => { front.playbackRate = video.playbackRate; });
  video.addEventListener("timeupdate", () => { if (!front.seeking && Math.abs(front.currentTime - video.currentTime) > APART / fps) meet(); });
}
