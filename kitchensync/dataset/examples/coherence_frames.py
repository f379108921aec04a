"""Frames for coherence examples: the sharpest of each group of samples, or those at the boundaries of steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import Any, TypedDict

import av
import cv2
import numpy as np

from kitchensync.dataset.source.source_films import OpenFilm
from kitchensync.dataset.tables.boundary_examples import BoundaryExample
from kitchensync.dataset.tables.coherence_examples import STEP_S, StepExample, recording_of
from kitchensync.sensors.shown_picture import even_width, shown_array, shown_size
from kitchensync.storage.exports.film import numbered_pictures

GROUP = 5
"""Samples from which one frame is taken: half a second."""
_QUALITY = [cv2.IMWRITE_JPEG_QUALITY, 95]


@dataclass
class _Group:
    """Frame numbers, and the sharpest of these frames so far; `key` is what the caller knows the group by."""

    key: Any
    frames: frozenset[int]
    best: tuple[float, int, np.ndarray] | None = None

    def offer(self, frame: int, image: np.ndarray, sharpness: float) -> None:
        if self.best is None or sharpness > self.best[0]:
            self.best = (sharpness, frame, image)


def _best_frames(
    film: OpenFilm, groups: Iterable[_Group], as_image: Callable[[av.VideoFrame], np.ndarray]
) -> Iterator[_Group]:
    """Yield each group after its last frame was decoded; `best` is None if all its frames are hidden."""
    waiting = deque(sorted(groups, key=lambda group: min(group.frames)))
    open_groups: list[_Group] = []
    for number, frame in numbered_pictures(film.clip):
        while waiting and min(waiting[0].frames) <= number:
            open_groups.append(waiting.popleft())
        for group in [group for group in open_groups if max(group.frames) < number]:
            open_groups.remove(group)
            yield group
        here = [group for group in open_groups if number in group.frames]
        if here and (film.hidden is None or not film.hidden[number]):
            image = as_image(frame)
            sharpness = 0.0
            if any(len(group.frames) > 1 for group in here):
                grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
                sharpness = float(cv2.Laplacian(grey, cv2.CV_64F).var())
            for group in here:
                group.offer(number, image, sharpness)
    yield from open_groups


def _jpeg(image: np.ndarray) -> bytes:
    return cv2.imencode(".jpg", image, _QUALITY)[1].tobytes()


def sharpest_frames(
    film: OpenFilm, examples: list[StepExample]
) -> Iterator[tuple[StepExample, str, float, bytes]]:
    """Yield (example, file name, second of the video, JPEG) for each half second that is not hidden."""
    rate = float(film.clip.rate)
    groups = []
    for example in examples:
        first, stop = example["single_frame_range"]
        for number, start in enumerate(range(first, stop, GROUP)):
            samples = range(start, min(start + GROUP, stop))
            frames = frozenset(int((example["from"] + STEP_S * sample) * rate) for sample in samples)
            groups.append(_Group((example, number), frames))
    for group in _best_frames(film, groups, partial(shown_array, format="bgr24")):
        if group.best is not None:
            (example, number), (_, frame, image) = group.key, group.best
            yield example, f"frame_{example['example_id']}_{number}.jpg", frame / rate, _jpeg(image)


HEIGHT = 360
ROUNDED_S = 0.001
"""Step times are whole milliseconds: a step that begins with a frame may be rounded to just before it."""
DARKEST, BRIGHTEST, ALIKE = 0.2, 255, 0.95  # published limits; the published code compares 0.2 with 0 to 255
UNSEEN, IS_DARK = "examples of which a picture is hidden", "examples whose pictures are dark"
IS_ALIKE = "examples that look alike before and after"
NEAR_S = (-0.05, -0.025, 0.0, 0.025, 0.05)  # as in the paper: the sharpest of five is taken
Frame = tuple[str, int]
"""Recording and frame number."""


class FrameNames(TypedDict):
    """File names of an example's frames, and their seconds of the video."""

    frames: list[str]
    frame_times: list[float]


