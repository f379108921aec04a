"""The tablet's screen clock: read from pictures of the virtual kitchen, and from light counted by brute force."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.timeline.alignment_evidence import ScreenEvidence
from sync.recording.screen_clock import differs
from sync.screen.find import COLUMNS, ROWS, SWEEPS, SeenScreen, cells, find_screen, read_cells
from sync.screen.offset import ReadOut, SlateOffset, slate_offsets, together
from sync.screen.phase import DOWN, LEFT, RIGHT, UP, phases, showings
from virtual_kitchen.gopro.sensors import CameraMount
from virtual_kitchen.world.motion import simulated_motion
from virtual_kitchen.world.scene import Scene
from virtual_kitchen.world.screen import GREY, Screen, Shutter, code

pytestmark = pytest.mark.slow

NUMBERS, SWEPT = st.integers(1, 4095), st.integers(0, 10_000)


@given(NUMBERS, SWEPT)
def test_the_code_is_read_back_and_is_that_of_the_virtual_tablet(number: int, sweep: int) -> None:
    drawn = cells(number, sweep)
    assert (drawn == code(number, sweep)).all()
    assert read_cells(drawn.astype(float)) == (number, sweep % SWEEPS)


@given(NUMBERS, SWEPT, st.integers(0, 17))
def test_one_wrong_cell_of_number_or_check_is_no_code(number: int, sweep: int, cell: int) -> None:
    light = cells(number, sweep).astype(float)
    light[cell] = 1 - light[cell]
    assert read_cells(light) is None


def brute_light(u: float, exposure: float, writing: float, way: str) -> np.ndarray:
    """Count, at 400 moments of the exposure, which column is white at each place."""
    light = np.zeros((ROWS, COLUMNS))
    y = ((np.arange(ROWS) + 0.5) / ROWS - 0.5)[:, None]
    x = ((np.arange(COLUMNS) + 0.5) / COLUMNS - 0.5)[None]
    place = {DOWN: y + 0 * x, UP: -y + 0 * x, RIGHT: x + 0 * y, LEFT: -x + 0 * y}[way] * writing
    for moment in np.linspace(u - exposure / 2, u + exposure / 2, 401)[:-1] + exposure / 800:
        refresh = np.floor(moment - place).astype(int)
        lit = np.where(np.arange(ROWS)[:, None] < ROWS // 2, refresh, refresh * 5) % COLUMNS
        light += lit == np.arange(COLUMNS)
    return light / 400


@pytest.mark.parametrize("way", [DOWN, UP, RIGHT, LEFT])
def test_phases_are_those_that_made_the_light(way: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(5):
        exposure, writing, first = rng.uniform((0.4, 0.4, 0), (2.0, 0.95, 11.9))
        off, found = phases_off(exposure, writing, way, first, is_told=True)
        assert np.quantile(np.abs(off), 0.8) < 0.06, (exposure, writing)  # a refresh is 16.7 ms: 1 ms
        assert abs(np.median(off)) < 0.02, (exposure, writing)
        assert found == way


@pytest.mark.parametrize(("exposure", "way"), [(0.4, DOWN), (0.8, UP), (1.7, RIGHT)])
def test_an_exposure_that_nothing_tells_is_fitted(exposure: float, way: str) -> None:
    off, found = phases_off(exposure, 0.6, way, 3.3, is_told=False)
    assert np.quantile(np.abs(off), 0.9) < 0.1
    assert abs(off.mean()) < 0.03
    assert found == way


def phases_off(
    exposure: float, writing: float, way: str, first: float, *, is_told: bool
) -> tuple[np.ndarray, str]:
    """Return how far the phases of forty pictures are off, in refreshes, and the way of writing that was found."""
    true = (first + 2.137 * np.arange(40)) % COLUMNS
    seen = [SeenScreen(7, 0, brute_light(u, exposure, writing, way), np.zeros(ROWS)) for u in true]
    count, shutter = phases(seen, exposure if is_told else None)
    return (count - true + COLUMNS / 2) % COLUMNS - COLUMNS / 2, shutter.way


def test_a_missed_refresh_and_a_wrong_sweep_cost_a_picture_and_no_time() -> None:
    t_s = 5.0 + np.arange(50) / 29.97
    n = 60.01 * (t_s - 4.9)
    row = np.full(ROWS, 0.1)
    seen = []
    for k, u in enumerate(n):
        late = 0.8 if k in (11, 30) else 0.0
        sweep = int((u - late) // COLUMNS) + (1 if k == 20 else 0)
        seen.append(SeenScreen(99, sweep, brute_light((u - late) % COLUMNS, 0.5, 0.6, DOWN), row))
    (line,), _ = showings(t_s, seen, 0.016, 0.5)
    assert line.left_out == 2
    assert line.pictures == 48
    assert line.at_s(30.0) == pytest.approx(4.9 + 30 / 60.01 + 0.1 * 0.016, abs=3e-4)
    assert showings(t_s[:5], seen[:5], 0.016)[0] == []


def test_a_thing_that_looks_like_the_clock_and_stands_still_spoils_nothing() -> None:
    assert read_cells(cells(0, 0).astype(float)) is None  # a bright frame with one bright corner
    t_s, row = 5.0 + np.arange(50) / 29.97, np.zeros(ROWS)
    n = 60.01 * (t_s - 4.9)
    true = [SeenScreen(99, int(u // COLUMNS), brute_light(u % COLUMNS, 0.5, 0.6, DOWN), row) for u in n]
    still = [SeenScreen(7, 3, brute_light(2.5, 0.5, 0.6, DOWN), row)] * 30
    lines, _ = showings(np.concatenate((t_s, 20.0 + np.arange(30) / 29.97)), true + still, 0.016, 0.5)
    (line,) = lines
    assert line.number == 99
    assert line.refresh_hz == pytest.approx(60.01, rel=1e-3)


def kitchen_films(seed: int, late_s: float, slates: int) -> dict[str, tuple[np.ndarray, list[SeenScreen]]]:
    """What a camera on the forehead, whose pictures are late, and the headset's front camera read."""
    motion, scene, screen = simulated_motion(seed), Scene(seed), Screen(seed, 15.0)
    mount, rng = CameraMount.of_seed(seed), np.random.default_rng(seed)
    films = {}
    for name, hz, focal, shutter in (
        ("gopro", 30000 / 1001, 0.62 * 640, Shutter(1 / 120, 0.016)),
        ("pv", 30.0, 505.0, Shutter(1 / 60, float(rng.uniform(0.005, 0.012)))),
    ):
        phase_s = float(rng.uniform(0, 1 / hz))
        times, seen = [], []
        for slate in range(slates):
            first = screen.first_s + slate * screen.every_s - 0.1
            stamps = phase_s + np.arange(math.ceil((first - phase_s) * hz), (first + 2.3 - phase_s) * hz) / hz
            world = stamps + (late_s if name == "gopro" else 0.0)
            views = motion.orientation(world)
            views = mount.camera_orientation(views) if name == "gopro" else views
            for stamp, at_s, view in zip(stamps, world, views, strict=True):
                picture = scene.render_i420(view, 640, 360, focal)
                screen.draw(picture, view, focal, float(at_s), shutter)
                if (found := find_screen(picture[:360])) is not None:
                    times.append(stamp)
                    seen.append(found)
        films[name] = np.array(times), seen
    return films


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "late_s"), [(3, 0.012), (5, -0.021)])
def test_a_known_latency_is_found_within_its_bound(seed: int, late_s: float) -> None:
    films = kitchen_films(seed, late_s, 4)
    source, _ = showings(*films["gopro"], 0.016, 0.5)
    target, _ = showings(*films["pv"], 0.0085, 1.0)
    screen = Screen(seed, 15.0)
    assert {one.number for one in source} <= {screen.number_of(slate) for slate in range(4)}
    outs = ReadOut(0.016, 0.0008), ReadOut(0.0085, 0.005)
    found = together(slate_offsets(source, target, lambda t_s: t_s, outs))
    assert found is not None
    assert len(found.slates) >= 2
    assert abs(found.late_s - late_s) < found.bound95_s < 0.004
    for line in source:
        assert line.refresh_hz == pytest.approx(1 / screen.period_s, rel=1e-3)


