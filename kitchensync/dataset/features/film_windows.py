"""A film cut into windows of whole seconds, each as the pictures that an extractor wants of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kitchensync.dataset.features.extractor import Extractor, checked_vector
from kitchensync.dataset.source.given_films import OpenFilm
from kitchensync.sensors.shown_picture import shown_array, shown_size
from kitchensync.shell.array_types import Floats32, UInt8
from kitchensync.storage.exports.film import numbered_pictures


def windows_in(film: OpenFilm, window_s: int) -> int:
    """Return how many windows a film has; the last one may be shorter."""
    pictures = len(film.clip.even_frames)
    return -int(-pictures // (film.clip.rate * window_s))


def film_vectors(
    film: OpenFilm, name: str, extractor: Extractor, window_s: int
) -> Iterator[tuple[int, Floats32 | None]]:
    """Yield (number of the window, its vector); None where no picture of it is to be seen.

    Picture k of a film is shown at k / rate, as in the small films of a release. Raises BadExtractor,
    UnreadableMedia.
    """
    count, ahead = windows_in(film, window_s), 0
    for number, pictures in _windows(film, extractor, window_s):
        for empty in range(ahead, number):
            yield empty, None
        yield number, checked_vector(name, extractor, pictures)
        ahead = number + 1
    for empty in range(ahead, count):
        yield empty, None


def _windows(film: OpenFilm, extractor: Extractor, window_s: int) -> Iterator[tuple[int, UInt8]]:
    """Yield (number, pictures (n, height, width, 3)) of windows of which something is to be seen."""
    rate = film.clip.rate
    held: list[UInt8] = []
    current = last_slot = -1
    for number, picture in numbered_pictures(film.clip):
        slot = int(number * extractor.per_second / rate)
        if (film.hidden is not None and film.hidden[number]) or slot == last_slot:
            continue
        last_slot = slot
        window = slot // (extractor.per_second * window_s)
        if window != current and held:
            yield current, np.stack(held)
            held = []
        current = window
        across, up = shown_size(picture.width, picture.height, picture.rotation)
        width = max(1, round(across * extractor.height / up))
        held.append(shown_array(picture, width=width, height=extractor.height))
    if held:
        yield current, np.stack(held)
