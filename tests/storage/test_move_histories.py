"""Two computers move recordings to one store, some of the same name, and are killed: seeded, judged by hash.

KITCHENSYNC_HISTORIES=100 plays more.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dying_commands import Dying, dying_commands
from folder_contents import hashes
from sealed_chunks import sealed

from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.copies.target import Target
from kitchensync.storage.disk.durable import Disk
from kitchensync.storage.manifest import write_json
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.verify import verify
from kitchensync.storage.withdraw.withdrawal import Policy, withdraw

pytestmark = pytest.mark.slow
HISTORIES = int(os.environ.get("KITCHENSYNC_HISTORIES") or 1)
NAMES = {"x": [f"take-{n}" for n in range(10)], "y": [f"take-{n}" for n in range(5, 15)]}
"Five of them are on both computers."
LARGE = ("take-2", "take-7")
"Their videos are copied in two pieces."
ROUNDS, MOST_CHANGES = 30, 60
NOW = FreeRule(copies_before_free=1, keep_days=0)
Heavy = dict[str, str]
"""SHA-256 of the chunks and videos of a recording, by path."""


def write_recording(path: Path) -> Heavy:
    """Write a closed recording of two chunks and a video, all content its own."""
    rng, files = random.Random(str(path.relative_to(path.parents[1]))), dict[str, Any]()
    for number in (1, 2):
        packets = [Packet(n, 1, n, n, 1, rng.randbytes(500), b"") for n in range(5 * number - 5, 5 * number)]
        files |= sealed(path, "hololens/pv", number, packets)
    (path / "gopro").mkdir()
    film = rng.randbytes(9 << 20 if path.name in LARGE else 20_000)
    (path / "gopro" / "GX010001.MP4").write_bytes(film)
    facts = {"file": "GX010001.MP4", "bytes": len(film), "sha256": hashlib.sha256(film).hexdigest()}
    write_json(path / "gopro" / "media.json", {"files": [facts]})
    manifest: dict[str, Any] = {"schema": "recording/1", "recording": path.name, "state": "complete"}
    manifest |= {"uuid": f"{path.parent.name} {path.name}", "files": files, "streams": {"hololens/pv": {}}}
    manifest |= {"devices": {"gopro": {"kind": "gopro"}}, "stopped": {"utc_ns": 0}}
    write_json(path / "recording.json", manifest)
    return {name: sha256 for name, sha256 in hashes(path).items() if name.endswith((".h5", ".MP4"))}


@dataclass
class Judge:
    """What must hold after every kill."""

    store: Path
    truth: dict[Path, Heavy]
    seen: dict[str, str] = field(default_factory=dict)
    "SHA-256 of each chunk and video that was ever whole in the store, by path."
    owners: dict[str, str] = field(default_factory=dict)
    "UUID by name of the recording that the store has under it."

    def look(self, when: object) -> None:
        there = {name: one for name, one in hashes(self.store).items() if name.endswith((".h5", ".MP4"))}
        lost = {name for name, sha256 in self.seen.items() if there.get(name) != sha256}
        assert not lost, (when, "lost or overwritten in the store")
        self.seen = there
        for path in self.store.glob("*/recording.json"):
            if not (content := path.read_bytes()):
                continue  # killed before the first byte of a copy
            uuid = json.loads(content)["uuid"]
            assert self.owners.setdefault(path.parent.name, uuid) == uuid, (when, "another owner")
        for recording, heavy in self.truth.items():
            here, uuid = hashes(recording), json.loads((recording / "recording.json").read_bytes())["uuid"]
            copy = {name: there.get(f"{recording.name}/{name}") for name in heavy}
            gone = {name for name, sha256 in heavy.items() if sha256 not in (here.get(name), copy[name])}
            assert not gone, (when, recording, "neither here nor in the store")
            if self.owners.get(recording.name) == uuid:
                others = {name for name, sha256 in heavy.items() if copy[name] not in (None, sha256)}
                assert not others, (when, recording, "another's files in its copy")
            else:
                assert heavy.items() <= here.items(), (when, recording, "freed without a copy of its own")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Heavy]]:
    root = tmp_path_factory.mktemp("computers")
    paths = [root / computer / name for computer, names in NAMES.items() for name in names]
    return root, {str(path.relative_to(root)): write_recording(path) for path in paths}


@pytest.fixture(scope="module")
def dying() -> Iterator[Dying]:
    with dying_commands(may_refuse=True, torn=True) as killed:
        yield killed


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_no_kill_loses_or_overwrites_what_the_store_holds(
    made: tuple[Path, dict[str, Heavy]], dying: Dying, tmp_path: Path, seed: int
) -> None:
    rng, place, store = random.Random(seed), tmp_path / "all", tmp_path / "all" / "store"
    shutil.copytree(made[0], place)
    store.mkdir()
    recordings = [place / name for name in made[1]]
    judge = Judge(store, {place / name: heavy for name, heavy in made[1].items()})
    kills = 0
    for number in range(ROUNDS):
        computer = rng.choice("xy")
        own = [path for path in recordings if path.parent.name == computer]
        chosen = [str(path) for path in rng.sample(own, rng.randint(1, 4))]
        words = ["move", *chosen, "--to", str(store), "--copies", "1", "--keep-days", rng.choice("07")]
        kills += dying(place, words, rng.randrange(MOST_CHANGES))
        judge.look((seed, number, words))
    assert kills > ROUNDS // 3, "many died on the way"
    rng.shuffle(recordings)
    first = run_mover(recordings, [store], rule=NOW)
    judge.look((seed, "first whole run"))
    second = run_mover(recordings, [store], rule=NOW)
    judge.look((seed, "second whole run"))
    assert [one.finished for one in first] == [one.finished for one in second], seed
    for recording, state in zip(recordings, second, strict=True):
        heavy, copy = judge.truth[recording], store / recording.name
        if state.finished:
            there, here = hashes(copy), hashes(recording)
            assert heavy.items() <= there.items(), (seed, recording)
            assert not heavy.keys() & here.keys(), (seed, recording, "freed")
            assert {name: there.get(name) for name in here if name != "copies.jsonl"} == {
                name: sha256 for name, sha256 in here.items() if name != "copies.jsonl"
            }, (seed, recording)
        else:
            assert "holds another recording of this name" in state.problem, (seed, recording, state)
    finished = sorted(path.name for path, one in zip(recordings, second, strict=True) if one.finished)
    assert finished == sorted({*NAMES["x"], *NAMES["y"]}), "one of each name"
    assert not list(store.rglob("*.part")), seed


def test_of_two_copies_that_begin_at_once_one_is_refused(tmp_path: Path) -> None:
    """The second computer's mover looks at the place before the first one's copy is announced, and begins later."""
    first, second, store = tmp_path / "x" / "take-1", tmp_path / "y" / "take-1", tmp_path / "store"
    truth = write_recording(first)
    write_recording(second)
    store.mkdir()
    states = []

    class Overtaken(Disk):
        """Makes the folder of a recording while another computer copies to it."""

        def make_folder(self, path: Path) -> None:
            super().make_folder(path)
            if not states:
                states.extend(run_mover([first], [store], rule=NOW))

    assert Target(store).identity
    (late,) = run_mover([second], [store], rule=NOW, disk=Overtaken())
    assert [(one.finished, one.freed) for one in states] == [(True, 3)]
    assert (late.finished, "another copy, which has just begun" in late.problem) == (False, True)
    (again,) = run_mover([second], [store], rule=NOW)
    assert "holds another recording of this name (uuid x take-1)" in again.problem
    assert truth.items() <= hashes(store / "take-1").items()


def test_interrupted_uploads_of_one_name_do_not_mix(dying: Dying, tmp_path: Path) -> None:
    """The first computer's upload is killed at each step; then the second one's ends or is refused."""
    kills, lives = 0, set[str]()
    for step in range(40):
        place = tmp_path / str(step)
        first, second = place / "x" / "take-1", place / "y" / "take-1"
        truth = {one: write_recording(one) for one in (first, second)}
        (place / "store").mkdir()
        for data in (first.parent, second.parent):
            (data / "lab.toml").write_text(f'stores = ["file://{place}/store"]')
        upload = {one: ["upload", str(one), f"file://{place}/store"] for one in truth}
        kills += dying(place, upload[first], step)
        there = place / "store" / "take-1" / "recording.json"
        if there.exists() and there.read_bytes():
            lives.add(verify(there.parent)["life"])
        dying(place, upload[second], 10_000)
        dying(place, upload[first], 10_000)
        copy = hashes(place / "store" / "take-1")
        whole = [one for one, heavy in truth.items() if heavy.items() <= copy.items()]
        assert len(whole) == 1, step
        assert {name for name in copy if name.endswith((".h5", ".MP4"))} == truth[whole[0]].keys()
        assert verify(there.parent)["life"] == "complete", step
        if kills <= step:
            break
    assert (kills > 5, "copying" in lives, lives <= {"copying", "complete"}) == (True, True, True)


def test_a_copy_that_was_interrupted_at_its_begin_is_named_and_goes(dying: Dying, tmp_path: Path) -> None:
    """Killed before, while, and after the manifest of the copy is written beside the one that took the place."""
    said = set[str]()
    for again in (True, False):
        for step in range(30):
            place = tmp_path / f"{again}-{step}"
            take, copy = place / "x" / "take-1", place / "store" / "take-1"
            write_recording(take)
            copy.parent.mkdir()
            if not dying(place, ["move", str(take), "--to", str(copy.parent)], step):
                break
            if not (copy / "recording.json").is_file() or (copy / "recording.json").read_bytes():
                continue
            reasons = verify(copy)["reasons"]
            assert "is a copy that was interrupted before its first file; run `kitchensync move" in reasons[0]
            said |= {path.name for path in copy.iterdir()}
            if again:
                assert run_mover([take], [copy.parent])[0].finished
                assert not list(copy.rglob("*.part"))
            else:
                assert [one.open for one in withdraw(take, Policy.DESTROY) if one.open] == []
                assert not copy.exists()
    assert said == {"recording.json", "recording.json.part"}


@pytest.mark.parametrize("content", [b"{", b"{}"])
def test_a_place_that_does_not_tell_whose_it_is_takes_no_new_copy(tmp_path: Path, content: bytes) -> None:
    take, place = tmp_path / "x" / "take-1", tmp_path / "store" / "take-1"
    write_recording(take)
    place.mkdir(parents=True)
    (place / "recording.json").write_bytes(content)
    (state,) = run_mover([take], [place.parent], rule=NOW)
    assert "files that are no copy of this recording" in state.problem
    assert hashes(place) == {"recording.json": hashlib.sha256(content).hexdigest()}
