"""Pictures of examples for coherent mistake detection: of each half second of the range the sharpest one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from recipe_app.releases.given_films import OpenFilm
from recipe_app.releases.tables.coherence_examples import STEP_S, Example
from storage.exports.film import numbered_pictures, rate_of

GROUP = 5
"""Samples of which one picture is taken: half a second."""
_QUALITY = [cv2.IMWRITE_JPEG_QUALITY, 95]


@dataclass
class _Group:
    """Pictures of which the sharpest is wanted, by number."""

    example: Example
    number: int
    pictures: frozenset[int]
    best: tuple[float, int, Any] | None = None

    def look(self, picture: int, image: np.ndarray, sharpness: float) -> None:
        if picture in self.pictures and (self.best is None or sharpness > self.best[0]):
            self.best = (sharpness, picture, image)


def sharpest_frames(film: OpenFilm, examples: list[Example]) -> Iterator[tuple[Example, str, float, bytes]]:
    """Yield (example, name of a file, second of the film, JPEG) for each half second that is to be seen."""
    rate = rate_of(film.take)
    waiting = sorted(_groups(examples, float(rate)), key=lambda group: min(group.pictures))
    open_groups: list[_Group] = []
    for number, picture in numbered_pictures(film.take):
        while waiting and min(waiting[0].pictures) <= number:
            open_groups.append(waiting.pop(0))
        for group in [one for one in open_groups if max(one.pictures) < number]:
            open_groups.remove(group)
            yield from _written(group, float(rate))
        wanted = [group for group in open_groups if number in group.pictures]
        if wanted and (film.hidden is None or not film.hidden[number]):
            image = picture.to_ndarray(format="bgr24")
            sharpness = float(cv2.Laplacian(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), cv2.CV_64F).var())
            for group in wanted:
                group.look(number, image, sharpness)
    for group in open_groups:
        yield from _written(group, float(rate))


def _groups(examples: list[Example], rate: float) -> Iterator[_Group]:
    for example in examples:
        first, behind = example["single_frame_range"]
        for number, start in enumerate(range(first, behind, GROUP)):
            samples = range(start, min(start + GROUP, behind))
            pictures = frozenset(int((example["from"] + STEP_S * one) * rate) for one in samples)
            yield _Group(example, number, pictures)


def _written(group: _Group, rate: float) -> Iterator[tuple[Example, str, float, bytes]]:
    if group.best is not None:
        _, picture, image = group.best
        content = cv2.imencode(".jpg", image, _QUALITY)[1].tobytes()
        yield (
            group.example,
            f"frame_{group.example['example_id']}_{group.number}.jpg",
            picture / rate,
            content,
        )
