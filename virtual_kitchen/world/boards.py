"""A calibration board in front of a camera: what the camera sees of it, blur and noise included."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from virtual_kitchen.world.optics import Floats, Optics

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
        """Return its print with a white margin of half a square, `_TEXELS_PER_SQUARE` to a square."""
        words = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, self.dictionary))
        board = cv2.aruco.CharucoBoard((self.columns, self.rows), self.square_m, self.marker_m, words)
        size = (self.columns * _TEXELS_PER_SQUARE, self.rows * _TEXELS_PER_SQUARE)
        margin = int(_MARGIN_SQUARES * _TEXELS_PER_SQUARE)
        wide = cv2.copyMakeBorder(
            board.generateImage(size), margin, margin, margin, margin, cv2.BORDER_CONSTANT, value=255.0
        )
        return np.asarray(wide, np.uint8)

    def corners(self) -> Floats:
        """Return the inner corners (n, 3) metres, row by row: corner i has the id i."""
        x, y = np.meshgrid(np.arange(1, self.columns), np.arange(1, self.rows))
        flat = np.zeros(x.size)
        return np.column_stack((x.ravel(), y.ravel(), flat)).astype(np.float64) * self.square_m


class BoardCamera:
    """A camera of known optics that looks at a board."""

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
        """Return the picture (height, width) uint8 with the board at a pose (4, 4), metres.

        Blur and noise lie over the board and a rim around it: nobody looks at the rest.
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
        """Return the part of the picture that the board can touch: left, top, right, bottom."""
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
        """Return brightness and presence (0 or 1) of the board along rays."""
        board = self.board
        # The plane z = 0 of the board is (x, y, 1) -> ray up to scale, by two columns of the turn and the place.
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
        """Return how far apart neighbouring rays meet the print, the median over every eighth row."""
        squares, there = squares[::8], there[::8]
        if not there.any():
            return 1.0
        way = np.abs(np.diff(squares, axis=1))
        steps = np.maximum(way[..., 0], way[..., 1])[there[:, 1:] & there[:, :-1]]
        return float(np.median(steps) * _TEXELS_PER_SQUARE) if steps.size else 1.0


def _pyramid(texture: Image) -> list[Floats32]:
    """Halve the print again and again, each level the mean of four texels: centres stay where they are."""
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
    """Return camera from board (4, 4) whose point `aim_m` is `distance_m` away along `aside` (3,) of the camera."""
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
