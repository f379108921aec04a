"""The screen clock against virtual recordings whose cameras are late by known amounts.

    python -P benchmarks/screen_clock.py --recordings 50

A recording is 90 s long, with a showing of two seconds every 15 s; nobody makes the cook look. Pictures are encoded
and decoded as the virtual cameras do it. The camera is late by up to 40 ms, the front camera's read-out is 5 to 12 ms
and unknown, the tablet's panel has its own rate, phase and way of writing and misses a refresh in a hundred. The line
between the two clocks is taken as known: gyroscopes give it to some hundredths of a millisecond.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator

import av
import numpy as np

from sync.screen.find import SeenScreen, find_screen
from sync.screen.offset import ReadOut, ScreenOffset, slate_offsets, together
from sync.screen.phase import showings
from virtual_kitchen.gopro.encoders import VideoEncoder
from virtual_kitchen.gopro.sensors import EXPOSURE_S, READ_OUT_MS, CameraMount
from virtual_kitchen.world.motion import simulated_motion
from virtual_kitchen.world.scene import Scene
from virtual_kitchen.world.screen import LENGTH_S, Screen, Shutter

SECONDS, EVERY_S, LARGEST_MS = 90.0, 15.0, 40.0
WIDTH, HEIGHT = 640, 360
FRONT_EXPOSURE_S = 1 / 60
OUTS = ReadOut(READ_OUT_MS / 1e3, READ_OUT_MS / 2e4), ReadOut(0.0085, 0.005)


class Film:
    """One camera of one virtual recording, filmed around the showings alone."""

    def __init__(
        self, seed: int, hz: float, focal_px: float, shutter: Shutter, late_s: float, crf: int
    ) -> None:
        self.motion, self.scene, self.screen = simulated_motion(seed), Scene(seed), Screen(seed, EVERY_S)
        self.mount = CameraMount.of_seed(seed) if late_s else None
        self.hz, self.focal_px, self.shutter, self.late_s, self.crf = hz, focal_px, shutter, late_s, crf
        rng = np.random.default_rng((seed, int(hz)))
        self.phase_s, self.drift = float(rng.uniform(0, 1 / hz)), float(rng.uniform(-4e-5, 4e-5))
        self.cpu_s = 0.0

    def read(self) -> tuple[np.ndarray, list[SeenScreen]]:
        """Return stamps (n,) and readings of all pictures in which the clock is found."""
        times, seen = [], []
        for slate in range(int(SECONDS / EVERY_S)):
            first = self.screen.first_s + slate * EVERY_S - 0.1
            numbers = np.arange(
                math.ceil((first - self.phase_s) * self.hz), (first + LENGTH_S + 0.2 - self.phase_s) * self.hz
            )
            stamps = self.phase_s + numbers / self.hz
            pictures = decoded(self._pictures(stamps * (1 + self.drift) + self.late_s), self.crf)
            for stamp, grey in zip(stamps, pictures, strict=True):
                began = time.process_time()
                found = find_screen(grey)
                self.cpu_s += time.process_time() - began
                if found is not None:
                    times.append(stamp)
                    seen.append(found)
        return np.array(times), seen

    def _pictures(self, world_s: np.ndarray) -> Iterator[np.ndarray]:
        views = self.motion.orientation(world_s)
        views = self.mount.camera_orientation(views) if self.mount is not None else views
        for at_s, view in zip(world_s, views, strict=True):
            picture = self.scene.render_i420(view, WIDTH, HEIGHT, self.focal_px)
            self.screen.draw(picture, view, self.focal_px, float(at_s), self.shutter)
            yield picture


def decoded(pictures: Iterator[np.ndarray], crf: int) -> list[np.ndarray]:
    """Encode pictures as the virtual camera does, and return what comes out again, without colour."""
    encoder = VideoEncoder(WIDTH, HEIGHT, crf)
    samples = [sample for k, one in enumerate(pictures) for sample, _ in encoder.encode(k, one)]
    samples += [sample for sample, _ in encoder.flush()]
    decoder = av.CodecContext.create("hevc", "r")
    decoder.extradata = encoder.configuration
    packets = [av.Packet(sample) for sample in samples]
    frames = [frame for packet in [*packets, None] for frame in decoder.decode(packet)]
    return [frame.to_ndarray(format="gray") for frame in frames]


def measure(seed: int) -> tuple[float, float, ScreenOffset | None, ScreenOffset | None]:
    """Film and measure one recording: true latency s, CPU s, by all showings, by the first and the last."""
    rng = np.random.default_rng(seed)
    late_s, front_out_s = float(rng.uniform(-LARGEST_MS, LARGEST_MS)) / 1e3, float(rng.uniform(0.005, 0.012))
    camera = Film(seed, 30000 / 1001, 0.62 * WIDTH, Shutter(EXPOSURE_S, READ_OUT_MS / 1e3), late_s, 30)
    front = Film(seed, 30.0, 505.0, Shutter(FRONT_EXPOSURE_S, front_out_s), 0.0, 27)
    read, seen = camera.read(), front.read()
    began = time.process_time()
    source, _ = showings(*read, OUTS[0].seconds, EXPOSURE_S * 60)
    target, _ = showings(*seen, OUTS[1].seconds, FRONT_EXPOSURE_S * 60)
    rate = (1 + camera.drift) / (1 + front.drift)
    slates = slate_offsets(source, target, lambda t_s: t_s * rate, OUTS)
    cpu_s = camera.cpu_s + front.cpu_s + time.process_time() - began
    return late_s, cpu_s, together(slates), together([slates[0], slates[-1]]) if len(slates) > 1 else None


def told(name: str, rows: list[tuple[float, ScreenOffset]]) -> None:
    """Print how far off and how honest the answers were."""
    errors_ms = np.array([found.late_s - late_s for late_s, found in rows]) * 1e3
    bounds_ms = np.array([found.bound95_s for _, found in rows]) * 1e3
    held = int((np.abs(errors_ms) <= bounds_ms).sum())
    print(
        f"{name}: {len(rows)} recordings, RMSE {np.sqrt((errors_ms**2).mean()):.2f} ms, largest error "
        f"{np.abs(errors_ms).max():.2f} ms, bound held in {held} ({held / len(rows):.0%}), median bound "
        f"{np.median(bounds_ms):.2f} ms"
    )


def main() -> None:
    """Film, measure, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=700)
    given = parser.parse_args()
    every, ends, nothing, cpu = [], [], 0, []
    for seed in range(given.first_seed, given.first_seed + given.recordings):
        late_s, cpu_s, found, rhythm = measure(seed)
        cpu.append(cpu_s)
        nothing += found is None
        if found is not None:
            every.append((late_s, found))
            said = (
                f"{found.late_s * 1e3:8.2f} +- {found.bound95_s * 1e3:.2f} ms by {len(found.slates)} showings"
            )
            print(f"seed {seed}: late {late_s * 1e3:8.2f} ms, found {said}", flush=True)
        if rhythm is not None:
            ends.append((late_s, rhythm))
    told("a showing every 15 s", every)
    told("first and last alone", ends)
    print(
        f"never seen by both cameras: {nothing}; CPU a recording without decoding: {np.median(cpu):.2f} s (median)"
    )


if __name__ == "__main__":
    main()
