"""A recording folder from anybody is data: nothing outside it is deleted, changed or contacted because it says so."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from folder_contents import hashes
from sqlalchemy import BigInteger, Integer, Text, insert
from typed_commands import code_and_answer as run
from typed_commands import typed

from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.database import open_database
from kitchensync.storage.copies.copy_log import BEGUN, COPIED, CopyRecord
from kitchensync.storage.copies.derived import stamps_of
from kitchensync.storage.copies.verified_places import verified_places
from kitchensync.storage.disk.self_check import append_line
from kitchensync.storage.errors import BadInstallation
from kitchensync.storage.installation import key
from kitchensync.storage.installation import own_list as own_list_module
from kitchensync.storage.installation.own_list import LineKind, OwnList, own_list
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.redact.redaction import redact
from kitchensync.storage.withdraw.withdrawal import Policy, with_made_of, withdraw

UUID, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def lab(finished: Path, tmp_path: Path) -> Path:
    """A data folder with a recording of the lab, its copy in a store, and somebody's own files beside it."""
    (tmp_path / "lab").mkdir()
    shutil.copytree(finished, tmp_path / "lab" / "data" / "mine")
    with edit_manifest(tmp_path / "lab" / "data" / "mine") as manifest:
        manifest |= {"recording": "mine", "uuid": UUID, "pseudonym": "P07"}
    for place in ("store", "home/thesis/sub"):
        (tmp_path / "lab" / place).mkdir(parents=True)
    (tmp_path / "lab/home/thesis/chapter.tex").write_text("mine")
    (tmp_path / "lab/home/thesis/sub/x.txt").write_text("mine")
    return tmp_path / "lab"


def tombstone(lab: Path, **withdrawn: Any) -> Path:
    """Write what a stranger's folder holds: one `recording.json`, withdrawn, with a correct checksum."""
    gift = lab / "data" / "thesis"
    gift.mkdir()
    about = {"utc_ns": 1, "policy": "destroy", "files": [], **withdrawn}
    write_json(
        gift / "recording.json",
        {"schema": "recording/1", "recording": "thesis", "uuid": OTHER, "withdrawn": about},
    )
    return gift


def copied(recording: Path, kind: str, target: Any, where: str, **facts: Any) -> None:
    line = {
        "kind": kind,
        "file": "",
        "bytes": 0,
        "sha256": "",
        "mtime_ns": 0,
        "target": target,
        "where": where,
    }
    append_line(recording / "copies.jsonl", line | {"read": "", "utc_ns": 1, "schema": "copy/1"} | facts)


def bystanders(lab: Path) -> dict[str, str]:
    return {name: sha256 for place in ("home", "data/mine") for name, sha256 in hashes(lab / place).items()}


@pytest.mark.parametrize("how", ["{}", "file://{}"])
@pytest.mark.parametrize("target", [None, "x", "same"])
def test_a_tombstone_from_elsewhere_deletes_nothing(lab: Path, how: str, target: str | None) -> None:
    where = how.format(lab / "home")
    gift = tombstone(lab, open=[{"where": where, "target": where if target == "same" else target}])
    before = bystanders(lab)
    for words in (("withdraw", "--person", "P99", "--data", lab / "data"), ("withdraw", gift)):
        code, said = run(*words)
        assert code == 0
    assert bystanders(lab) == before
    (named,) = (one for one in said["places"] if one["done"] == "not made here")
    assert where in named["place"]


@pytest.mark.parametrize("kind", [BEGUN, COPIED])
def test_stores_that_only_the_recording_names_are_named_and_left(lab: Path, kind: str) -> None:
    gift = Path(shutil.copytree(lab / "data" / "mine", lab / "data" / "thesis"))
    with edit_manifest(gift) as manifest:
        manifest |= {"uuid": OTHER, "pseudonym": "P99"}
    chapter = hashes(lab / "home/thesis")["chapter.tex"]
    for target, where in (("x", str(lab / "home")), (f"file://{lab}/home", f"file://{lab}/home")):
        copied(gift, kind, target, where, file="chapter.tex", sha256=chapter)
    append_line(
        gift / "derived.jsonl", {"path": str(lab / "home/thesis"), "command": "x", "begun": [[1, "h", 1]]}
    )
    before = bystanders(lab)
    said = run("withdraw", gift)[1]
    assert bystanders(lab) == before
    assert [one["done"] for one in said["places"]].count("not made here") == 3


