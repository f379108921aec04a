"""`kitchensync withdraw`: nothing is left in any place that can be reached, and files of others are untouched."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from dying_commands import dying_after
from folder_contents import hashes, holding
from fsspec.implementations.memory import MemoryFileSystem
from typed_commands import code_and_answer as run

from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.errors import Withdrawn
from kitchensync.storage.manifest import edit_manifest, read_manifest
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.move.upload import upload
from kitchensync.storage.withdraw import withdrawal
from kitchensync.storage.withdraw.withdrawal import Policy

pytestmark = pytest.mark.slow

NAME, PERSON = b"Wilhelmina Canary", "P07-canary"


@pytest.fixture
def data(finished: Path, tmp_path: Path) -> Path:
    """Two recordings of two people, each with a copy in a store and one in the cloud; a name is planted in one."""
    root = tmp_path / "lab"
    for name, person in (("take-1", PERSON), ("take-2", "P08")):
        shutil.copytree(finished, root / "data" / name)
        with edit_manifest(root / "data" / name) as manifest:
            manifest |= {"recording": name, "uuid": f"uuid of {name}", "pseudonym": person, "virtual": True}
    events = root / "data" / "take-1" / "events"
    events.mkdir(exist_ok=True)
    (events / "notes.txt").write_bytes(b"told by " + NAME)
    (root / "store").mkdir()
    takes = [root / "data" / "take-1", root / "data" / "take-2"]
    run_mover(takes, [root / "store"], rule=FreeRule(copies_before_free=9))
    for take in takes:
        assert run("upload", take, f"file://{root}/cloud")[0] == 0
    return root / "data"


def payload_of(recording: Path) -> bytes:
    chunk = max(recording.rglob("*.h5"), key=lambda path: path.stat().st_size)
    return chunk.read_bytes()[2000:2064]


@pytest.mark.promise("Nothing leaves without consent; pauses and withdrawals reach every file")
def test_everything_of_one_person_goes_and_nothing_of_another(data: Path) -> None:
    planted = (NAME, PERSON.encode(), payload_of(data / "take-1"))
    other = {
        place: hashes(place / "take-2") for place in (data, data.parent / "store", data.parent / "cloud")
    }
    before = {one["file"]: one["sha256"] for one in tombstones(data / "take-1")}
    assert len(holding(data.parent, NAME)) == 3, "in the recording and in its copies"
    code, said = run("withdraw", "--person", PERSON, "--data", data)
    assert (code, said["status"], said["recordings"]) == (0, "done", ["take-1"])
    assert [place["done"] for place in said["places"]] == ["destroyed"] * 3
    assert all(place["found"] for place in said["places"])
    assert holding(data.parent, NAME, PERSON.encode()) == []
    assert [name for name in holding(data.parent, planted[2]) if "take-1" in name.split("/")] == []
    assert [path.name for path in (data / "take-1").rglob("*")] == ["recording.json"]
    tombstone = read_manifest(data / "take-1")
    assert tombstone.keys() <= {"schema", "recording", "uuid", "withdrawn", "check"}
    assert {one["file"]: one["sha256"] for one in tombstone["withdrawn"]["files"]} == before
    assert other == {place: hashes(place / "take-2") for place in other}
    refusing = (
        ["verify"],
        ["sync"],
        ["upload", f"file://{data.parent}/cloud"],
        ["consent", "--reference", "f", "--scopes", "annotate", "--by", "me"],
    )
    for command, *more in refusing:
        code, refused = run(command, data / "take-1", *more)
        assert code == 1, (command, refused)
    assert holding(data.parent, NAME) == []
    code, again = run("withdraw", data / "take-1")
    assert (code, again["status"], again["places"][-1]["found"]) == (0, "done", 0)


def tombstones(recording: Path) -> list[dict[str, Any]]:
    return [
        {"file": name, "sha256": sha256}
        for name, sha256 in hashes(recording).items()
        if name != "recording.json"
    ]


def test_a_store_that_is_away_is_open_and_done_when_it_comes_back(data: Path) -> None:
    store = data.parent / "store"
    store.rename(data.parent / "away")
    code, said = run("withdraw", data / "take-1")
    assert (code, said["status"]) == (0, "open")
    assert [bool(place["open"]) for place in said["places"]].count(True) == 1
    assert holding(data, NAME) == []
    (data.parent / "away").rename(store)
    assert holding(store, NAME) != []
    code, said = run("withdraw", data / "take-1")
    assert (code, said["status"]) == (0, "done")
    assert holding(data.parent, NAME) == []
    assert (store / "take-2" / "recording.json").exists()


@pytest.mark.parametrize("stops_after", range(0, 60, 7))
def test_an_interrupted_withdrawal_goes_on(
    data: Path, monkeypatch: pytest.MonkeyPatch, stops_after: int
) -> None:
    other = hashes(data / "take-2")
    dying = dying_after(stops_after)
    with monkeypatch.context() as patched:
        patched.setattr(LOCAL, "remove", dying(LOCAL.remove))
        patched.setattr(LOCAL, "sync_folder", dying(LOCAL.sync_folder))
        patched.setattr(withdrawal.shutil, "rmtree", dying(shutil.rmtree))
        try:
            withdrawal.withdraw(data / "take-1", Policy.DESTROY)
        except KeyboardInterrupt:
            if read_manifest(data / "take-1").get("withdrawn"):
                assert run("upload", data / "take-1", f"file://{data.parent}/other")[0] == 1
                assert not (data.parent / "other").exists()
            else:
                assert stops_after == 0, "the first thing that is written shuts every way out"
    code, said = run("withdraw", data / "take-1")
    assert (code, said["status"]) == (0, "done")
    assert holding(data.parent, NAME, PERSON.encode()) == []
    assert read_manifest(data / "take-1")["withdrawn"]["files"]
    assert hashes(data / "take-2") == other


def test_copies_on_their_way_end_and_nothing_of_them_stays(data: Path) -> None:
    """Withdrawn while an upload and a mover run: they stop at the next piece, and what they had sent goes too."""
    take, place = data / "take-1", data.parent / "late"
    place.mkdir()

    def withdrawn_meanwhile(copy: Callable[[Callable[..., None]], Any]) -> Any:
        said: list[Any] = []
        thread = threading.Thread(target=lambda: said.append(withdrawal.withdraw(take, Policy.DESTROY)))

        def told(*_: object) -> None:
            if thread.ident is None and holding(place, NAME):
                thread.start()
                while "withdrawn" not in read_manifest(take):
                    time.sleep(0.01)

        try:
            return copy(told)
        finally:
            assert thread.ident is not None, "something had been sent"
            thread.join()
            assert holding(place, NAME) == []
            assert [one.open for one in said[0] if one.open] == []
            assert [path.name for path in take.iterdir()] == ["recording.json"]

    kept = shutil.copytree(take, data.parent / "kept")
    with pytest.raises(Withdrawn):
        withdrawn_meanwhile(lambda told: upload(take, f"file://{place}", told))
    shutil.rmtree(take)
    shutil.copytree(kept, take)
    shutil.rmtree(kept)
    (state,) = withdrawn_meanwhile(lambda told: run_mover([take], [place], rule=None, report=told))
    assert "withdrew" in state.problem
    assert holding(data.parent, NAME) == []


class Keeping(MemoryFileSystem):
    """A store that says yes, and keeps the file."""

    protocol = "keeping"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def rm_file(self, *_: object, **__: object) -> None:
        """Say yes."""


def test_a_store_that_keeps_what_it_says_to_have_destroyed_is_open(data: Path) -> None:
    fsspec.register_implementation("keeping", Keeping, clobber=True)
    assert run("upload", data / "take-1", "keeping://lab")[0] == 0
    for _ in range(2):
        code, said = run("withdraw", data / "take-1")
        assert (code, said["status"]) == (0, "open")
        (left,) = (one for one in said["places"] if one["open"])
        assert left["place"] == "keeping://lab/take-1"
        assert left["open"] == f"{left['found']} files are still there"
    Keeping.store.clear()
    assert run("withdraw", data / "take-1")[1]["status"] == "done"


def test_put_aside_it_can_be_read_by_its_owner_alone(data: Path) -> None:
    before = hashes(data / "take-1")
    code, said = run("withdraw", data / "take-1", "--policy", "quarantine")
    assert (code, said["places"][-1]["done"]) == (0, "quarantined")
    aside = data / ".withdrawn-take-1"
    assert aside.stat().st_mode & 0o777 == 0o700
    kept = hashes(aside)
    assert {name: kept[name] for name in before if name != "recording.json"} == {
        name: digest for name, digest in before.items() if name != "recording.json"
    }
    assert holding(data.parent / "store", NAME) == []
    assert [line["recording"] for line in run("list", data)[1]["recordings"]] == ["take-1", "take-2"]


def test_what_is_refused(data: Path) -> None:
    with edit_manifest(data / "take-1") as manifest:
        manifest["state"] = "recording"
    code, said = run("withdraw", data / "take-1")
    assert (code, "being recorded" in said["reason"]) == (1, True)
    assert holding(data / "take-1", NAME) != []
    assert run("withdraw")[0] == run("withdraw", data / "take-1", "--person", "x", "--data", data)[0] == 2
    assert run("withdraw", "--person", "nobody", "--data", data)[1]["places"] == []
