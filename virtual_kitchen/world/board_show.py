"""A cook who shows a calibration board to the cameras on his head, held still at one place after another.

The board moves with the head, as hands before a face do: where it is in the head frame depends on seed and world time
alone. Two places in five are for the lens of the camera on the forehead, all over its wide picture; the others are
where the headset's front camera sees the board too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from virtual_kitchen.world.boards import BoardCamera, DrawnBoard, looking_at
from virtual_kitchen.world.optics import Floats, Optics
from virtual_kitchen.world.seeds import generator

Image = npt.NDArray[np.uint8]

FRAME_S = 1001 / 30000
PLACES, PLACE_FRAMES, MOVING_FRAMES = 40, 30, 8
"A place is shown for 30 camera frames (1 s); in the first eight the hands bring the board there."
CAMERA_AXES = np.diag([1.0, -1.0, -1.0, 1.0])
"From x right, y up, z back to x right, y down, z forward."
BOARD = DrawnBoard(11, 8, 0.024, 0.018)
FOR_THE_LENS = (1, 3)
WIDTH, HEIGHT = 1280, 720
_FOREHEAD_M = (0.012, 0.085, -0.075)
_BLUR_PX, _NOISE = 0.6, 1.5


@dataclass(frozen=True)
class Eye:
    """A camera on the head: how it sees and where it sits. `from_head` is (4, 4), metres, to camera axes."""

    optics: Optics
    from_head: Floats


class BoardShow:
    """The board, the camera on the forehead, and the places of one seed."""

    def __init__(self, seed: int, camera_turn: Floats, pv: Eye) -> None:
        """`camera_turn` (3, 3) turns camera vectors into head vectors, both x right, y up, z back."""
        self.seed, self.pv, self.board = seed, pv, BOARD
        rng = generator(seed, "board optics")
        focal = 0.46 * WIDTH * (1 + float(rng.normal(0, 0.02)))
        k = tuple(float(x) for x in np.array([0.03, -0.01, 0.004, -0.001]) * (1 + rng.normal(0, 0.2, 4)))
        centre = (WIDTH - 1) / 2 + float(rng.normal(0, 6)), (HEIGHT - 1) / 2 + float(rng.normal(0, 6))
        optics = Optics(
            "fisheye", WIDTH, HEIGHT, focal, focal * (1 + float(rng.normal(0, 0.002))), *centre, k
        )
        head_from_camera = np.eye(4)
        head_from_camera[:3, :3] = camera_turn
        head_from_camera[:3, 3] = np.array(_FOREHEAD_M) + rng.normal(0, 0.006, 3)
        self.camera = Eye(optics, CAMERA_AXES @ np.linalg.inv(head_from_camera))

    @cached_property
    def places(self) -> Floats:
        """Head from board (n, 4, 4) of every place, in the order in which they are shown."""
        rng = generator(self.seed, "board places")
        return np.stack([self._drawn(rng, for_lens=i % 5 in FOR_THE_LENS) for i in range(PLACES)])

    def _drawn(self, rng: np.random.Generator, *, for_lens: bool) -> Floats:
        eye, rim, near, far = (self.camera, 0.1, 0.2, 0.42) if for_lens else (self.pv, 0.36, 0.3, 0.46)
        pixel = rng.uniform(rim, 1 - rim, 2) * [eye.optics.width, eye.optics.height]
        tilt = (float(rng.uniform(-0.65, 0.65)), float(rng.uniform(-0.65, 0.65)))
        middle = (self.board.columns * self.board.square_m / 2, self.board.rows * self.board.square_m / 2)
        roll, away = float(rng.uniform(-0.35, 0.35)), float(rng.uniform(near, far))
        return np.linalg.inv(eye.from_head) @ looking_at(
            self.board, away, tilt, roll, middle, eye.optics.ray(*pixel)
        )

    def moment(self, world_s: float) -> tuple[int, int]:
        """Return place and frame within it at a world time."""
        frame = max(round(world_s / FRAME_S), 0)
        return frame // PLACE_FRAMES % PLACES, frame % PLACE_FRAMES

    def is_held(self, frame: int) -> bool:
        """Tell whether the board is still at its place in a frame within it."""
        return frame >= MOVING_FRAMES

    def head_from_board(self, place: int, frame: int) -> Floats:
        """Return where the board is (4, 4): on its way from the last place, or held."""
        here = self.places[place]
        if self.is_held(frame):
            return here
        before = self.places[place - 1]
        part = 0.5 - 0.5 * np.cos(np.pi * (frame + 0.5) / MOVING_FRAMES)
        way = Rotation.from_matrix(here[:3, :3] @ before[:3, :3].T).as_rotvec()
        pose = here.copy()
        pose[:3, :3] = Rotation.from_rotvec(part * way).as_matrix() @ before[:3, :3]
        pose[:3, 3] = (1 - part) * before[:3, 3] + part * here[:3, 3]
        return pose

    def truth(self) -> dict[str, Any]:
        """Return what a calibration is to find, in the words of its result files; metres and pixels."""
        optics, board = self.camera.optics, self.board
        names = ("k1", "k2", "k3", "k4")
        return {
            "board": f"{board.columns}x{board.rows}:{board.square_m * 1e3:g}mm/{board.marker_m * 1e3:g}mm",
            "model": optics.kind,
            "width": optics.width,
            "height": optics.height,
            "parameters": {"fx": optics.fx, "fy": optics.fy, "cx": optics.cx, "cy": optics.cy}
            | dict(zip(names, optics.k, strict=True)),
            "camera_from_pv": (self.camera.from_head @ np.linalg.inv(self.pv.from_head)).tolist(),
            "place_s": PLACE_FRAMES * FRAME_S,
            "head_from_board": self.places.tolist(),
        }


class BoardPictures:
    """What one camera sees of the show; the picture of a held board is made once."""

    def __init__(self, show: BoardShow, eye: Eye) -> None:
        self._show, self._eye = show, eye
        self._held = BoardCamera(eye.optics, show.board)
        self._moving = BoardCamera(eye.optics, show.board, finer=1)
        self._last: tuple[int, Image] | None = None

    def at(self, place: int, frame: int) -> Image:
        """Return the picture as planar 4:2:0 without colour, (height * 3 / 2, width) uint8."""
        if self._show.is_held(frame):
            if self._last is None or self._last[0] != place:
                self._last = place, self._picture(self._held, place, frame)
            return self._last[1]
        return self._picture(self._moving, place, frame)

    def _picture(self, camera: BoardCamera, place: int, frame: int) -> Image:
        pose = self._eye.from_head @ self._show.head_from_board(place, frame)
        rng = generator(self._show.seed, "board noise", place)
        grey = camera.see(pose, blur_px=_BLUR_PX, noise=_NOISE, rng=rng)
        chroma = np.full((grey.shape[0] // 2, grey.shape[1]), 128, np.uint8)
        return np.concatenate((grey, chroma))
