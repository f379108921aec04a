"""The table of the trials: what is asked of a class, what came out, and what misses its target."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from sync_pairs import Maker


@dataclass(frozen=True)
class Outcome:
    """One trial: status, largest error over the media (ms), claimed 95 % bound (ms), and why."""

    status: str
    error_ms: float
    bound_ms: float
    reasons: tuple[str, ...]
    seconds: float
    placed_s: float = 0.0  # how far from the truth the worst jump was placed


@dataclass(frozen=True)
class Class:
    """A class of trials: how many, must they be refused, and what is asked of the error (ms).

    `make` makes the pair of a trial; without it `judge` runs the whole trial, for what is not gyroscope to gyroscope.
    """

    make: Maker | None
    trials: int
    reject: bool = False
    target: tuple[float, float] | None = None
    family: str = ""
    judge: Callable[[np.random.Generator], Outcome] | None = None


@dataclass(frozen=True)
class Row:
    """What the trials of a class say together."""

    name: str
    kind: Class
    outcomes: list[Outcome] = field(default_factory=list)
    first_seed: int = 0

    @property
    def accepted(self) -> list[Outcome]:
        """Trials that got a clock map."""
        return [o for o in self.outcomes if o.status != "not_aligned"]

    def failures(self) -> list[str]:
        """What misses its target."""
        found = []
        errors = np.array([o.error_ms for o in self.accepted])
        if self.kind.reject:
            return [f"{len(errors)} accepted"] if len(errors) else []
        if len(errors) and errors.max() > 16.7:
            found.append("wrong by half a frame")
        if self.kind.family == "normal" and len(errors) < len(self.outcomes):
            found.append("refused")
        if self.kind.target and len(errors):
            for value, most in zip(
                (np.median(errors), np.percentile(errors, 95)), self.kind.target, strict=True
            ):
                if value > most:
                    found.append(f"{value:.2f} above {most:g} ms")
        if len(errors):
            found += ["bound too small"] if self.covered < 0.95 else []
            found += ["bound too large"] if self.ratio > 4.0 else []
        return found

    @property
    def covered(self) -> float:
        """Share of accepted trials inside their bound."""
        return float(np.mean([o.error_ms <= o.bound_ms for o in self.accepted]))

    @property
    def ratio(self) -> float:
        """Median of bound over error."""
        return float(np.median([o.bound_ms / max(o.error_ms, 1e-9) for o in self.accepted]))

    def why(self) -> list[str]:
        """One line for each trial with reasons, and for each bound that misses."""
        return [
            f"    seed {seed}: {o.status}, {o.error_ms:.3f} of {o.bound_ms:.3f} ms, {o.placed_s:.2f} s: "
            + "; ".join(o.reasons)
            for seed, o in enumerate(self.outcomes, start=self.first_seed)
            if o.reasons or o.error_ms > o.bound_ms
        ]

    def cells(self) -> list[str]:
        """The row of the table."""
        counts = [sum(o.status == s for o in self.outcomes) for s in ("aligned", "check", "not_aligned")]
        slow = f"{max(o.seconds for o in self.outcomes):.1f}"
        head = [
            self.name,
            f"{self.first_seed}..{self.first_seed + len(self.outcomes) - 1}",
            "/".join(map(str, counts)),
        ]
        target = (
            "{:g}/{:g}".format(*self.kind.target)
            if self.kind.target
            else "refuse"
            if self.kind.reject
            else ""
        )
        verdict = "; ".join(self.failures()) or "ok"
        if not self.accepted:
            return [*head, "", "", "", target, "", "", "", slow, verdict]
        errors = np.array([o.error_ms for o in self.accepted])
        numbers = [f"{x:.3f}" for x in (np.median(errors), np.percentile(errors, 95), errors.max())]
        placed = max(o.placed_s for o in self.accepted)
        where = f"{placed:.2f}" if placed else ""
        return [*head, *numbers, target, f"{self.covered:.0%}", f"{self.ratio:.1f}", where, slow, verdict]


TITLES = ("class", "seeds", "ok/check/not", "median", "p95", "max", "target", "covered", "ratio", "placed s")
TITLES += ("slowest s", "verdict")


def write_result(path: Path | None, name: str, seed: int, outcome: Outcome) -> None:
    """Add one trial to the results file, one JSON object a line; NaN of a refused pair is null."""
    if path is None:
        return
    said = {key: None if value != value else value for key, value in asdict(outcome).items()}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"class": name, "seed": seed, **said}) + "\n")


def read_results(path: Path | None) -> dict[tuple[str, int], Outcome]:
    """Read a results file by class and seed; nothing when there is none yet."""
    found: dict[tuple[str, int], Outcome] = {}
    if path is None or not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        key = said.pop("class"), said.pop("seed")
        said |= {part: np.nan if said[part] is None else said[part] for part in ("error_ms", "bound_ms")}
        found[key] = Outcome(**said | {"reasons": tuple(said["reasons"])})
    return found