def test_a_kitchen_without_the_clock_has_none_and_a_turned_one_is_read() -> None:
    motion, scene, screen = simulated_motion(3), Scene(3), Screen(3, 15.0)
    view = motion.orientation(np.array([33.0]))[0]
    picture = scene.render_i420(view, 640, 360, 505.0)
    assert find_screen(picture[:360]) is None
    before = picture.copy()
    screen.draw(picture, view, 505.0, 30.0, Shutter(0.0166, 0.0))  # between two showings
    assert (picture == before).all()
    screen.draw(picture, view, 505.0, 33.0, Shutter(0.0166, 0.0))
    upright = find_screen(picture[:360])
    turned = find_screen(np.ascontiguousarray(picture[:360][::-1, ::-1]))
    assert upright is not None
    assert turned is not None
    assert turned.number == upright.number == screen.number_of(2)
    assert np.abs(turned.light - upright.light).max() < 0.2
    assert (picture[360:] != before[360:]).any()
    assert GREY == 128
    dark = cv2.convertScaleAbs(picture[:360], alpha=0.2)
    assert find_screen(dark) is None  # too little contrast to measure shares of light


def test_offsets_sum_up_with_the_larger_scatter() -> None:
    assert together([]) is None
    one = SlateOffset(1, 10.0, 0.010, 0.0003, 0.0005, (50, 50))
    alone = together([one])
    assert alone is not None
    assert alone.late_s == 0.010
    assert alone.bound95_s == pytest.approx(2 * math.hypot(0.0003, 0.0003, 0.0005))
    apart = together([one, SlateOffset(2, 20.0, 0.016, 0.0003, 0.0005, (50, 50))])
    assert apart is not None
    assert apart.late_s == pytest.approx(0.013)
    assert apart.bound95_s > 0.005  # they contradict each other: said, not averaged away


def test_a_contradiction_to_what_was_known_is_said() -> None:
    found = ScreenEvidence(2, [], late_ms=12.0, sigma_ms=0.5, bound95_ms=1.0)
    assert differs(found, None) == ""
    assert differs(found, {"latency_ms": 11.5, "sigma_ms": 0.4}) == ""
    assert "measured for this camera before: -3.0 ms" in differs(found, {"latency_ms": -3.0, "sigma_ms": 0.4})
    far = ScreenEvidence(2, [], late_ms=48.0, sigma_ms=0.5, bound95_ms=1.0)
    assert "+48.0 ms from their stamps" in differs(far, None)
    assert differs(ScreenEvidence(2, []), None) == ""
