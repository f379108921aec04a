"""Pictures of steps that are judged: the sharpest of those that are looked at, or those at the steps' boundaries."""

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

from kitchensync.dataset.source.given_films import OpenFilm
from kitchensync.dataset.tables.boundary_examples import BoundaryExample
from kitchensync.dataset.tables.coherence_examples import STEP_S, StepExample, recording_of
from kitchensync.sensors.shown_picture import even_width, shown_array, shown_size
from kitchensync.storage.exports.film import numbered_pictures

GROUP = 5
"""Samples of which one picture is taken: half a second."""
_QUALITY = [cv2.IMWRITE_JPEG_QUALITY, 95]


@dataclass
class _Group:
    """Pictures of which the sharpest is wanted, by number."""

    of: Any
    pictures: frozenset[int]
    best: tuple[float, int, np.ndarray] | None = None

    def look(self, picture: int, image: np.ndarray, sharpness: float) -> None:
        if picture in self.pictures and (self.best is None or sharpness > self.best[0]):
            self.best = (sharpness, picture, image)


def _looked_at(
    film: OpenFilm, groups: Iterable[_Group], shown: Callable[[av.VideoFrame], np.ndarray]
) -> Iterator[_Group]:
    """Yield each group when all its pictures went by; it has none where they are hidden in a pause."""
    waiting = deque(sorted(groups, key=lambda group: min(group.pictures)))
    open_groups: list[_Group] = []
    for number, picture in numbered_pictures(film.clip):
        while waiting and min(waiting[0].pictures) <= number:
            open_groups.append(waiting.popleft())
        for group in [one for one in open_groups if max(one.pictures) < number]:
            open_groups.remove(group)
            yield group
        wanted = [group for group in open_groups if number in group.pictures]
        if wanted and (film.hidden is None or not film.hidden[number]):
            image = shown(picture)
            is_chosen = any(len(group.pictures) > 1 for group in wanted)
            sharpness = 0.0
            if is_chosen:
                grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
                sharpness = float(cv2.Laplacian(grey, cv2.CV_64F).var())
            for group in wanted:
                group.look(number, image, sharpness)
    yield from open_groups


def _jpeg(image: np.ndarray) -> bytes:
    return cv2.imencode(".jpg", image, _QUALITY)[1].tobytes()


def sharpest_frames(
    film: OpenFilm, examples: list[StepExample]
) -> Iterator[tuple[StepExample, str, float, bytes]]:
    """Yield (example, name of a file, second of the film, JPEG) for each half second that is to be seen."""
    rate = float(film.clip.rate)
    groups = []
    for example in examples:
        first, behind = example["single_frame_range"]
        for number, start in enumerate(range(first, behind, GROUP)):
            samples = range(start, min(start + GROUP, behind))
            pictures = frozenset(int((example["from"] + STEP_S * one) * rate) for one in samples)
            groups.append(_Group((example, number), pictures))
    for group in _looked_at(film, groups, partial(shown_array, format="bgr24")):
        if group.best is not None:
            (example, number), (_, picture, image) = group.of, group.best
            yield example, f"frame_{example['example_id']}_{number}.jpg", picture / rate, _jpeg(image)


HEIGHT = 360
ROUNDED_S = 0.001
"""Times of steps are whole milliseconds: what begins with a picture may say a little less."""
DARKEST, BRIGHTEST, ALIKE = 0.2, 255, 0.95
UNSEEN, IS_DARK = "examples of which a picture is hidden", "examples whose pictures are dark"
IS_ALIKE = "examples that look alike before and after"
NEAR_S = (-0.05, -0.025, 0.0, 0.025, 0.05)
Picture = tuple[str, int]
"""Recording and number of the picture."""


class NamedPictures(TypedDict):
    """What an example has of its pictures: their names, and their seconds of the film."""

    frames: list[str]
    frame_times: list[float]


