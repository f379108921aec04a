"""The life of a recording, told from its folder; a folder without `recording.json` is still a recording."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kitchensync.storage.copies.copy_log import COPY_LOG
from kitchensync.storage.errors import NotARecording
from kitchensync.storage.life import Life, life_of
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.move.archive import archive
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.names import MANIFEST, recordings_in

NOW = FreeRule(copies_before_free=1, keep_days=0.0)


def change(recording: Path, **fields: object) -> None:
    with edit_manifest(recording) as manifest:
        manifest.update(fields)


def damage(recording: Path, old: bytes, new: bytes) -> None:
    path = recording / MANIFEST
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def free(recording: Path) -> Path:
    store = recording.parent.parent / "store"
    store.mkdir()
    (state,) = run_mover([recording], [store], rule=NOW)
    assert state.freed > 0
    return store


def test_a_closed_recording_is_complete_then_archived(finished):
    assert life_of(finished) == Life.COMPLETE
    archive(finished)
    assert life_of(finished) == Life.ARCHIVED


def test_an_archive_that_was_interrupted_is_not_archived(finished):
    archive(finished)
    more = {"sha256": "", "bytes": 1}
    with edit_manifest(finished) as manifest:
        manifest["files"] |= {"hololens/pv/000004.h5": more}
    assert life_of(finished) == Life.ARCHIVED, "one more file cannot be packed"
    with edit_manifest(finished) as manifest:
        manifest["files"] |= {"hololens/pv/000005.h5": more}
    assert life_of(finished) == Life.COMPLETE


@pytest.mark.parametrize(("state", "life"), [("recording", Life.RECORDING), ("aborted", Life.ABORTED)])
def test_the_state_tells_who_is_open_and_who_was_given_up(finished, state, life):
    change(finished, state=state)
    assert life_of(finished) == life


def test_freed_files_are_elsewhere(finished):
    free(finished)
    assert life_of(finished) == Life.ELSEWHERE


def test_a_withdrawal_counts_before_all_but_damage(finished):
    change(finished, withdrawn={"host_ns": 1}, consent="none")
    assert life_of(finished) == Life.WITHDRAWN
    with edit_manifest(finished) as manifest:  # what is left of a recording that was destroyed
        for key in ("streams", "devices", "state"):
            del manifest[key]
    assert life_of(finished) == Life.WITHDRAWN
    damage(finished, b'"take"', b'"tale"')
    assert life_of(finished) == Life.DAMAGED


@pytest.mark.parametrize("key", ["recording", "state", "files", "streams", "devices"])
def test_a_manifest_that_lacks_something_is_damaged(finished, key):
    with edit_manifest(finished) as manifest:
        del manifest[key]
    assert life_of(finished) == Life.DAMAGED


@pytest.mark.parametrize(
    "odd", [{"files": []}, {"streams": {"hololens/pv": 5}}, {"state": {}}, {"schema": "other/9"}]
)
def test_a_manifest_of_another_form_is_damaged(finished, odd):
    change(finished, **odd)
    assert life_of(finished) == Life.DAMAGED


@pytest.mark.parametrize("content", [None, b"", b"\0" * 800, b'{"schema": "recording/1", "rec', b"[1]"])
def test_a_manifest_that_nobody_can_read_is_lost(finished, content):
    (finished / MANIFEST).unlink()
    if content is not None:
        (finished / MANIFEST).write_bytes(content)
    assert life_of(finished) == Life.MANIFEST_LOST


def test_a_freed_recording_without_manifest_is_lost_and_not_forgotten(finished):
    free(finished)
    (finished / MANIFEST).unlink()
    for film in finished.glob("*/media.json"):
        film.unlink()
    assert (finished / COPY_LOG).exists()
    assert life_of(finished) == Life.MANIFEST_LOST
    assert recordings_in(finished.parent) == [finished]


def test_a_folder_that_is_no_recording_has_no_life(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(NotARecording, match=r"recording\.json is missing"):
            life_of(path)
    (tmp_path / MANIFEST).write_text('{"schema": "of something else"}')
    with pytest.raises(NotARecording, match="has not the schema"):
        life_of(tmp_path)


def test_a_folder_of_recordings_names_one_whose_manifest_is_lost(finished, tmp_path):
    data = finished.parent
    shutil.copytree(finished, data / "lost")
    (data / "lost" / MANIFEST).unlink()
    shutil.copytree(finished, data / "exports" / "take")  # nested: not of this folder
    shutil.copytree(finished, data / ".kitchensync")
    (data / ".kitchensync" / MANIFEST).unlink()
    (data / "notes" / "of" / "mine").mkdir(parents=True)
    (data / "notes" / "of" / "mine" / "sums.h5").write_bytes(b"")
    assert recordings_in(data) == [data / "lost", finished]
    assert recordings_in(data / "lost") == [data / "lost"]
    shutil.rmtree(finished)
    assert recordings_in(data) == [data / "lost"]