def test_the_uuid_of_another_recording_withdraws_nothing(lab: Path) -> None:
    gift = tombstone(lab)
    with edit_manifest(gift) as manifest:
        manifest["uuid"] = UUID
        manifest |= {"pseudonym": "P99"}
    own_list(gift).add(
        LineKind.DERIVED, UUID, command="x", path=str(lab / "home"), files=stamps_of(lab / "home")
    )
    before = bystanders(lab)
    for words in (("withdraw", gift), ("withdraw", "--person", "P99", "--data", lab / "data")):
        code, said = run(*words)
        assert (code, str(lab / "data" / "mine") in said["reason"]) == (1, True)
        assert bystanders(lab) == before
    assert run("withdraw", lab / "data" / "mine")[1]["status"] == "done", "an empty tombstone stops nobody"


def test_the_hash_of_another_recording_s_film_withdraws_nothing(lab: Path) -> None:
    media = json.loads((lab / "data/mine/gopro/media.json").read_bytes())
    gift = tombstone(lab, files=[{"file": "gopro/X.MP4", "bytes": 1, "sha256": media["files"][0]["sha256"]}])
    with edit_manifest(lab / "data" / "mine") as manifest:
        manifest["pseudonym"] = ""
    before = bystanders(lab)
    found, places = with_made_of([gift])
    assert (found, [Path(one.place).name for one in places]) == ([gift], ["mine"])
    assert "was not made here" in places[0].open
    run("withdraw", gift)
    assert bystanders(lab) == before


def test_a_copy_of_another_recording_of_the_same_name_stays(lab: Path) -> None:
    """In the cloud, and in a folder where its manifest had not arrived yet."""
    mine, other = lab / "data" / "mine", lab / "elsewhere" / "mine"
    shutil.copytree(mine, other)
    with edit_manifest(other) as manifest:
        manifest["uuid"] = OTHER
    (other / "events" / "tablet.jsonl").write_bytes(b"another's\n")
    assert run("upload", mine, f"file://{lab}/cloud")[0] == 0
    run_mover([mine], [lab / "store"], rule=FreeRule(copies_before_free=9))
    shutil.rmtree(lab / "cloud" / "mine")
    shutil.copytree(other, lab / "cloud" / "mine")
    shutil.rmtree(lab / "store" / "mine")
    (lab / "store/mine/events").mkdir(parents=True)
    shutil.copy(other / "events/tablet.jsonl", lab / "store/mine/events")
    before = hashes(lab / "cloud"), hashes(lab / "store")
    said = run("withdraw", mine)[1]
    assert (hashes(lab / "cloud"), hashes(lab / "store")) == before
    assert [one["open"] for one in said["places"] if one["open"]] == [
        "1 files there are no copies made here; look at them"
    ]


@pytest.mark.parametrize("place", ["store", "cloud"])
def test_nothing_is_written_over_another_recording(lab: Path, place: str) -> None:
    mine, other = lab / "data" / "mine", lab / "elsewhere" / "mine"
    shutil.copytree(mine, other)
    with edit_manifest(other) as manifest:
        manifest["uuid"] = OTHER

    def send(recording: Path) -> str:
        if place == "cloud":
            return str(run("upload", recording, f"file://{lab}/cloud")[1].get("reason", ""))
        return run_mover([recording], [lab / "store"], rule=None)[0].problem

    (lab / place / "mine").mkdir(parents=True)
    (lab / place / "mine" / "notes.txt").write_text("of somebody else")
    assert "files that are no copy of this recording, such as" in send(mine)
    assert [path.name for path in (lab / place / "mine").iterdir()] == ["notes.txt"]
    shutil.rmtree(lab / place / "mine")
    assert send(mine) == ""
    before = hashes(lab / place)
    assert f"holds another recording of this name (uuid {UUID})" in send(other)
    assert hashes(lab / place) == before