class BoundaryFrames:
    """The pictures of examples at boundaries, film by film; then which examples they leave out.

    As published a step is dark where its pictures' mean is below 0.2 of 255, so only if they are black, and pictures
    of other steps are not judged; `corrected`: below 0.2 of full brightness, those too, and of five pictures around
    each moment the sharpest is taken, as the paper says.
    """

    def __init__(self, rows: list[BoundaryExample], *, corrected: bool) -> None:
        """Take the examples whose pictures are looked at."""
        self._rows, self._corrected = rows, corrected
        self._darkest = DARKEST * (BRIGHTEST if corrected else 1)
        self._films: dict[str, tuple[float, int]] = {}
        self._light: dict[Picture, float] = {}
        self._chosen: dict[Picture, Picture] = {}
        self._likeness: dict[tuple[Picture, Picture], float] = {}

    def look(self, film: OpenFilm, recording: str) -> Iterator[tuple[str, bytes]]:
        """Yield (name, JPEG) of all pictures of a film that may be needed."""
        self._films[recording] = float(film.clip.rate), len(film.clip.even_frames)
        steps = {
            tuple(self._around(row))
            for row in self._rows
            if recording_of(row) == recording and not row["mistake"]
        }
        wanted = {self._shown(row) for row in self._rows if row["recording"] == recording}.union(*steps)
        first = {one[0] for one in steps}
        before: dict[Picture, np.ndarray] = {}
        for group in _looked_at(film, (_Group(one, self._near(one)) for one in wanted), _small):
            if group.best is None:
                continue
            here, (_, number, image) = group.of, group.best
            self._light[here], self._chosen[here] = float(image.mean()), (recording, number)
            for start, _, end in steps:
                if end == here and start in before:
                    self._likeness[start, end] = likeness(before[start], image)
            if here in first:
                before[here] = image
            yield f"{recording}/{number:06d}.jpg", _jpeg(image)

    def why_left_out(self, row: BoundaryExample) -> str:
        """Return why an example's pictures do not show it; nothing where they do, or its films are not here."""
        if recording_of(row) in self._films:
            around = self._around(row)
            light = [self._light.get(one, -1.0) for one in around]
            if min(light) < 0:
                return UNSEEN
            if sum(light) / len(light) < self._darkest:
                return IS_DARK
            if self._likeness.get((around[0], around[-1]), 1.0) >= ALIKE:
                return IS_ALIKE
        if row["recording"] in self._films:
            shown = self._light.get(self._shown(row), -1.0)
            if shown < 0:
                return UNSEEN
            if self._corrected and shown < self._darkest:
                return IS_DARK
        return ""

    def named(self, row: BoundaryExample, folder: str) -> NamedPictures:
        """Return the name of an example's picture and its second of the film; none where the film is not here."""
        if row["recording"] not in self._films:
            return {"frames": [], "frame_times": []}
        shown, rate = self._chosen[self._shown(row)], self._films[row["recording"]][0]
        name = f"{folder}/{shown[0]}/{shown[1]:06d}.jpg"
        return {"frames": [name], "frame_times": [round(shown[1] / rate, 4)]}

    def _around(self, row: BoundaryExample) -> list[Picture]:
        start, end = row["step"]
        return [self._picture(recording_of(row), at_s) for at_s in (start, (start + end) / 2, end)]

    def _shown(self, row: BoundaryExample) -> Picture:
        return self._picture(row["recording"], row["time"])

    def _picture(self, recording: str, at_s: float) -> Picture:
        rate, count = self._films[recording]
        return recording, min(int((at_s + ROUNDED_S) * rate), count - 1)

    def _near(self, picture: Picture) -> frozenset[int]:
        """Return the pictures of which the sharpest is taken for one."""
        rate, count = self._films[picture[0]]
        if not self._corrected:
            return frozenset([picture[1]])
        near = (picture[1] + floor(shift_s * rate) for shift_s in NEAR_S)
        return frozenset(min(max(one, 0), count - 1) for one in near)


def _small(picture: av.VideoFrame) -> np.ndarray:
    across, up = shown_size(picture.width, picture.height, picture.rotation)
    wide = even_width(across, up, HEIGHT)
    return shown_array(picture, format="bgr24", width=wide, height=HEIGHT)


def likeness(first: np.ndarray, second: np.ndarray) -> float:
    """Return the cosine of the pixels of two pictures of one size."""
    one, other = (image.astype(np.float32).ravel() for image in (first, second))
    return float(one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1.0))
