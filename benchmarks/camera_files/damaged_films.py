"""Damaged but plausible films through `sync`: how many certificates are right, and how many `aligned` and wrong.

    python -P benchmarks/camera_files/damaged_films.py [--cases 60] [--clean 60] [--seeds 3] [--data ../shared/data]

Films of the virtual kitchen, whose pictures show the motion that the headset measured, are trimmed, shifted, turned
and spoilt at random (by `make_films.py` of the shared data, which knows what it did). Truth is the map of the whole
film.
Prints one line a film and the sums; exit 1 where a film is aligned beyond twice its stated error.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path += map(str, (REPOSITORY / "tests" / "support").iterdir())

from filmed_motion import film_of_motion, recording  # noqa: E402
from strange_films import film_maker  # noqa: E402

from kitchensync.sync.synchronize import synchronize  # noqa: E402

FILM_S, AROUND_S, RATE = 26.0, 5.0, 30000 / 1001
Made = tuple[Any, dict[str, Any]]


class Case(NamedTuple):
    """One damaged film: its chapters, each with where its time 0 lies in the whole film."""

    name: str
    films: list[Made]
    names: list[str]


class Base:
    """A recording, its film whole, and the map that every part of it has to have."""

    def __init__(self, maker: Any, folder: Path, seed: int) -> None:
        self.maker, self.folder, self.seed = maker, folder, seed
        folder.mkdir(parents=True)
        path = film_of_motion(folder, seed, 0.0, round(FILM_S * RATE))
        self.film = maker.tables.read(path)
        self.bare = recording(folder, "bare", seed, 0.0, seed, FILM_S + AROUND_S)
        (self.bare / "gopro").mkdir()
        (whole,) = self.pairs(Case("whole", [(self.film, {})], ["GX010001.MP4"]))
        times, ticks = np.array(whole["samples"]).T
        self.line = np.polynomial.Polynomial.fit(times, ticks, 1)

    def pairs(self, case: Case) -> list[dict[str, Any]]:
        """Synchronize the recording with the films of a case."""
        target = shutil.copytree(self.bare, self.folder / "take")
        try:
            for (film, _), name in zip(case.films, case.names, strict=True):
                self.maker.tables.write(film, target / "gopro" / name)
            return list(synchronize(target)["pairs"])
        finally:
            shutil.rmtree(target)

    def off_ms(self, pair: dict[str, Any], zero_s: float) -> float:
        """How far a map is from that of the whole film, at worst."""
        times, ticks = np.array(pair["samples"]).T
        return float(np.abs(ticks - self.line(times + zero_s)).max()) / 1e4


def damaged(base: Base, rng: np.random.Generator, count: int) -> Iterator[Case]:
    """Yield films of all kinds in turn, each damaged at random."""
    kinds: list[Callable[[Base, np.random.Generator], Case]] = [
        trimmed, told, hidden, both_ends, neighbour, lost_payload, dead, lost_chapter, turned, cut_end, several_edits
    ]  # fmt: skip
    for number in range(count):
        yield kinds[number % len(kinds)](base, rng)


def _one(name: str, made: Made) -> Case:
    return Case(name, [made], ["GX010001.MP4"])


def _key(base: Base, rng: np.random.Generator, least: int = 2, most: int = 20) -> int:
    return int(rng.choice(base.maker.keys(base.film)[least:most]))


def trimmed(base: Base, rng: np.random.Generator) -> Case:
    """Cut at a key picture, telemetry at some payload near it, and nothing tells."""
    first = _key(base, rng)
    at = base.maker.payload_at(base.film, first)
    return _one("trimmed", base.maker.cut(base.film, first, max(at + int(rng.integers(-2, 3)), 0)))


def told(base: Base, rng: np.random.Generator) -> Case:
    """The same, and an edit list tells."""
    first = _key(base, rng)
    at = max(base.maker.payload_at(base.film, first) + int(rng.integers(-1, 2)), 0)
    return _one("told", base.maker.cut(base.film, first, at, told=True))


def hidden(base: Base, rng: np.random.Generator) -> Case:
    """Some stored pictures are hidden, as a tool leaves them that copies streams."""
    first, hide = _key(base, rng), int(rng.integers(1, 12))
    return _one(
        "hidden",
        base.maker.cut(
            base.film, first, base.maker.payload_at(base.film, first + hide), hide=hide, told=True
        ),
    )


def both_ends(base: Base, rng: np.random.Generator) -> Case:
    """Cut at both ends so that the numbers of pictures and of their samples happen to agree."""
    first = _key(base, rng, 2, 10)
    at, shift = base.maker.payload_at(base.film, first), int(rng.integers(0, 2))
    last, payloads = len(base.film["vide"].samples) - 60, len(base.film["gpmd"].samples) - 2
    return _one(
        "both ends", base.maker.cut(base.film, first, at + shift, last=last, last_payload=payloads + shift)
    )


def neighbour(base: Base, rng: np.random.Generator) -> Case:
    """Two chapters; some telemetry of one lies in the file of the other."""
    at = _key(base, rng, 12, 30)
    shift = int(rng.integers(-2, 3))
    made = base.maker.chapters(base.film, [at], [base.maker.payload_at(base.film, at) + shift])
    return Case("neighbour", made, ["GX010001.MP4", "GX020001.MP4"])


def lost_payload(base: Base, rng: np.random.Generator) -> Case:
    """One payload in the middle is gone."""
    number = int(rng.integers(3, len(base.film["gpmd"].samples) - 3))
    return _one("lost payload", (base.maker.without_payload(base.film, number), {"media_zero_s": 0.0}))


def dead(base: Base, rng: np.random.Generator) -> Case:
    """The gyroscope stands still for a part."""
    last = len(base.film["gpmd"].samples)
    first = int(rng.integers(0, last - 4))
    behind = int(rng.integers(first + 2, last + 1))
    film = base.maker.still_gyro(base.film, first, behind, bool(rng.integers(0, 2)))
    return _one("dead gyroscope", (film, {"media_zero_s": 0.0}))


def lost_chapter(base: Base, rng: np.random.Generator) -> Case:
    """Three chapters, of which the first or the second is not here."""
    keys = base.maker.keys(base.film)
    parts = [keys[len(keys) // 3], keys[2 * len(keys) // 3]]
    made = base.maker.chapters(base.film, parts, [base.maker.payload_at(base.film, at) for at in parts])
    kept = [1, 2] if rng.integers(0, 2) else [0, 2]
    return Case("lost chapter", [made[k] for k in kept], [f"GX0{k + 1}0001.MP4" for k in kept])


def turned(base: Base, rng: np.random.Generator) -> Case:
    """The matrix of the track header turns the pictures."""
    film = base.maker.turned(base.film, int(rng.choice([90, 180, 270])))
    return _one("turned", (film, {"media_zero_s": 0.0}))


def cut_end(base: Base, rng: np.random.Generator) -> Case:
    """Pictures end before the telemetry does."""
    last = round(len(base.film["vide"].samples) * rng.uniform(0.5, 0.95))
    return _one("cut end", base.maker.cut(base.film, 0, 0, last=last))


def several_edits(base: Base, rng: np.random.Generator) -> Case:
    """The edit list of the pictures has two parts."""
    film = base.maker.cut(base.film, 0, 0)[0]
    film["vide"].edits = [(int(rng.integers(2000, 9000)), 0), (None, int(rng.integers(90_000, 300_000)))]
    return _one("several edits", (film, {"media_zero_s": 0.0}))


def judged(base: Base, case: Case) -> list[tuple[str, float, float]]:
    """Return (status, how far off in ms, twice the stated error) of each file of a case."""
    found = []
    for pair, (_, truth) in zip(base.pairs(case), case.films, strict=False):
        has_map = bool(pair.get("samples"))
        off_ms = base.off_ms(pair, truth["media_zero_s"]) if has_map else 0.0
        found.append((pair["status"], off_ms, 2 * pair["sigma"]["total_ms"] if has_map else 0.0))
    return found


def main() -> int:
    """Play all cases; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--clean", type=int, default=60, help="whole films, at random lengths")
    parser.add_argument("--seeds", type=int, default=3, help="recordings that are damaged")
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    given = parser.parse_args()
    maker, sums, worst = film_maker(lambda name: given.data / name), Counter[str](), 0.0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for seed in range(given.seeds):
            base, rng = Base(maker, Path(folder) / str(seed), 31 + seed), np.random.default_rng(seed)
            cases = list(damaged(base, rng, given.cases // given.seeds))
            whole = len(base.film["vide"].samples)
            for _ in range(given.clean // given.seeds):
                payloads = int(rng.integers(14, whole // 30))
                film = base.maker.cut(base.film, 0, 0, last=30 * payloads, last_payload=payloads)
                cases.append(Case("clean", [film], ["GX010001.MP4"]))
            for case in cases:
                rows = judged(base, case)
                wrong = [row for row in rows if row[0] == "aligned" and row[1] > row[2]]
                is_right = all(row[0] == "aligned" and row[1] <= row[2] for row in rows)
                kind = "clean" if case.name == "clean" else "damaged"
                sums[
                    f"{kind}: aligned beyond the bound"
                    if wrong
                    else f"{kind}: right"
                    if is_right
                    else f"{kind}: not claimed"
                ] += 1
                worst = max([worst, *(row[1] for row in rows if row[0] == "aligned")])
                said = "; ".join(f"{status} off {off:.2f} ms of {bound:.1f}" for status, off, bound in rows)
                print(f"{31 + seed} {case.name}: {said}", flush=True)
    print(dict(sums), f"aligned ones are off by {worst:.3f} ms at most")
    return 1 if any("beyond" in name for name in sums) else 0


if __name__ == "__main__":
    sys.exit(main())
