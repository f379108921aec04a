"""What the camera films: the kitchen, rendered as it comes, or a board that the cook shows, from encoded groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from virtual_kitchen.gopro.board_roll import film, roll_of
from virtual_kitchen.gopro.encoders import HEIGHT, WIDTH, VideoEncoder
from virtual_kitchen.gopro.sensors import FRAMES_PER_PAYLOAD, CameraMount
from virtual_kitchen.kitchen import Kitchen
from virtual_kitchen.world.frame_counter import draw_i420


class KitchenView:
    """The kitchen as the camera on a turning head sees it, rendered and encoded frame by frame."""

    size = (WIDTH, HEIGHT)

    def __init__(self, kitchen: Kitchen) -> None:
        self._scene, self._motion = kitchen.scene, kitchen.motion
        self._has_counter = kitchen.frame_counter
        self._mount = CameraMount.of_seed(kitchen.seed)
        self._encoder = VideoEncoder()
        self.configuration = self._encoder.configuration
        self._views = np.empty((0, 4))

    def frame(self, number: int, world_s: np.ndarray) -> Iterator[tuple[bytes, bool]]:
        """Yield what frame `number` adds; `world_s` are the world times of the payload it is in."""
        in_payload = number % FRAMES_PER_PAYLOAD
        if in_payload == 0:
            self._views = self._mount.camera_orientation(self._motion.orientation(world_s))
        focal_px = self._mount.focal_per_width * WIDTH
        picture = self._scene.render_i420(self._views[in_payload], WIDTH, HEIGHT, focal_px)
        if self._has_counter:
            draw_i420(picture, number, HEIGHT)
        yield from self._encoder.encode(number, picture)

    def flush(self) -> Iterator[tuple[bytes, bool]]:
        """Yield what is still inside."""
        yield from self._encoder.flush()


class BoardView:
    """A board that the cook shows, from groups of pictures that are encoded already."""

    def __init__(self, kitchen: Kitchen) -> None:
        assert kitchen.show is not None
        self._roll = roll_of(kitchen.show)
        self.size = (self._roll.width, self._roll.height)
        self.configuration = self._roll.configuration
        self._samples: Iterator[tuple[bytes, bool]] = iter(())

    def frame(self, number: int, world_s: np.ndarray) -> Iterator[tuple[bytes, bool]]:
        """Yield the sample of frame `number`; the first one says where in the show the film begins."""
        if number == 0:
            self._samples = film(self._roll, float(world_s[0]))
        yield next(self._samples)

    def flush(self) -> Iterator[tuple[bytes, bool]]:
        """Yield nothing: every frame was whole."""
        yield from ()
