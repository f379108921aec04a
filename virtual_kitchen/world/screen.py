"""The tablet's screen while it shows its clock: a panel that is written line by line, filmed by cameras that blend.

The pattern is that of docs/reference/screen-clock.md, drawn here once more: a judge shares nothing with the judged.
The panel refreshes near 60 Hz with a phase of its own, takes most of a period to write its lines from one side,
and now and then misses a refresh: then the picture before stays. A camera's row sees the mean, in light, of all that
was shown during its exposure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from virtual_kitchen.world import rotations
from virtual_kitchen.world.seeds import generator

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

NOMINAL_HZ = 60.0
LENGTH_S = 2.0
FLASH_REFRESHES = 6
COLUMNS, CODE_ROWS = 12, 2
NUMBER_BITS, CHECK_BITS, SWEEP_BITS = 12, 4, 6
WIDTH, HEIGHT, BORDER, BEZEL = 132, 84, 4, 6  # of the drawing, in its pixels
CODE_CELL_ROWS, GAP_ROWS = 9, 3
YAW_DEG, PITCH_DEG = 5.0, -29.0  # propped up at the back of the counter, where cooks look most
WIDE_M, AWAY_M = 0.217, 0.72
MISSED_SHARE = 0.01
_DOWN = np.repeat(np.arange(HEIGHT)[:, None] / HEIGHT, WIDTH, axis=1)
_RIGHT = np.repeat(np.arange(WIDTH)[None] / WIDTH, HEIGHT, axis=0)
PLACES = {"down": _DOWN, "up": 1 - _DOWN, "right": _RIGHT, "left": 1 - _RIGHT}
"""Share of a panel that is written before each place, (HEIGHT, WIDTH)."""
WHITE, BLACK, BEZEL_LUMA, GREY = 235.0, 16.0, 20.0, 128
GAMMA = 2.2


@dataclass(frozen=True, slots=True)
class Shutter:
    """How a camera takes a picture: exposure, and the time from its first to its last row, seconds."""

    exposure_s: float
    read_out_s: float


@dataclass
class Screen:
    """One tablet; the clock is shown for two seconds from `first_s` on, each `every_s` seconds of the world."""

    seed: int
    every_s: float
    first_s: float = 2.0
    period_s: float = field(init=False)
    phase_s: float = field(init=False)
    scan_s: float = field(init=False)
    way: str = field(init=False)
    """How the panel is written: down, up, or sideways where its own upright is the tablet's landscape."""
    corners: Floats = field(init=False)
    """Directions (4, 3) in the world of the glass with its bezel: left top, right top, right bottom, left bottom."""

    def __post_init__(self) -> None:
        """Draw what differs from tablet to tablet."""
        rng = generator(self.seed, "screen")
        self.period_s = 1 / (NOMINAL_HZ * (1 + float(rng.uniform(-5e-5, 5e-5))))
        self.phase_s = float(rng.uniform(0, self.period_s))
        self.scan_s = float(rng.uniform(0.82, 0.98)) * self.period_s
        self.corners = _corners(rng)
        self.way = str(rng.choice(list(PLACES)))

    def truth(self) -> dict[str, Any]:
        """Return what a reader of the films is to find; world seconds."""
        return {
            "every_s": self.every_s, "first_s": self.first_s, "length_s": LENGTH_S,
            "period_s": self.period_s, "phase_s": self.phase_s, "scan_s": self.scan_s, "way": self.way,
        }  # fmt: skip

    def number_of(self, slate: int) -> int:
        """Return the random number of a showing."""
        return int(generator(self.seed, "screen number", slate).integers(1, 1 << NUMBER_BITS))

    def showing(self, world_s: float) -> int | None:
        """Return which showing runs at a world time, None between them."""
        slate, into_s = divmod(world_s - self.first_s, self.every_s)
        return int(slate) if slate >= 0 and into_s < LENGTH_S else None

    def draw(
        self, picture: Image, view_wxyz: Floats, focal_px: float, world_s: float, shutter: Shutter
    ) -> None:
        """Draw the glass into a planar 4:2:0 picture (height * 3 / 2, width), in place, if it is in view.

        `world_s` is the middle of the exposure of the middle row.
        """
        slate = self.showing(world_s)
        if slate is None:
            return
        height, width = picture.shape[0] * 2 // 3, picture.shape[1]
        seen = self.corners @ rotations.matrices(view_wxyz[None])[0]
        if (seen[:, 2] > -0.1).any():
            return
        pixels = seen[:, :2] / -seen[:, 2:] * [focal_px, -focal_px] + [(width - 1) / 2, (height - 1) / 2]
        outside = (pixels < -0.5 * np.array([width, height])) | (pixels > 1.5 * np.array([width, height]))
        if outside.any():
            return
        canvas = np.array([[0, 0], [WIDTH, 0], [WIDTH, HEIGHT], [0, HEIGHT]], np.float32) - 0.5
        onto = cv2.getPerspectiveTransform(canvas, pixels.astype(np.float32))
        rows = np.column_stack((np.full(HEIGHT, WIDTH / 2), np.arange(HEIGHT), np.ones(HEIGHT))) @ onto.T
        row_s = world_s + ((rows[:, 1] / rows[:, 2] + 0.5) / height - 0.5) * shutter.read_out_s
        glass = self._seen(slate, row_s, shutter.exposure_s).astype(np.float32)
        size, flags = (width, height), cv2.INTER_LINEAR
        share = cv2.warpPerspective(np.ones_like(glass), onto, size, flags=flags)
        shown = cv2.warpPerspective(glass, onto, size, flags=flags)
        luma = picture[:height]
        luma[:] = np.rint(luma * (1 - share) + shown).astype(np.uint8)
        half = cv2.resize(share, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
        for plane in picture[height:].reshape(2, height // 2, width // 2):
            plane[:] = np.rint(plane * (1 - half) + GREY * half).astype(np.uint8)

    def _seen(self, slate: int, row_s: Floats, exposure_s: float) -> Floats:
        """Return the glass (HEIGHT, WIDTH) as luma, each row blended over its exposure around `row_s`."""
        written = self.scan_s * PLACES[self.way] + self.phase_s  # when a place of refresh 0 changes
        begin = (row_s[:, None] - exposure_s / 2 - written) / self.period_s
        end = begin + exposure_s / self.period_s
        light = np.zeros((HEIGHT, WIDTH))
        for refresh in range(int(np.floor(begin.min())), int(np.floor(end.max())) + 1):
            part = np.clip(np.minimum(end, refresh + 1) - np.maximum(begin, refresh), 0, None) / (end - begin)
            light += part * self._drawn(slate, self._kept(refresh))
        return BLACK + (WHITE - BLACK) * light ** (1 / GAMMA)

    def _kept(self, refresh: int) -> int:
        """Return the refresh whose picture stands: the one before, where this one was missed."""
        while generator(self.seed, "missed", refresh).random() < MISSED_SHARE:
            refresh -= 1
        return refresh

    def _drawn(self, slate: int, refresh: int) -> Floats:
        start_s = self.first_s + slate * self.every_s
        first = int(np.ceil((start_s - self.phase_s) / self.period_s))
        return drawing(self.number_of(slate), refresh - first)


def _corners(rng: np.random.Generator) -> Floats:
    """Place the glass: leant back a little, turned to the cook."""
    yaw = np.radians(YAW_DEG + rng.normal(0, 2))
    pitch = np.radians(PITCH_DEG + rng.normal(0, 1.5))
    turn = rotations.multiply(
        rotations.about_axis(1, np.array([yaw])), rotations.about_axis(0, np.array([pitch]))
    )
    half_m = np.array([WIDE_M / 2, WIDE_M / 2 * HEIGHT / WIDTH])
    signs = np.array([[-1, 1], [1, 1], [1, -1], [-1, -1]])
    places = np.column_stack((signs * half_m, np.full(4, -AWAY_M)))
    lean = rotations.matrices(rotations.about_axis(0, np.radians(rng.uniform(-12, 12, 1))))[0]
    leant = (places - [0, 0, -AWAY_M]) @ lean.T + [0, 0, -AWAY_M]
    found: Floats = leant @ rotations.matrices(turn)[0].T
    return found


def code(number: int, sweep: int) -> npt.NDArray[np.bool_]:
    """Return the 24 cells of the code: white, black, number, its check, the sweep in Gray's code."""
    check = (number ^ number >> 4 ^ number >> 8) & 0xF
    counted = sweep % (1 << SWEEP_BITS)
    gray = counted ^ counted >> 1
    bits = [1, 0]
    for value, count in ((number, NUMBER_BITS), (check, CHECK_BITS), (gray, SWEEP_BITS)):
        bits += [value >> place & 1 for place in reversed(range(count))]
    return np.array(bits, bool)


@lru_cache(maxsize=512)
def drawing(number: int, refresh: int) -> Floats:
    """Return the glass (HEIGHT, WIDTH) in light, 0 to 1, `refresh` refreshes after the showing began."""
    glass = np.full((HEIGHT, WIDTH), (BEZEL_LUMA - BLACK) / (WHITE - BLACK))
    inner = glass[BEZEL : HEIGHT - BEZEL, BEZEL : WIDTH - BEZEL]
    inner[:] = 1.0
    if refresh < FLASH_REFRESHES:
        return glass
    face = inner[BORDER:-BORDER, BORDER:-BORDER]
    face[:] = 0.0
    sweep, column = divmod(refresh - FLASH_REFRESHES, COLUMNS)
    edges = np.rint(np.linspace(0, face.shape[1], COLUMNS + 1)).astype(int)
    for place, is_white in enumerate(code(number, sweep)):
        row, cell = divmod(place, COLUMNS)
        if is_white:
            top = row * CODE_CELL_ROWS
            face[top : top + CODE_CELL_ROWS, edges[cell] : edges[cell + 1]] = 1.0
    bands = face[CODE_ROWS * CODE_CELL_ROWS + GAP_ROWS :]
    middle = len(bands) // 2
    bands[:middle, edges[column] : edges[column + 1]] = 1.0
    lower = column * 5 % COLUMNS
    bands[middle:, edges[lower] : edges[lower + 1]] = 1.0
    return glass
