"""Camera video on a fixed grid of world times, so that its frames can be encoded in advance."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.gopro.files.encoders import VideoEncoder
from kitchensync.virtual_kitchen.gopro.files.sensors import CameraMount, frame_media_s
from kitchensync.virtual_kitchen.kitchen import Kitchen, encode_groups
from kitchensync.virtual_kitchen.world.clocks import CameraCrystal
from kitchensync.virtual_kitchen.world.frame_counter import draw_i420

GROUP = 30  # keyint of the encoder: a group is encoded without its neighbours
Sample = tuple[bytes, bool]
"""Encoded frame, and whether it is a key frame."""


class FilmGrid:
    """The frames of one camera: frame j shows the world j frame periods of the camera's crystal after its start.

    A clip begins at a frame of the grid. Every 30th frame is the key frame of a new encoder.
    """

    def __init__(self, kitchen: Kitchen, mount: CameraMount, crystal: CameraCrystal) -> None:
        self.kitchen, self._mount, self._crystal = kitchen, mount, crystal
        self.prepared: dict[int, Sample] = {}
        "Encoded frames of whole groups, by number."

    def world_s(self, number: int) -> float:
        """Return the world time of a frame."""
        return float(self._crystal.world_s_at(frame_media_s(number), 0.0))

    def first_at(self, world_s: float) -> int:
        """Return the number of the first frame at or after a world time."""
        return ceil(world_s / self.world_s(1) - 1e-6)

    def picture(self, number: int) -> npt.NDArray[np.uint8]:
        """Render a frame, planar 4:2:0."""
        kitchen, (width, height) = self.kitchen, self.kitchen.gopro_size
        head = kitchen.motion.orientation(np.array([self.world_s(number)]))
        view = self._mount.camera_orientation(head)[0]
        return kitchen.scene.render_i420(view, width, height, self._mount.focal_per_width * width)

    def prepare(self, end_s: float) -> None:
        """Encode the frames until a world time, in whole groups."""
        self.prepared |= encode_groups(self._group, range(0, self.first_at(end_s), GROUP))

    def _group(self, first: int) -> dict[int, Sample]:
        view = GridView(self, first)
        samples = [sample for number in range(GROUP) for sample in view.frame(number, np.empty(0))]
        return dict(enumerate([*samples, *view.flush()], start=first))


class GridView:
    """The frames of one clip, from frame `first` of the grid on: prepared ones, or encoded now."""

    def __init__(self, grid: FilmGrid, first: int) -> None:
        self.size = grid.kitchen.gopro_size
        self._grid, self._first = grid, first
        self._encoder: VideoEncoder | None = VideoEncoder(*self.size)
        self.configuration = self._encoder.configuration

    def frame(self, number: int, _world_s: np.ndarray) -> Iterator[Sample]:
        """Yield the samples that frame `number` of the clip completes."""
        place = self._first + number
        if number == 0 or place % GROUP == 0:
            if number:
                yield from self.flush()
            is_prepared = place % GROUP == 0 and place in self._grid.prepared
            self._encoder = None if is_prepared else VideoEncoder(*self.size)
        if self._encoder is None:
            yield self._grid.prepared[place]
            return
        picture = self._grid.picture(place)
        if self._grid.kitchen.frame_counter:
            draw_i420(picture, number, self.size[1])
        yield from self._encoder.encode(place % GROUP, picture)

    def flush(self) -> Iterator[Sample]:
        """Yield the samples still in the encoder."""
        if self._encoder is not None:
            yield from self._encoder.flush()