def test_a_redaction_changes_only_copies_that_were_made_here(lab: Path) -> None:
    gift = Path(shutil.copytree(lab / "data" / "mine", lab / "data" / "thesis"))
    shutil.rmtree(gift / "gopro")
    shutil.copytree(gift, lab / "other" / "thesis")
    (lab / "other" / ".kitchensync-target").write_text('{"schema": "target/1", "target": "x"}\n')
    copied(gift, BEGUN, "x", str(lab / "other"))
    entry = {"chunk": 1, "packets": 1, "bytes": 1, "seq": [0, 1], "ticks": [0, 1], "sha256": "0" * 64}
    with edit_manifest(gift) as manifest:
        manifest["devices"] = {}
        begun = {"id": "x", "state": "begun", "reason": "r", "by": "", "utc_ns": 1, "host_ns": [], "open": []}
        manifest["redactions"] = [begun | {"streams": {"hololens/pv": [entry]}, "films": {}}]
    before = hashes(lab / "other")
    said = redact(gift, reason="x")
    assert hashes(lab / "other") == before
    assert [line for line in said["open"] if "only the recording names this store" in line]


def test_what_lies_beside_a_recording_behind_a_link_stays(lab: Path) -> None:
    gift = tombstone(lab)
    (lab / "data" / ".kitchensync").symlink_to(lab / "home")
    before = bystanders(lab)
    assert run("withdraw", gift)[0] == 0
    assert bystanders(lab) == before


def test_a_list_of_somebody_else_is_refused(lab: Path) -> None:
    gift, own = tombstone(lab), OwnList(lab / "data")
    own.add(LineKind.WITHDRAWING, OTHER, recording="thesis", policy="destroy")
    own.add(LineKind.STORE, OTHER, target="x", where=str(lab / "home"))
    path = lab / "data" / "_app" / "own.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for forged in (lines[1:], [lines[0], lines[1].replace(b"home", b"data")], [lines[1], lines[0]]):
        path.write_bytes(b"".join(forged))
        with pytest.raises(BadInstallation, match="was not written by this installation"):
            withdraw(gift, Policy.DESTROY)
    path.write_bytes(lines[0] + lines[1][:-9])  # killed while it wrote
    own.add(LineKind.MADE, UUID, made_from=[])
    assert [one["kind"] for one in own.entries()] == ["withdrawing", "made"]
    shutil.move(lab / "data" / "_app", lab / "app")
    os.symlink(lab / "app", lab / "data" / "_app")
    with pytest.raises(BadInstallation, match="a link"):
        own.add(LineKind.MADE, UUID, made_from=[])


