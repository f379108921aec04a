"""Check a data set of the virtual kitchen against the truth: every picture says itself which one it is.

    python examples/check_frame_numbers.py our-kitchens 1_1 sim

`simulate --frame-counter` draws a number into each picture, and its truth says when that picture was taken. The frame
tables of the data set say it too, with a bound: both must agree. Exit code 1 when one of them does not.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np

from kitchensync.virtual_kitchen.world.clocks import headset_clock
from kitchensync.virtual_kitchen.world.frame_counter import number_in

GOPRO, SYNC = Path("captain_cook_4d/gopro"), Path("captain_cook_4d/hololens/sync")
FRAME_S = 1001 / 30000
Table = dict[str, np.ndarray[Any, Any]]

READ_OUT_NS = 1_000_000
"""A stamp is rounded, and so is the truth."""


class Truth:
    """When each numbered picture was taken, on the capture clock."""

    def __init__(self, sim: Path) -> None:
        """Read what `simulate` wrote."""
        truth = json.loads((sim / "truth.json").read_text())
        self._clock, self._world0_ns = headset_clock(truth["seed"]), truth["world0_host_ns"]
        self._film = truth["gopro"][0]["clock_map"]
        lines = (sim / "truth" / "hololens" / "pv.jsonl").read_text().splitlines()
        self.front_camera = [json.loads(line)["k"] for line in lines]
        self._ticks = {one["k"]: one["ticks"] for one in map(json.loads, lines)}

    def of_headset(self, number: int) -> float:
        """Return when picture `number` of the front camera was taken, ns."""
        return self._host_ns(self._ticks[number])

    def of_film(self, number: int) -> float:
        """Return when picture `number` of the camera's film was taken, ns."""
        at_s = number * FRAME_S
        ahead_s = self._film["tau0_s"] + self._film["drift_ppm"] * 1e-6 * at_s
        return self._host_ns(self._film["epoch_ticks"] + 1e7 * (at_s + ahead_s))

    def film_s_of(self, host_ns: int) -> float:
        """Return the second of the camera's film that shows a moment of the capture clock."""
        away_ns = (host_ns - self.of_film(0)) / (self.of_film(1) - self.of_film(0))
        return float(away_ns * FRAME_S)

    def _host_ns(self, ticks: float) -> float:
        return self._world0_ns + self._clock.world_s_at(ticks) * 1e9


def wrong_numbers(
    out: Path,
    recording: str,
    sim: Path,
    *,
    hidden_ns: tuple[int, int] | None = None,
    count: int = 200,
    seed: int = 1,
) -> list[str]:
    """Read the numbers in some pictures of each film; return which of them are not what the tables say.

    In `hidden_ns`, a span of the capture clock, no picture may show anything, and there is no original.
    """
    truth, rng = Truth(sim), random.Random(seed)
    small = out / GOPRO / "resolution_360p" / f"{recording}_360p"
    original = out / GOPRO / "resolution_4k" / f"{recording}_4K.mp4"
    film = dict(np.load(f"{small}_frames.npz", allow_pickle=False))
    table = dict(np.load(out / SYNC / "metadata" / f"{recording}_frames.npz", allow_pickle=False))
    wrong: list[str] = []
    if hidden_ns is not None:
        wrong += [f"{original.name} shows a pause"] if original.exists() else []
        wrong += _seen(truth.of_film, film, range(len(film["frame"])), hidden_ns, "film")
        wrong += _seen(truth.of_headset, table, truth.front_camera, hidden_ns, "front camera")
    for path in [Path(f"{small}.mp4"), *([original] if original.exists() else [])]:
        for frame, number in shown(path, count, rng):
            wrong += _wrong_in_film(path.name, film, frame, number, truth)
    for frame, number in shown(out / SYNC / "pv" / f"{recording}_360p.mp4", count, rng):
        wrong += _wrong_in_front(table, frame, number, truth)
    return wrong


def _wrong_in_film(name: str, film: Table, frame: int, number: int | None, truth: Truth) -> list[str]:
    if film["hidden"][frame]:
        return [] if number is None else [f"{name}: hidden picture {frame} shows {number}"]
    if number != frame:
        return [f"{name}: picture {frame} shows {number}"]
    away = beyond(film, frame, truth.of_film(number))
    return [f"{name}: picture {frame} was taken {away:.0f} ns beyond its bound"] if away else []


def _wrong_in_front(table: Table, frame: int, number: int | None, truth: Truth) -> list[str]:
    """Report what is wrong with a picture of the front camera, or with the one of the film beside it."""
    if table["hidden"][frame] or number is None:
        is_right = table["hidden"][frame] and number is None
        return [] if is_right else [f"front camera: picture {frame} shows {number}"]
    taken_ns, wrong = truth.of_headset(number), []
    if away := beyond(table, frame, taken_ns):
        wrong.append(f"front camera: picture {frame} was taken {away:.0f} ns beyond its bound")
    beside = int(table["film_frame"][frame])
    limit_ns = 0.5e9 * FRAME_S + int(table["film_bound_ns"][frame]) + int(table["bound_ns"][frame])
    if beside >= 0 and abs(truth.of_film(beside) - taken_ns) > limit_ns:
        wrong.append(f"front camera: picture {beside} of the film is not the one beside {frame}")
    return wrong


def _seen(
    taken_ns: Callable[[int], float],
    table: Table,
    numbers: Iterable[int],
    hidden_ns: tuple[int, int],
    what: str,
) -> list[str]:
    """Return which pictures were taken in a span and are not told to be hidden; a film without any proves nothing."""
    inside = [number for number in numbers if hidden_ns[0] <= taken_ns(number) <= hidden_ns[1]]
    if not inside:
        print(f"{what}: not checked whether the pause is hidden, no picture was taken in it")
    found = []
    for number in inside:
        if not table["hidden"][np.abs(table["capture_ns"] - taken_ns(number)).argmin()]:
            found.append(f"{what}: picture {number} is seen")
    return found


def shown(path: Path, count: int, rng: random.Random) -> Iterator[tuple[int, int | None]]:
    """Yield (place in the film, number shown) of some pictures, chosen at random."""
    with av.open(str(path)) as film:
        total = film.streams.video[0].frames
        chosen = set(rng.sample(range(total), min(count, total)))
        for frame, picture in enumerate(film.decode(video=0)):
            if frame in chosen:
                yield frame, number_in(picture.to_ndarray(format="gray"))


def beyond(table: Table, frame: int, taken_ns: float) -> float:
    """Return by how much the truth lies outside the bound of a frame; 0 when it is inside."""
    off_ns = abs(int(table["capture_ns"][frame]) - taken_ns)
    return float(max(0.0, off_ns - int(table["bound_ns"][frame]) - READ_OUT_NS))


def main() -> int:
    """Check one recording; return the exit code."""
    wrong = wrong_numbers(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
