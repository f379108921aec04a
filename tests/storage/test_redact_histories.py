"""Seeded histories of a recording: pauses, redactions, archives, copies, kill -9. `make redactions` plays more."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dying_commands import Dying, dying_commands
from folder_contents import contents
from paused_recording import FILM, RATES, SECONDS, SEEN, Truth, host_ns, write_paused

from kitchensync.storage.events import EventLog
from kitchensync.storage.move.archive import archive
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.recording import open_recording
from kitchensync.storage.redact.redaction import redact
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow
HISTORIES = int(os.environ.get("KITCHENSYNC_HISTORIES") or 3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    path = tmp_path_factory.mktemp("data") / "take"
    return path, write_paused(path, [])


@pytest.fixture(scope="module")
def dying() -> Iterator[Dying]:
    with dying_commands() as killed:
        yield killed


def touched(rng: random.Random, take: Path) -> tuple[float, float]:
    """Log one pause, sometimes nested, sometimes without an end; return its seconds."""
    start_s = rng.uniform(-1, SECONDS - 1)
    end_s = start_s + rng.choice((0.2, 1.0, 3.0))
    touches = [("pause", start_s), ("resume", end_s)]
    if rng.random() < 0.2:
        touches = [("pause", start_s), ("pause", end_s - 0.1), ("resume", end_s - 0.05), ("resume", end_s)]
    log = EventLog(take, rng.choice(("tablet", "tablet_late")))
    for kind, at_s in touches:
        log.append(kind, host_ns=host_ns(at_s), uncertainty_ns=0, body={}, op_id=str(rng.random()))
    return start_s, end_s


def residue(folder: Path, truth: Truth, pauses: list[tuple[float, float]]) -> list[tuple[str, float]]:
    every = b"".join(contents(folder).values())

    def inside(at_s: float) -> bool:
        return any(start_s <= at_s <= end_s for start_s, end_s in pauses)

    streams = {name: truth.packets[name] for name in SEEN[:2]} | {"film": truth.pictures}
    return [(name, at) for name, told in streams.items() for at, one in told if inside(at) and one in every]


@pytest.mark.parametrize("group", range(3))
def test_no_history_leaves_a_residue_or_half_a_redaction(
    made: tuple[Path, Truth], dying: Dying, tmp_path: Path, group: int
) -> None:
    for seed in range(group, HISTORIES, 3):
        one_history(seed, made, dying, tmp_path / str(seed))
        shutil.rmtree(tmp_path / str(seed))


def one_history(seed: int, made: tuple[Path, Truth], dying: Dying, place: Path) -> None:
    rng, truth = random.Random(seed), made[1]
    data, store = place / "data", place / "store"
    take = Path(shutil.copytree(made[0], data / "take"))
    other = Path(shutil.copytree(made[0], data / "other"))
    before = contents(other)
    pauses = [touched(rng, take)]
    store.mkdir()
    steps = ["archive", "copy", "die", "die", "pause", "die"]
    rng.shuffle(steps)
    for step in steps[: rng.randint(2, 6)]:
        if step == "archive" and not any(one["state"] == "begun" for one in said_of(take)):
            archive(take)
        elif step == "copy":
            run_mover([take], [store], rule=None)
        elif step == "pause":
            pauses.append(touched(rng, take))
        elif step == "die" and dying(
            data, ["redact", str(take), "--reason", "history"], rng.randrange(1, 30)
        ):
            state = [one["state"] for one in said_of(take)]
            assert verify(take)["status"] == "FAIL" or "begun" not in state, (
                seed,
                "half, and nobody says so",
            )
    redact(take, reason="history")
    assert not residue(place / "data" / "take", truth, pauses), (seed, pauses)
    assert not residue(store, truth, pauses), (seed, pauses)
    said = verify(take)
    destroyed = any(one["streams"] for one in said_of(take))
    assert destroyed or all(end_s < 0 for _, end_s in pauses), (seed, pauses)
    assert said["status"] == ("WARN" if destroyed else "PASS"), (seed, said["reasons"])
    assert not said["corrupt"], seed
    for name, rate in RATES.items():
        facts = said["streams"][name]
        missing = sum(last - first + 1 for first, last in facts["missing"])
        assert facts["received"] == facts["stored"] + missing == SECONDS * rate, (seed, name)
    assert contents(other) == before, seed
    with open_recording(take, with_pauses=True) as recording:
        assert len(recording["hololens/gyroscope"]) == SECONDS * RATES["hololens/gyroscope"], seed
    assert (take / FILM).stat().st_size == (other / FILM).stat().st_size


def said_of(take: Path) -> list[dict]:
    found: list[dict] = json.loads((take / "recording.json").read_text()).get("redactions", [])
    return found
