"""The visible scene: a painted kitchen around one point, rendered in any direction.

The eye stays at the room's viewing point, so that the image rotation is exactly that of the gyroscope.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.world.motion import rotations
from kitchensync.virtual_kitchen.world.room import PX_PER_M, PaintedSurface, extents, look_up_surfaces
from kitchensync.virtual_kitchen.world.seeds import generator

Image = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]


class Canvas:
    """A surface to paint on in metres, in the surface's own axes."""

    def __init__(
        self, extent: tuple[float, float, float, float], colour: Colour, rng: np.random.Generator
    ) -> None:
        self.u0, self.v0, self.width, self.height = extent
        shape = (round(self.height * PX_PER_M), round(self.width * PX_PER_M), 3)
        self.picture: Image = np.full(shape, colour, np.uint8)
        self.rng = rng

    def px(self, u: float, v: float) -> tuple[int, int]:
        """Return the pixel of a point in metres."""
        return round((u - self.u0) * PX_PER_M), round((v - self.v0) * PX_PER_M)

    def box(
        self, u: float, v: float, wide: float, high: float, colour: Colour, border: Colour | None = None
    ) -> None:
        """Fill a rectangle whose top left is (u, v)."""
        a, b = self.px(u, v), self.px(u + wide, v + high)
        cv2.rectangle(self.picture, a, b, colour, -1, cv2.LINE_AA)
        if border is not None:
            cv2.rectangle(self.picture, a, b, border, 3, cv2.LINE_AA)

    def disc(self, u: float, v: float, radius: float, colour: Colour, thickness: int = -1) -> None:
        """Fill a disc, or draw a ring of a thickness in pixels."""
        cv2.circle(self.picture, self.px(u, v), round(radius * PX_PER_M), colour, thickness, cv2.LINE_AA)

    def line(self, a: tuple[float, float], b: tuple[float, float], colour: Colour, thickness: int) -> None:
        """Draw a line between two points."""
        cv2.line(self.picture, self.px(*a), self.px(*b), colour, thickness, cv2.LINE_AA)

    def colour(self, low: Colour, high: Colour) -> Colour:
        """Return a random colour between two colours."""
        r, g, b = (int(self.rng.integers(x, y + 1)) for x, y in zip(low, high, strict=True))
        return r, g, b

    def grain(self, strength: float) -> None:
        """Add texture of several sizes, so that neighbouring patches differ."""
        rows, columns = self.picture.shape[:2]
        total = np.zeros((rows, columns), np.float32)
        for size in (2, 8, 40):
            coarse = self.rng.standard_normal((rows // size + 2, columns // size + 2), dtype=np.float32)
            total += cv2.resize(coarse, (columns, rows), interpolation=cv2.INTER_LINEAR)
        shaded = self.picture.astype(np.float32) + (total * strength)[:, :, None]
        self.picture = np.clip(shaded, 0, 255).astype(np.uint8)

    def surface(self) -> PaintedSurface:
        """Return the painted surface."""
        return PaintedSurface(np.ascontiguousarray(self.picture), self.u0, self.v0)


def paint_surfaces(seed: int) -> dict[str, PaintedSurface]:
    """Return every surface of the room, the same for the same seed."""
    painters = {
        "front": (_front_wall, (228, 224, 214)),
        "back": (_back_wall, (205, 198, 180)),
        "left": (_tiled_wall, (224, 226, 220)),
        "right": (_back_wall, (190, 200, 196)),
        "counter": (_counter, (150, 142, 134)),
        "cabinets_front": (_cabinets, (118, 84, 56)),
        "cabinets_left": (_cabinets, (118, 84, 56)),
        "floor": (_floor, (150, 120, 92)),
        "ceiling": (_ceiling, (238, 238, 234)),
    }
    surfaces = {}
    for name, (paint, colour) in painters.items():
        canvas = Canvas(extents()[name], colour, generator(seed, "paint " + name))
        paint(canvas)
        canvas.grain(3.0)
        surfaces[name] = canvas.surface()
    return surfaces


def _tiles(canvas: Canvas, size: float, top: float) -> None:
    for u in np.arange(canvas.u0, canvas.u0 + canvas.width, size):
        for v in np.arange(top, canvas.v0 + canvas.height, size):
            tint = canvas.colour((196, 208, 205), (236, 240, 236))
            canvas.box(float(u), float(v), size, size, tint, (150, 155, 150))


def _tiled_wall(canvas: Canvas) -> None:
    _tiles(canvas, 0.15, 0.05)
    _shelf(canvas, canvas.u0 + 0.3, -0.35, 2.4)
    _window(canvas, canvas.u0 + 0.8, 0.05, 0.9, 0.5)


def _front_wall(canvas: Canvas) -> None:
    _tiles(canvas, 0.12, 0.0)
    _window(canvas, 0.25, -0.6, 0.9, 0.85)
    _shelf(canvas, -1.9, -0.45, 1.7)
    _shelf(canvas, -1.9, -0.05, 1.7)
    for i in range(5):  # ladles on a rail
        u = 1.35 + 0.13 * i
        canvas.line((u, -0.1), (u, 0.25), canvas.colour((90, 90, 95), (180, 180, 185)), 7)
        canvas.disc(
            u, 0.28, float(canvas.rng.uniform(0.03, 0.05)), canvas.colour((70, 70, 75), (190, 190, 195))
        )
    canvas.line((1.25, -0.1), (2.1, -0.1), (80, 80, 84), 9)


def _shelf(canvas: Canvas, u: float, v: float, wide: float) -> None:
    """Put a board with jars, tins and boxes on the wall."""
    canvas.box(u, v, wide, 0.03, (120, 80, 45), (80, 52, 30))
    at = u + 0.05
    while at < u + wide - 0.15:
        size = float(canvas.rng.uniform(0.06, 0.14))
        high = float(canvas.rng.uniform(0.1, 0.24))
        canvas.box(at, v - high, size, high, canvas.colour((40, 40, 30), (230, 200, 170)), (50, 45, 40))
        canvas.box(
            at + 0.01,
            v - high * 0.7,
            size - 0.02,
            high * 0.35,
            canvas.colour((190, 180, 150), (250, 250, 240)),
        )
        at += size + float(canvas.rng.uniform(0.01, 0.06))


def _window(canvas: Canvas, u: float, v: float, wide: float, high: float) -> None:
    for i in range(24):  # sky above, garden below
        f = i / 24
        colour = (
            (int(120 + 110 * f), int(170 + 60 * f), 240) if f < 0.6 else (70, int(130 - 60 * (f - 0.6)), 60)
        )
        canvas.box(u, v + high * f, wide, high / 24, colour)
    for _ in range(14):
        place = canvas.rng.uniform((u + 0.05, v + high * 0.55), (u + wide - 0.05, v + high * 0.9))
        canvas.disc(float(place[0]), float(place[1]), 0.05, canvas.colour((30, 80, 30), (110, 170, 80)))
    for at in (0.0, 0.5, 1.0):
        canvas.line((u + wide * at, v), (u + wide * at, v + high), (245, 245, 240), 16)
        canvas.line((u, v + high * at), (u + wide, v + high * at), (245, 245, 240), 16)


def _back_wall(canvas: Canvas) -> None:
    left = canvas.u0
    canvas.box(left + 0.4, -0.5, 0.95, 2.1, (160, 120, 80), (90, 60, 40))  # a door
    canvas.disc(left + 1.22, 0.6, 0.035, (210, 190, 90))
    canvas.box(left + 1.9, -0.35, 0.75, 1.95, (225, 228, 230), (140, 144, 148))  # a fridge
    canvas.line((left + 1.98, 0.1), (left + 1.98, 0.6), (120, 124, 128), 12)
    for i in range(3):  # pictures
        u = left + 2.85 + 0.28 * (i % 2)
        canvas.box(u, -0.5 + 0.42 * i, 0.24, 0.32, canvas.colour((40, 40, 40), (230, 230, 230)), (60, 40, 20))
        canvas.disc(u + 0.12, -0.34 + 0.42 * i, 0.07, canvas.colour((60, 20, 20), (250, 200, 200)))


def _counter(canvas: Canvas) -> None:
    rng = canvas.rng
    for _ in range(2600):  # granite
        place = rng.uniform((canvas.u0, canvas.v0), (canvas.u0 + canvas.width, canvas.v0 + canvas.height))
        shade = int(rng.integers(70, 215))
        canvas.disc(
            float(place[0]), float(place[1]), float(rng.uniform(0.002, 0.008)), (shade, shade, shade - 8)
        )
    _stove(canvas, -1.95, -1.02)
    canvas.box(-0.35, -0.92, 0.62, 0.4, (196, 150, 98), (130, 90, 50))  # cutting board
    for _ in range(9):
        place = rng.uniform((-0.3, -0.88), (0.22, -0.56))
        canvas.disc(float(place[0]), float(place[1]), 0.03, canvas.colour((60, 40, 20), (240, 190, 60)))
    canvas.line((-0.25, -0.6), (0.1, -0.56), (205, 208, 212), 10)  # knife
    canvas.line((0.1, -0.56), (0.22, -0.545), (40, 32, 28), 14)
    canvas.box(0.95, -1.0, 0.7, 0.46, (175, 180, 184), (110, 114, 118))  # sink
    canvas.disc(1.3, -0.77, 0.03, (60, 62, 64))
    for u, v, radius in ((0.48, -0.85, 0.12), (0.72, -0.62, 0.085), (-0.62, -0.8, 0.11), (-1.8, 0.6, 0.14)):
        canvas.disc(u, v, radius, canvas.colour((170, 170, 170), (245, 245, 245)))
        canvas.disc(u, v, radius * 0.75, canvas.colour((90, 50, 30), (230, 200, 120)))


def _stove(canvas: Canvas, u: float, v: float) -> None:
    canvas.box(u, v, 0.72, 0.54, (24, 24, 28), (90, 90, 94))
    for i, (du, dv, radius) in enumerate(
        ((0.19, 0.16, 0.1), (0.53, 0.16, 0.08), (0.19, 0.4, 0.08), (0.53, 0.4, 0.1))
    ):
        canvas.disc(u + du, v + dv, radius, (150, 40, 20) if i == 3 else (70, 70, 76), 5)
    canvas.disc(u + 0.53, v + 0.4, 0.13, (52, 52, 56))  # a pan with two eggs
    canvas.disc(u + 0.53, v + 0.4, 0.115, (34, 34, 36))
    canvas.line((u + 0.62, v + 0.48), (u + 0.86, v + 0.56), (40, 34, 30), 16)
    for du, dv in ((0.5, 0.37), (0.56, 0.43)):
        canvas.disc(u + du, v + dv, 0.042, (248, 246, 238))
        canvas.disc(u + du, v + dv, 0.017, (250, 180, 30))


def _cabinets(canvas: Canvas) -> None:
    for i, u in enumerate(np.arange(canvas.u0, canvas.u0 + canvas.width, 0.5)):
        canvas.box(
            float(u) + 0.02,
            canvas.v0 + 0.05,
            0.46,
            0.8,
            canvas.colour((98, 66, 40), (140, 104, 74)),
            (60, 40, 24),
        )
        canvas.line(
            (float(u) + 0.1, canvas.v0 + 0.12), (float(u) + 0.3, canvas.v0 + 0.12), (190, 190, 194), 8
        )
        if i == 1:  # an oven door
            canvas.box(float(u) + 0.06, canvas.v0 + 0.2, 0.38, 0.42, (26, 24, 24), (150, 150, 154))


def _floor(canvas: Canvas) -> None:
    for i, v in enumerate(np.arange(canvas.v0, canvas.v0 + canvas.height, 0.14)):
        start = canvas.u0 - (i % 3) * 0.4
        for u in np.arange(start, canvas.u0 + canvas.width, 1.1):
            tint = canvas.colour((126, 92, 60), (176, 138, 100))
            canvas.box(float(u), float(v), 1.1, 0.14, tint, (90, 64, 42))


def _ceiling(canvas: Canvas) -> None:
    for u, v in ((-0.8, -0.2), (0.9, 0.9)):
        canvas.disc(u, v, 0.22, (255, 250, 226))
        canvas.disc(u, v, 0.22, (180, 180, 176), 6)
    for v in np.arange(canvas.v0, canvas.v0 + canvas.height, 0.6):
        canvas.line((canvas.u0, float(v)), (canvas.u0 + canvas.width, float(v)), (205, 205, 200), 4)


_WIDTH, _HEIGHT = 3072, 1536  # panorama: 8.5 pixels a degree
_GRID_PX = 8  # directions are exact on this grid and linear between: below 0.05 px off the poles

Maps = tuple[npt.NDArray[Any], npt.NDArray[Any]]  # float32


class Scene:
    """A seeded kitchen as an equirectangular image: luma in full, chroma in half resolution."""

    def __init__(self, seed: int) -> None:
        picture = look_up_surfaces(paint_surfaces(seed), _WIDTH, _HEIGHT)
        planar = cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420)
        chroma = planar[_HEIGHT:].reshape(2, _HEIGHT // 2, _WIDTH // 2).transpose(1, 2, 0)
        self._luma = _wrapped(planar[:_HEIGHT])
        self._chroma = _wrapped(chroma)

    def render(
        self, orientation_wxyz: npt.NDArray[np.float64], width: int, height: int, focal_px: float
    ) -> Image:
        """Return the perspective view (height, width, 3) uint8 RGB of a camera (x right, y up, z back)."""
        planar = self.render_i420(orientation_wxyz, width, height, focal_px)
        return np.asarray(cv2.cvtColor(planar, cv2.COLOR_YUV2RGB_I420), np.uint8)

    def render_grey(
        self, orientation_wxyz: npt.NDArray[np.float64], width: int, height: int, focal_px: float
    ) -> Image:
        """Return the view without colour, (height, width) uint8."""
        rotation = rotations.matrices(np.asarray(orientation_wxyz, np.float64)[None])[0]
        maps = _panorama_maps(rotation, width, height, focal_px, 1)
        grey = cv2.remap(self._luma, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(grey, np.uint8)

    def render_i420(
        self, orientation_wxyz: npt.NDArray[np.float64], width: int, height: int, focal_px: float
    ) -> Image:
        """Return the view as planar 4:2:0, (height * 3 / 2, width) uint8; both sides even."""
        rotation = rotations.matrices(np.asarray(orientation_wxyz, np.float64)[None])[0]
        out = np.empty((height * 3 // 2, width), np.uint8)
        luma_maps = _panorama_maps(rotation, width, height, focal_px, 1)
        cv2.remap(self._luma, *luma_maps, cv2.INTER_LINEAR, dst=out[:height], borderMode=cv2.BORDER_REPLICATE)
        maps = _panorama_maps(rotation, width // 2, height // 2, focal_px / 2, 2)
        chroma = cv2.remap(self._chroma, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        quarter = width * height // 4
        flat = out[height:].reshape(-1)
        flat[:quarter] = chroma[:, :, 0].reshape(-1)
        flat[quarter:] = chroma[:, :, 1].reshape(-1)
        return out


def _wrapped(picture: npt.NDArray[Any]) -> Image:
    """Return the panorama with half a turn more on each side, so that no view crosses its seam."""
    half = picture.shape[1] // 2
    return np.ascontiguousarray(np.concatenate((picture[:, half:], picture, picture[:, :half]), axis=1))


@lru_cache(maxsize=8)
def _camera_rays(width: int, height: int, focal_px: float) -> npt.NDArray[np.float64]:
    """Return the directions (3, rows, columns) of the grid pixels in the camera frame."""
    u = np.arange(0, width + _GRID_PX, _GRID_PX) - (width - 1) / 2
    v = np.arange(0, height + _GRID_PX, _GRID_PX) - (height - 1) / 2
    x, y = np.meshgrid(u / focal_px, -v / focal_px)
    return np.stack((x, y, -np.ones_like(x)))


def _panorama_maps(
    rotation: npt.NDArray[np.float64], width: int, height: int, focal_px: float, shrink: int
) -> Maps:
    """Return the panorama pixel (shrunk by `shrink`) of each pixel: columns and rows, float32."""
    forward = -rotation[:, 2]
    centre = np.arctan2(forward[0], -forward[2])
    turn = np.array([[np.cos(centre), 0, np.sin(centre)], [0, 1, 0], [-np.sin(centre), 0, np.cos(centre)]])
    x, y, z = np.tensordot(turn @ rotation, _camera_rays(width, height, focal_px), axes=1)
    longitude = np.arctan2(x, -z) + centre
    latitude = np.arctan2(y, np.hypot(x, z))
    columns = (longitude / (2 * np.pi) + 1.0) * (_WIDTH / shrink) - 0.5
    rows = (0.5 - latitude / np.pi) * (_HEIGHT / shrink) - 0.5
    finer = np.array([[1 / _GRID_PX, 0, 0], [0, 1 / _GRID_PX, 0]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    full = [
        cv2.warpAffine(m.astype(np.float32), finer, (width, height), flags=flags) for m in (columns, rows)
    ]
    return full[0], full[1]
