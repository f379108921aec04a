"""Where a moment is in a film whose pictures were taken at known times, with holes and chapters nobody placed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kitchensync.storage.privacy import in_pauses
from kitchensync.storage.timeline.film_times import UNKNOWN, FilmTimes

STEP_NS = 40_000_000
FPS = Fraction(25)
WHY = "gopro/GX020001.MP4 is not_aligned"


def film(unknown: range = range(0), hole_at: int = 0, hole_ns: int = 0) -> FilmTimes:
    """A hundred pictures, 25 a second from 1 s on."""
    taken_ns = 10**9 + np.arange(100, dtype=np.int64) * STEP_NS
    taken_ns[hole_at:] += hole_ns
    taken_ns[list(unknown)] = UNKNOWN
    return FilmTimes(FPS, taken_ns, np.full(100, 3_000_000), WHY if unknown else "")


@pytest.mark.parametrize("number", [0, 0.25, 17, 41.5, 98.999, 99, 99.9])
def test_between_two_pictures_it_is_in_proportion(number: float) -> None:
    place = film().place(10**9 + round(number * STEP_NS), 2_000_000)
    assert (place.film_s, place.outside) == (round(number / 25, 3), "")
    assert place.bound_s == pytest.approx(0.005)


def test_before_and_behind_the_film_it_is_outside_at_its_ends() -> None:
    assert (film().place(0).film_s, film().place(0).outside) == (0.0, "before the first picture")
    behind = film().place(10**9 + 101 * STEP_NS)
    assert (behind.film_s, behind.outside) == (4.0, "after the last picture")


def test_in_a_hole_between_pictures_it_is_not_in_the_film() -> None:
    place = film(hole_at=50, hole_ns=10**10).place(10**9 + 49 * STEP_NS + 5 * 10**9)
    assert (place.film_s, place.outside) == (2.0, "no picture near it")
    assert film(hole_at=50, hole_ns=10**10).place(10**10 + 10**9 + 60 * STEP_NS).film_s == 2.4


def test_in_a_chapter_that_nobody_placed_it_is_said_why() -> None:
    between, first, last = film(range(30, 60)), film(range(20)), film(range(80, 100))
    assert between.place(10**9 + 45 * STEP_NS).outside == WHY
    assert between.place(10**9 + 70 * STEP_NS).outside == ""
    assert first.place(10**9 + 10 * STEP_NS).outside == WHY
    assert last.place(10**9 + 90 * STEP_NS).outside == WHY
    assert last.place(10**9 + 79 * STEP_NS).outside == ""


def test_a_film_of_which_nothing_is_known_places_nothing() -> None:
    nothing = film(range(100))
    assert not nothing.is_placed
    assert nothing.place(10**9).outside == WHY


@pytest.mark.parametrize(
    "frames", [film(), film(hole_at=50, hole_ns=10**10), film(range(30, 61)), film(range(5))]
)
def test_knots_tell_when_every_placed_picture_was_taken_and_no_other(frames: FilmTimes) -> None:
    told: dict[int, int] = {}
    for piece in frames.knots(7):
        numbers, at_ns = np.array(piece).T
        for number in range(numbers[0], numbers[-1] + 1):
            told[number] = round(np.interp(number, numbers, at_ns))
    assert told == {n: ns for n, ns in enumerate(frames.capture_ns.tolist()) if ns != UNKNOWN}
    assert film(range(100)).knots(7) == []


def test_what_may_lie_in_a_pause_is_hidden_and_what_nobody_placed_too() -> None:
    frames = film(range(90, 100))
    pause = (10**9 + 10 * STEP_NS, 10**9 + 20 * STEP_NS)
    hidden = in_pauses(frames.capture_ns, frames.bound_ns, (pause,))
    assert np.flatnonzero(hidden).tolist() == [*range(10, 21), *range(90, 100)]
    assert not in_pauses(frames.capture_ns, frames.bound_ns, ()).any()
    near = in_pauses(frames.capture_ns, frames.bound_ns, ((pause[0] - STEP_NS + 2_000_000, pause[1]),))
    assert near[9], "within its bound it may have been taken in the pause"


def test_repeated_pictures_are_one_moment_and_no_hole() -> None:
    taken = np.array([0, 100, 300, 400, 1400]) * 10**6
    times = FilmTimes(Fraction(10), taken, np.full(5, 10**6)).shown(np.array([0, 1, 1, 2, 3, 3]))
    assert times.capture_ns.tolist() == [0, 10**8, 10**8, 3 * 10**8, 4 * 10**8, 4 * 10**8]
    assert times.knots(1) == [[[0, 0], [1, 10**8], [3, 3 * 10**8], [4, 4 * 10**8]]]
    for at_ms in range(0, 600, 7):
        place = times.place(at_ms * 10**6)
        assert (place.film_s, place.outside) == (pytest.approx(at_ms / 1e3), "")
    assert times.place(7 * 10**8).outside == "after the last picture"
    late = FilmTimes(Fraction(10), taken, np.zeros(5, np.int64)).shown(np.array([0, 1, 1, 2, 3, *[3] * 9, 4]))
    assert late.place(9 * 10**8).outside == "no picture near it"
    unknown = FilmTimes(Fraction(10), np.array([0, UNKNOWN, 2 * 10**8]), np.zeros(3, np.int64), "lost")
    assert unknown.shown(np.array([0, 0, 1, 2, 2])).place(10**8).outside == "lost"