class BoundaryFrames:
    """Extract the frames of boundary examples, video by video, then decide which examples are left out.

    As published, a step is dark if the mean of its frames is below 0.2 of 255, that is only if they are black, and
    frames of other steps are not judged. `corrected`: below 0.2 of full brightness, frames of other steps too, and
    the sharpest of five frames around each moment is taken, as in the paper.
    """

    def __init__(self, rows: list[BoundaryExample], *, corrected: bool) -> None:
        """Take the examples."""
        self._rows, self._corrected = rows, corrected
        self._darkest = DARKEST * (BRIGHTEST if corrected else 1)
        self._films: dict[str, tuple[float, int]] = {}
        self._brightness: dict[Frame, float] = {}
        self._chosen: dict[Frame, Frame] = {}
        self._likeness: dict[tuple[Frame, Frame], float] = {}

    def extract(self, film: OpenFilm, recording: str) -> Iterator[tuple[str, bytes]]:
        """Yield (name, JPEG) of all frames of a video that may be needed."""
        self._films[recording] = float(film.clip.rate), len(film.clip.even_frames)
        steps = {
            tuple(self._step_frames(row))
            for row in self._rows
            if recording_of(row) == recording and not row["mistake"]
        }
        needed = {self._frame(recording, row["time"]) for row in self._rows if row["recording"] == recording}
        needed = needed.union(*steps)
        starts = {frames[0] for frames in steps}
        before: dict[Frame, np.ndarray] = {}
        for group in _best_frames(film, (_Group(frame, self._near(frame)) for frame in needed), _small):
            if group.best is None:
                continue
            frame, (_, number, image) = group.key, group.best
            self._brightness[frame], self._chosen[frame] = float(image.mean()), (recording, number)
            for start, _, end in steps:
                if end == frame and start in before:
                    self._likeness[start, end] = likeness(before[start], image)
            if frame in starts:
                before[frame] = image
            yield f"{recording}/{number:06d}.jpg", _jpeg(image)

    def why_left_out(self, row: BoundaryExample) -> str:
        """Return why an example is left out; empty if it is kept or its videos are missing."""
        if recording_of(row) in self._films:
            frames = self._step_frames(row)
            brightness = [self._brightness.get(frame, -1.0) for frame in frames]
            if min(brightness) < 0:
                return UNSEEN
            if sum(brightness) / len(brightness) < self._darkest:
                return IS_DARK
            if self._likeness.get((frames[0], frames[-1]), 1.0) >= ALIKE:
                return IS_ALIKE
        if row["recording"] in self._films:
            shown = self._brightness.get(self._frame(row["recording"], row["time"]), -1.0)
            if shown < 0:
                return UNSEEN
            if self._corrected and shown < self._darkest:
                return IS_DARK
        return ""

    def names_of(self, row: BoundaryExample, folder: str) -> FrameNames:
        """Return the name of an example's frame and its second of the video; empty if the video is missing."""
        if row["recording"] not in self._films:
            return {"frames": [], "frame_times": []}
        recording, number = self._chosen[self._frame(row["recording"], row["time"])]
        rate, _ = self._films[row["recording"]]
        return {
            "frames": [f"{folder}/{recording}/{number:06d}.jpg"],
            "frame_times": [round(number / rate, 4)],
        }

    def _step_frames(self, row: BoundaryExample) -> list[Frame]:
        """Return the frames at the start, middle and end of the step."""
        start, end = row["step"]
        return [self._frame(recording_of(row), at_s) for at_s in (start, (start + end) / 2, end)]

    def _frame(self, recording: str, at_s: float) -> Frame:
        rate, count = self._films[recording]
        return recording, min(int((at_s + ROUNDED_S) * rate), count - 1)

    def _near(self, frame: Frame) -> frozenset[int]:
        """Return the frame numbers from which the sharpest is taken."""
        recording, number = frame
        rate, count = self._films[recording]
        if not self._corrected:
            return frozenset([number])
        near = (number + floor(shift_s * rate) for shift_s in NEAR_S)
        return frozenset(min(max(n, 0), count - 1) for n in near)


def _small(frame: av.VideoFrame) -> np.ndarray:
    width, height = shown_size(frame.width, frame.height, frame.rotation)
    return shown_array(frame, format="bgr24", width=even_width(width, height, HEIGHT), height=HEIGHT)


def likeness(first: np.ndarray, second: np.ndarray) -> float:
    """Return the cosine of the pixels of two images of the same size."""
    a, b = (image.astype(np.float32).ravel() for image in (first, second))
    return float(a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1.0))
