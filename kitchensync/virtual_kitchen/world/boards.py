"""A calibration board in front of a camera, rendered with blur and noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from kitchensync.virtual_kitchen.world.optics import Floats, Optics
from kitchensync.virtual_kitchen.world.seeds import generator

Image = npt.NDArray[np.uint8]
Floats32 = npt.NDArray[np.float32]

_TEXELS_PER_SQUARE = 96
_MARGIN_SQUARES = 0.5
_RIM_PX = 24


@dataclass(frozen=True)
class DrawnBoard:
    """A ChArUco board, flat, x right and y down from the corner of its first square, z away from the viewer."""

    columns: int
    rows: int
    square_m: float
    marker_m: float
    dictionary: str = "DICT_5X5_250"

    def texture(self) -> Image:
        """Return its texture with a white margin of half a square, `_TEXELS_PER_SQUARE` per square."""
        words = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, self.dictionary))
        board = cv2.aruco.CharucoBoard((self.columns, self.rows), self.square_m, self.marker_m, words)
        size = (self.columns * _TEXELS_PER_SQUARE, self.rows * _TEXELS_PER_SQUARE)
        margin = int(_MARGIN_SQUARES * _TEXELS_PER_SQUARE)
        wide = cv2.copyMakeBorder(
            board.generateImage(size), margin, margin, margin, margin, cv2.BORDER_CONSTANT, value=255.0
        )
        return np.asarray(wide, np.uint8)

    def corners(self) -> Floats:
        """Return the inner corners (n, 3), metres, row by row: corner i has the id i."""
        x, y = np.meshgrid(np.arange(1, self.columns), np.arange(1, self.rows))
        flat = np.zeros(x.size)
        return np.column_stack((x.ravel(), y.ravel(), flat)).astype(np.float64) * self.square_m


class BoardCamera:
    """A camera with known optics that looks at a board."""

    def __init__(self, optics: Optics, board: DrawnBoard, finer: int = 2) -> None:
        self.optics, self.board = optics, board
        self._finer = finer
        self._rays: Floats32 = optics.ray_table(finer).astype(np.float32)
        self._levels = _pyramid(board.texture())

    def see(
        self,
        camera_from_board: Floats,
        background: Image | float = 110.0,
        blur_px: float = 0.6,
        noise: float = 2.0,
        rng: np.random.Generator | None = None,
    ) -> Image:
        """Return the image (height, width) uint8 with the board at a pose (4, 4), metres.

        Only the board and a rim around it get blur and noise: detectors use nothing else.
        """
        optics, finer = self.optics, self._finer
        picture = np.empty((optics.height, optics.width), np.uint8)
        picture[:] = background
        left, top, right, bottom = self._reach(camera_from_board)
        if right <= left or bottom <= top:
            return picture
        rays = self._rays[top * finer : bottom * finer, left * finer : right * finer]
        seen, share = self._patch(rays, camera_from_board)
        if finer > 1:
            size = (right - left, bottom - top)
            seen = cv2.resize(seen * share, size, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
            share = cv2.resize(share, size, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
        else:
            seen *= share
        around = picture[top:bottom, left:right]
        patch = around * (1 - share) + seen
        if blur_px > 0:
            patch = cv2.GaussianBlur(patch, (0, 0), blur_px, borderType=cv2.BORDER_REPLICATE)  # type: ignore[assignment]
        if noise > 0 and rng is not None:
            patch += noise * rng.standard_normal(patch.shape, np.float32)
        around[:] = np.clip(np.rint(patch), 0, 255)
        return picture

    def _reach(self, camera_from_board: Floats) -> tuple[int, int, int, int]:
        """Return the part of the image that the board can touch: left, top, right, bottom."""
        board = self.board
        x = np.linspace(-_MARGIN_SQUARES, board.columns + _MARGIN_SQUARES, 40) * board.square_m
        y = np.linspace(-_MARGIN_SQUARES, board.rows + _MARGIN_SQUARES, 40) * board.square_m
        grid = np.stack((*np.meshgrid(x, y), np.zeros((40, 40))), axis=-1).reshape(-1, 3)
        points = grid @ camera_from_board[:3, :3].T + camera_from_board[:3, 3]
        points = points[points[:, 2] > 0.02]
        if not len(points):
            return 0, 0, 0, 0
        pixels = self.optics.pixels(points)
        low = np.clip(pixels.min(0) - _RIM_PX, 0, [self.optics.width, self.optics.height]).astype(int)
        high = np.clip(pixels.max(0) + _RIM_PX + 1, 0, [self.optics.width, self.optics.height]).astype(int)
        return int(low[0]), int(low[1]), int(high[0]), int(high[1])

    def _patch(self, rays: Floats32, camera_from_board: Floats) -> tuple[Floats32, Floats32]:
        """Return brightness and coverage (0 or 1) of the board along rays."""
        board = self.board
        # On the board's plane z = 0, (x, y, 1) -> ray up to scale: two columns of the rotation, and the translation.
        to_ray = np.column_stack((camera_from_board[:3, :2], camera_from_board[:3, 3]))
        to_squares = np.diag([1 / board.square_m, 1 / board.square_m, 1.0])
        to_squares[:2, 2] = _MARGIN_SQUARES
        on_board = cv2.transform(rays, (to_squares @ np.linalg.inv(to_ray)).astype(np.float32))
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = np.asarray(on_board[..., :2] / on_board[..., 2:], np.float32)
        wide, high = (side + 2 * _MARGIN_SQUARES for side in (board.columns, board.rows))
        x, y = squares[..., 0], squares[..., 1]
        there = (on_board[..., 2] > 0) & (x >= 0) & (x < wide) & (y >= 0) & (y < high)
        texels = self._texels_per_ray(squares, there)
        level = int(np.clip(np.floor(np.log2(max(texels, 1.0))), 0, len(self._levels) - 1))
        at = squares * np.float32(_TEXELS_PER_SQUARE / 2**level) - np.float32(0.5)
        at = np.where(there[..., None], at, 0).astype(np.float32)
        seen = cv2.remap(self._levels[level], at, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)  # type: ignore[call-overload]
        return seen.astype(np.float32), there.astype(np.float32)

    def _texels_per_ray(self, squares: Floats32, there: npt.NDArray[np.bool_]) -> float:
        """Return the distance of neighbouring rays on the texture, texels: the median over every eighth row."""
        squares, there = squares[::8], there[::8]
        if not there.any():
            return 1.0
        way = np.abs(np.diff(squares, axis=1))
        steps = np.maximum(way[..., 0], way[..., 1])[there[:, 1:] & there[:, :-1]]
        return float(np.median(steps) * _TEXELS_PER_SQUARE) if steps.size else 1.0


def _pyramid(texture: Image) -> list[Floats32]:
    """Halve the texture repeatedly; each texel of a level is the mean of four, so centres do not move."""
    levels = [texture.astype(np.float32)]
    while min(levels[-1].shape) > 64 and all(side % 2 == 0 for side in levels[-1].shape):
        high, wide = levels[-1].shape
        levels.append(levels[-1].reshape(high // 2, 2, wide // 2, 2).mean((1, 3)))
    return levels


def looking_at(
    board: DrawnBoard,
    distance_m: float,
    tilt_rad: tuple[float, float],
    roll_rad: float,
    aim_m: tuple[float, float],
    aside: Floats,
) -> Floats:
    """Return camera from board (4, 4): board point `aim_m` is at `distance_m` along the camera ray `aside` (3,)."""
    pitch, yaw = tilt_rad
    about_x = _turn(np.array([1.0, 0.0, 0.0]) * pitch)
    about_y = _turn(np.array([0.0, 1.0, 0.0]) * yaw)
    about_z = _turn(np.array([0.0, 0.0, 1.0]) * roll_rad)
    turn = about_x @ about_y @ about_z
    unit = aside / np.linalg.norm(aside)
    axis = np.cross([0.0, 0.0, 1.0], unit)
    turn = _turn(axis / max(np.linalg.norm(axis), 1e-12) * np.arccos(np.clip(unit[2], -1, 1))) @ turn
    pose = np.eye(4)
    pose[:3, :3] = turn
    pose[:3, 3] = unit * distance_m - turn @ np.array([*aim_m, 0.0])
    return pose


def _turn(vector: Floats) -> Floats:
    """Return the rotation matrix of a rotation vector, by Rodrigues."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