def test_a_list_that_came_with_its_key_is_not_obeyed(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gift, own = tombstone(lab), OwnList(lab / "data")
    own.add(LineKind.STORE, OTHER, target="x", where=str(lab / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(lab / "state"))
    monkeypatch.setattr(key, "_taken", set())
    with pytest.raises(BadInstallation, match="has not worked here yet"):
        withdraw(gift, Policy.DESTROY)
    key.take_folder(lab / "data" / "_app")
    assert [one["kind"] for one in own.entries()] == ["store"]


def test_copies_are_listed_before_and_after_they_are_made(lab: Path) -> None:
    mine = lab / "data" / "mine"
    run_mover([mine], [lab / "store"], rule=FreeRule(copies_before_free=9))
    listed = list(own_list(mine).entries())
    assert listed[0]["kind"] == "store"
    assert listed[1]["file"] == "recording.json"  # of the copy that had begun
    there = {(one["file"], one["sha256"]) for one in listed[2:]}
    assert there == {*hashes(lab / "store" / "mine").items()}
    assert CopyRecord.__dataclass_fields__.keys() >= {"file", "sha256", "target", "where"}
    withdraw(mine, Policy.DESTROY)
    assert not (lab / "store" / "mine").exists()
    assert read_manifest(mine)["withdrawn"].keys() == {"utc_ns", "policy", "files"}


def received(lab: Path) -> Path:
    """A copy of the lab's recording, as somebody hands it on, in a data folder of its own."""
    theirs = lab / "received" / "mine"
    shutil.copytree(lab / "data" / "mine", theirs)
    return theirs


def test_a_log_of_copies_opens_no_place_in_a_store(lab: Path) -> None:
    mine = lab / "data" / "mine"
    run_mover([mine], [lab / "store"], rule=None)
    theirs = received(lab)  # with the lab's own copies.jsonl
    shutil.rmtree(lab / "store" / "mine")
    (lab / "store" / "mine").mkdir()
    (lab / "store" / "mine" / "notes.txt").write_text("somebody's")
    (state,) = run_mover([theirs], [lab / "store"], rule=None)
    assert "files that are no copy" in state.problem
    assert hashes(lab / "store" / "mine").keys() == {"notes.txt"}


@pytest.mark.parametrize("change", ["events/tablet.jsonl", "hololens/pv/000001.h5", "recording.json"])
def test_a_changed_copy_of_a_recording_does_not_replace_the_labs_own(lab: Path, change: str) -> None:
    mine = lab / "data" / "mine"
    run_mover([mine], [lab / "store"], rule=None)
    before = hashes(lab / "store")
    theirs = received(lab)
    if change == "recording.json":
        with edit_manifest(theirs) as manifest:
            manifest["place"] = "elsewhere"
    else:
        (theirs / change).write_bytes(b"EVIL")
        with edit_manifest(theirs) as manifest:
            manifest["files"] = {name: facts for name, facts in manifest["files"].items() if name != change}
    (state,) = run_mover([theirs], [lab / "store"], rule=None)
    assert "a copy that was not made here" in state.problem
    assert hashes(lab / "store") == before


def test_an_equal_copy_is_taken_over(lab: Path) -> None:
    run_mover([lab / "data" / "mine"], [lab / "store"], rule=None)
    before = hashes(lab / "store")
    (state,) = run_mover([received(lab)], [lab / "store"], rule=None)
    assert state.finished
    assert hashes(lab / "store") == before


def test_an_archive_drops_only_chunks_that_were_copied_from_here(lab: Path) -> None:
    mine = lab / "data" / "mine"
    run_mover([mine], [lab / "store"], rule=None)
    planted = lab / "store" / "mine" / "hololens" / "pv" / "000050.h5"
    planted.write_bytes(b"another's")
    copied = lab / "store" / "mine" / "hololens" / "pv" / "000001.h5"
    folder = mine / "hololens" / "pv"
    (folder / "000001.h5").rename(folder / "000001-000099.h5")
    with edit_manifest(mine) as manifest:
        facts = manifest["files"].pop("hololens/pv/000001.h5")
        manifest["files"] = {
            name: one for name, one in manifest["files"].items() if not name.startswith("hololens/pv/")
        } | {"hololens/pv/000001-000099.h5": facts}
    for other in folder.glob("00000[2-9].h5"):
        other.unlink()
    (state,) = run_mover([mine], [lab / "store"], rule=None)
    assert state.finished, state.problem
    assert planted.read_bytes() == b"another's"
    assert not copied.exists()


def test_a_manifest_in_the_data_folder_decides_nothing_about_the_recordings_in_it(lab: Path) -> None:
    """An archive without a folder of its own was unpacked there."""
    consent = {"consent": "form", "consent_scopes": ["release_raw"], "pseudonym": "P99"}
    about = {"state": "complete", "files": {}, "streams": {}, "devices": {}}
    manifest = {"schema": "recording/1", "recording": "gift", "uuid": OTHER, **consent, **about}
    write_json(lab / "data" / "recording.json", manifest)
    before = bystanders(lab)
    for words in (
        ("withdraw", "--person", "P99", "--data", lab / "data"),
        ("withdraw", lab / "data"),
        ("upload", lab / "data", f"file://{lab}/cloud"),
    ):
        code, said = run(*words)
        assert (code, "lies inside another recording" in said["reason"]) == (1, True), words
    assert bystanders(lab) == before
    assert not (lab / "cloud").exists()


@pytest.mark.parametrize("is_own", [False, True])
def test_the_memory_of_an_app_from_elsewhere_destroys_no_folder_of_others(lab: Path, *, is_own: bool) -> None:
    """A received folder brings an `_app` along; or one's own was restored from a backup that names the folder."""
    received = lab / "received"
    memory = open_database(received / "_app" / "app.db", bytes(32))
    (received / "_app" / "app.key").write_bytes(bytes(32))
    with memory.writing() as connection:
        person = {"id": "p", "pseudonym": "P99", "roles": "[]", "active": True}
        connection.execute(insert(tables.person).values(person))
        zero = {one.name: 0 for one in tables.recording.columns if isinstance(one.type, Integer | BigInteger)}
        words = {one.name: "" for one in tables.recording.columns if isinstance(one.type, Text)}
        cooked = {"id": "r", "person": "p", "folder": str(lab / "data" / "mine"), "phase": "withdrawn"}
        connection.execute(insert(tables.recording).values(zero | words | cooked))
    memory.close()
    if is_own:
        key.take_folder(received / "_app")
    before = bystanders(lab)
    code, said = run("withdraw", "--person", "P99", "--data", received)
    assert (code, "has not worked here yet" in said.get("reason", "")) == (not is_own, not is_own)
    assert bystanders(lab) == before


@pytest.mark.parametrize("name", ["app.key", "own.jsonl", "app.db", "backups.jsonl"])
def test_the_app_does_not_start_over_a_memory_from_elsewhere(lab: Path, name: str) -> None:
    """It would go on with withdrawals of that list by itself: files, stores, and cameras at addresses in it."""
    (lab / "received" / "_app").mkdir(parents=True)
    (lab / "received" / "_app" / name).write_bytes(b"a key that no other test takes".ljust(32))
    done = typed("app", "--data", lab / "received", "--port", "0")
    assert (done.exit_code, "app --mine" in done.stderr) == (1, True)
    assert [one.name for one in (lab / "received" / "_app").iterdir()] == [name]


def test_a_store_inside_a_recording_is_no_second_place(lab: Path) -> None:
    """Else a film would be erased from its card that lies in one folder alone."""
    mine = lab / "data" / "mine"
    film = mine / "gopro" / "GX010001.MP4"
    film.write_bytes(b"film")
    store = mine / "store"
    (store / "mine" / "gopro").mkdir(parents=True)
    shutil.copy(film, store / "mine" / "gopro")
    (store / ".kitchensync-target").write_text('{"target": "t"}')
    sha256 = hashes(mine / "gopro")["GX010001.MP4"]
    copied(mine, COPIED, "t", str(store), file="gopro/GX010001.MP4", sha256=sha256)
    places = verified_places(mine, "gopro/GX010001.MP4", sha256, [])
    assert places.found == [film]
    assert "lies in the recording itself" in places.problems[0]


@pytest.mark.parametrize("odd", [7, "x", {"a": 1}, ["x"], [7], [None], None])
@pytest.mark.parametrize("key", ["open", "derived", "cards"])
def test_a_tombstone_of_other_types_is_refused(lab: Path, key: str, odd: Any) -> None:
    code, said = run("withdraw", tombstone(lab, **{key: odd}))
    assert (code, "restore it from a copy" in said.get("reason", "")) == (1, True)


def test_a_command_proves_each_line_of_the_list_once(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("two", "three"):
        shutil.copytree(lab / "data" / "mine", lab / "data" / name)
        with edit_manifest(lab / "data" / name) as manifest:
            manifest |= {"recording": name, "uuid": f"uuid of {name}"}
    takes = [lab / "data" / name for name in ("mine", "two", "three")]
    assert all(one.finished for one in run_mover(takes, [lab / "store"], rule=None))
    before, proved, mac = len(OwnList(lab / "data").entries()), [], own_list_module._mac
    monkeypatch.setattr(own_list_module, "_mac", lambda *texts: (proved.append(1), mac(*texts))[1])
    assert run("withdraw", "--person", "P07", "--data", lab / "data")[1]["status"] == "done"
    written = len(OwnList(lab / "data").entries()) - before
    read_at_the_end = before + written
    assert len(proved) - read_at_the_end <= before + 2 * written, "read once, and what was written since"
