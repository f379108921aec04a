"""Divide a video into windows of whole seconds, and extract a vector from the frames of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kitchensync.dataset.features.extractor import Extractor, checked_vector
from kitchensync.dataset.source.source_films import OpenFilm
from kitchensync.sensors.shown_picture import shown_array, shown_size
from kitchensync.shell.array_types import Floats32, UInt8
from kitchensync.storage.exports.film import numbered_pictures


def windows_in(film: OpenFilm, window_s: int) -> int:
    """Return the number of windows of a video; the last window may be shorter."""
    pictures = len(film.clip.even_frames)
    return -int(-pictures // (film.clip.rate * window_s))


def film_vectors(
    film: OpenFilm, name: str, extractor: Extractor, window_s: int
) -> Iterator[tuple[int, Floats32 | None]]:
    """Yield (number of the window, its vector); None if all its frames are hidden.

    Frame k is shown at k / rate, as in the small videos of a release. Raises BadExtractor, UnreadableMedia.
    """
    count, next_window = windows_in(film, window_s), 0
    for number, frames in _windows(film, extractor, window_s):
        for empty in range(next_window, number):
            yield empty, None
        yield number, checked_vector(name, extractor, frames)
        next_window = number + 1
    for empty in range(next_window, count):
        yield empty, None


def _windows(film: OpenFilm, extractor: Extractor, window_s: int) -> Iterator[tuple[int, UInt8]]:
    """Yield (number, frames (n, height, width, 3)) of windows with a visible frame."""
    rate = film.clip.rate
    images: list[UInt8] = []
    current = last_slot = -1
    for number, frame in numbered_pictures(film.clip):
        slot = int(number * extractor.per_second / rate)
        if (film.hidden is not None and film.hidden[number]) or slot == last_slot:
            continue
        last_slot = slot
        window = slot // (extractor.per_second * window_s)
        if window != current and images:
            yield current, np.stack(images)
            images = []
        current = window
        full_width, full_height = shown_size(frame.width, frame.height, frame.rotation)
        width = max(1, round(full_width * extractor.height / full_height))
        images.append(shown_array(frame, width=width, height=extractor.height))
    if images:
        yield current, np.stack(images)