FRAME_S = 1001 / 30000
PLACES, PLACE_FRAMES, MOVING_FRAMES = 40, 30, 8
"A place is shown for 30 camera frames (1 s); the board moves there during the first eight."
CAMERA_AXES = np.diag([1.0, -1.0, -1.0, 1.0])
"From x right, y up, z back to x right, y down, z forward."
BOARD = DrawnBoard(11, 8, 0.024, 0.018)
FOR_THE_LENS = (1, 3)
WIDTH, HEIGHT = 1280, 720
_FOREHEAD_M = (0.012, 0.085, -0.075)
_BLUR_PX, _NOISE = 0.6, 1.5


@dataclass(frozen=True)
class Eye:
    """Optics and place of a camera on the head. `from_head` is (4, 4), metres, to camera axes."""

    optics: Optics
    from_head: Floats


class BoardShow:
    """The board, the forehead camera and the places of the board for one seed."""

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
        """Return head from board (n, 4, 4) of every place, in the order of the show."""
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
        """Return the place and the frame of the place at a world time."""
        frame = max(round(world_s / FRAME_S), 0)
        return frame // PLACE_FRAMES % PLACES, frame % PLACE_FRAMES

    def is_held(self, frame: int) -> bool:
        """Return whether the board holds still in this frame of a place."""
        return frame >= MOVING_FRAMES

    def head_from_board(self, place: int, frame: int) -> Floats:
        """Return the board's pose (4, 4): moving from the last place, or held still."""
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
        """Return the true calibration with the keys of calibration results; metres and pixels."""
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
    """One camera's images of the show; the image of a held board is rendered once."""

    def __init__(self, show: BoardShow, eye: Eye) -> None:
        self._show, self._eye = show, eye
        self._held = BoardCamera(eye.optics, show.board)
        self._moving = BoardCamera(eye.optics, show.board, finer=1)
        self._last: tuple[int, Image] | None = None

    def at(self, place: int, frame: int) -> Image:
        """Return the image as planar 4:2:0 without colour, (height * 3 / 2, width) uint8."""
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
