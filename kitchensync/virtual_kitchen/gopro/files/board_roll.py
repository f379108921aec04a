"""The camera's video of the board show: one encoded group of pictures per place, made before the recording.

A group does not depend on other groups, so it is encoded once and written each time its place is shown. Recording
then costs only the writing and keeps up with the world.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from kitchensync.virtual_kitchen.gopro.files.encoders import VideoEncoder
from kitchensync.virtual_kitchen.world.boards import PLACE_FRAMES, PLACES, BoardPictures, BoardShow

Sample = tuple[bytes, bool]

CRF = 18  # better than the usual 30 of `VideoEncoder`: corners are measured in these frames
_THREADS = 2


class BoardRoll:
    """All groups of a show."""

    def __init__(self, show: BoardShow) -> None:
        """Encode nothing yet: `warm_up` or the first use of a group does."""
        self.show = show
        self.width, self.height = show.camera.optics.width, show.camera.optics.height
        self._groups: dict[tuple[int, int], list[Sample]] = {}
        self.configuration = self._encoder().configuration

    def warm_up(self) -> None:
        """Encode every place."""
        with ThreadPoolExecutor(_THREADS) as pool:
            parts = [range(first, PLACES, _THREADS) for first in range(_THREADS)]
            for made in pool.map(self._made, parts):
                self._groups |= made

    def _made(self, places: range) -> dict[tuple[int, int], list[Sample]]:
        pictures = BoardPictures(self.show, self.show.camera)
        return {(place, 0): list(self._encoded(pictures, place, 0)) for place in places}

    def samples(self, place: int, first: int) -> list[Sample]:
        """Return the samples (data, is a key frame) of a place from one of its frames on, beginning with a key."""
        if (place, first) not in self._groups:
            pictures = BoardPictures(self.show, self.show.camera)
            self._groups[place, first] = list(self._encoded(pictures, place, first))
        return self._groups[place, first]

    def _encoder(self) -> VideoEncoder:
        return VideoEncoder(self.width, self.height, CRF)

    def _encoded(self, pictures: BoardPictures, place: int, first: int) -> Iterator[Sample]:
        encoder = self._encoder()
        for frame in range(first, PLACE_FRAMES):
            yield from encoder.encode(frame - first, pictures.at(place, frame))
        yield from encoder.flush()


@lru_cache(maxsize=1)
def roll_of(show: BoardShow) -> BoardRoll:
    """Return the groups of a show, shared by all its videos."""
    return BoardRoll(show)


def film(roll: BoardRoll, world_s: float) -> Iterator[Sample]:
    """Yield the samples of a clip that begins at a world time, without end."""
    place, first = roll.show.moment(world_s)
    while True:
        yield from roll.samples(place, first)
        place, first = (place + 1) % PLACES, 0
