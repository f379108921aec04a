// A film of constant rate, by the number of its picture: exact, since a picture is asked for by its middle.

const REACTION_S = 0.25; // from what is seen to the key that says so

export class Film {
  constructor(video, [up, down], frames) {
    this.video = video;
    this.fps = up / down;
    this.frames = frames;
    this.shown = 0; // the picture that is on the screen, as the browser says
    this.wanted = 0;
    this.asked = false; // `wanted` was asked for, and the film has not played since
    this.loop = null; // [first, last] that is played again and again
    this.listeners = [];
    const drawn = (_, { mediaTime }) => {
      this.#tell(this.at(mediaTime));
      video.requestVideoFrameCallback(drawn);
    };
    video.requestVideoFrameCallback(drawn);
    video.addEventListener("seeked", () => video.paused && this.#tell(this.wanted)); // a film out of sight is not drawn
  }

  #tell(frame) {
    this.shown = frame;
    if (!this.video.paused) this.asked = false;
    if (this.loop && !this.video.paused && frame >= this.loop[1]) this.go(this.loop[0]);
    this.listeners.forEach((listener) => listener(frame));
  }

  // The frame that somebody who presses a key means.
  get seen() { return this.video.paused ? this.shown : Math.max(0, this.shown - Math.round(REACTION_S * this.video.playbackRate * this.fps)); }

  at(seconds) { return Math.min(this.frames - 1, Math.max(0, Math.round(seconds * this.fps))); }
  onFrame(listener) { this.listeners.push(listener); }

  go(frame) { // the middle of a picture: no rounding of its beginning shows the one before
    this.wanted = Math.min(this.frames - 1, Math.max(0, Math.round(frame)));
    this.asked = true;
    this.video.currentTime = (this.wanted + 0.5) / this.fps;
  }

  step(frames) {
    this.video.pause();
    this.go((this.asked || this.video.seeking ? this.wanted : this.shown) + frames); // keys may come faster than pictures
  }

  play() {
    if (this.video.paused) this.video.play();
    else this.video.pause();
  }

  around(frame, seconds) { // a loop about a moment
    const half = Math.round(seconds * this.fps / 2);
    this.loop = [Math.max(0, frame - half), Math.min(this.frames - 1, frame + half)];
    this.go(this.loop[0]);
    this.video.play().catch(() => null); // refused before somebody touched the page, or stopped meanwhile
  }
}

// The number of the picture that was taken at a moment of the capture clock; null where the film has none.
// `taken` are pieces of the film, each [number, ns] of some of its pictures.
export function pictureAt(taken, at_ns) {
  const piece = taken.find((knots) => knots[0][1] <= at_ns && at_ns < knots.at(-1)[1] + NEAR_NS);
  if (!piece) return null;
  const after = piece.findIndex(([, ns]) => ns > at_ns);
  if (after < 0) return piece.at(-1)[0];
  const [[first, from], [last, to]] = [piece[after - 1], piece[after]];
  return Math.floor(first + (last - first) * (at_ns - from) / (to - from));
}

// The moment of the capture clock at which a picture was taken; null where its piece of the film has no place in time.
export function momentOf(taken, picture) {
  const piece = taken.find((knots) => knots[0][0] <= picture && picture <= knots.at(-1)[0]);
  if (!piece) return null;
  const after = Math.max(1, piece.findIndex(([number]) => number >= picture));
  if (after >= piece.length) return piece[0][1];
  const [[first, from], [last, to]] = [piece[after - 1], piece[after]];
  return Math.round(from + (to - from) * (picture - first) / (last - first));
}

const NEAR_NS = 5e7; // a picture stands so long
const APART = 2; // pictures that the films may be apart while they play

// A second film of the same length shows the same moment as the first, whatever is done with that.
export function follow(front, video, fps) {
  const meet = () => { front.currentTime = video.currentTime; };
  front.muted = true;
  video.addEventListener("seeking", meet);
  video.addEventListener("play", () => front.play().catch(() => null)); // refused where it was stopped meanwhile
  video.addEventListener("pause", () => { front.pause(); meet(); });
  video.addEventListener("ratechange", () => { front.playbackRate = video.playbackRate; });
  video.addEventListener("timeupdate", () => { if (!front.seeking && Math.abs(front.currentTime - video.currentTime) > APART / fps) meet(); });
}
