"""A recording from anybody: nothing in it leads out of its folder, hangs, or fills the memory."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sealed_chunks import sealed

from kitchensync.cli import main
from kitchensync.shell.untrusted_json import BadJson, parse_json
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.copies.cloud_store import CloudStore
from kitchensync.storage.copies.copy_log import COPIED, CopyRecord, read_copies
from kitchensync.storage.copies.target import Target
from kitchensync.storage.disk.self_check import checked_json
from kitchensync.storage.errors import ManifestDamaged, NotARecording, UnreadableFile, UnsafeFile
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json
from kitchensync.storage.move import archive, mover_process
from kitchensync.storage.reading.alignments import read_alignment
from kitchensync.storage.reading.clip_starts import read_media
from kitchensync.storage.recording_files.media_file import load_media
from kitchensync.storage.redact.redactions import done_samples, in_runs
from kitchensync.storage.verify import keep_verdict, verify

HASH = {"sha256": "0" * 64, "bytes": 1}
CHUNK = {"chunk": 1, "packets": 1, "bytes": 1, "seq": [0, 1], "ticks": [0, 1], "sha256": "0" * 64}
REDACTION = {"id": "x", "state": "begun", "reason": "r", "by": "", "open": [], "streams": {}, "films": {}}
OUTSIDE = ["../other", "/etc/passwd", "a/../../b", "a\\b", "a\nb", "a//b", "", ".", "\x1b[2J", "x" * 300]
NAMED: dict[str, Callable[[str], dict[str, Any]]] = {
    "streams": lambda name: {"streams": {name: {}}},
    "devices": lambda name: {"devices": {name: {"kind": "gopro"}}},
    "files": lambda name: {"files": {name: HASH}},
    "redacted streams": lambda name: {"redactions": [REDACTION | {"streams": {name: [CHUNK]}}]},
    "redacted films": lambda name: {"redactions": [REDACTION | {"films": {name: {}}}]},
    "recording": lambda name: {"recording": name},
    "withdrawn": lambda name: {"withdrawn": {"files": [{"file": name}]}},
    "waiting": lambda name: {"waiting": {name: {}}},
}


def changed(recording: Path, keys: dict[str, Any]) -> None:
    """Write a manifest as a stranger does, its checksum right."""
    write_json(recording / "recording.json", read_manifest(recording) | keys)


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("place", NAMED)
def test_a_manifest_names_nothing_outside_of_its_folder(finished: Path, place: str, name: str) -> None:
    changed(finished, NAMED[place](name))
    with pytest.raises(ManifestDamaged, match="wrong at"):
        read_manifest(finished)
    assert verify(finished)["status"] == "FAIL"


@pytest.mark.parametrize("media", [{"files": [{"file": "../x", "bytes": 1}]}, {"files": [], "small": ["/x"]}])
def test_nor_does_a_camera(finished: Path, media: dict[str, Any]) -> None:
    write_json(finished / "gopro" / "media.json", media)
    with pytest.raises(UnsafeFile, match=r"gopro/media.json: names"):
        read_manifest(finished)


OPENED = {"before_host_ns": 1, "after_host_ns": 2, "observed_host_ns": 3}
ODD_MEDIA: list[dict[str, Any]] = [
    {"shutter_on": OPENED | {"observed_host_ns": "noon"}},
    {"shutter_on": {"before_host_ns": 1}},
    {"shutter_on": [1]},
    {"shutters_on_again": None},
    {"shutters_on_again": [OPENED | {"after_host_ns": 1.5}]},
    {"shutter_off": OPENED | {"after_host_ns": []}},
    {"ended_host_ns": "late"},
    {"clock": {"start": {"offset_ns": "x"}}},
    {"clock": {"start": {"zone_minutes": 10**12}}},
    {"clock": []},
    {"anchor": {"host_ns": 1}},
    {"anchor": None},
    {"files": None},
    {"files": [{"file": "GX010001.MP4", "bytes": 1, "created_s": 1e300}]},
    {"small": None},
    {"gaps": [{"cause": "device_swap"}]},
    {"before": [["100GOPRO"]]},
    {"serial": 7},
]


@pytest.mark.parametrize("number", range(len(ODD_MEDIA)))
def test_a_camera_file_of_other_types_is_damage(finished: Path, number: int) -> None:
    path = finished / "gopro" / "media.json"
    write_json(path, parse_json(path.read_bytes()) | ODD_MEDIA[number])
    assert verify(finished)["status"] == "FAIL"
    with pytest.raises(BadJson, match="wrong at"):
        load_media(path)
    assert read_media(finished, "gopro") == {}


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 << 30)


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": a_socket,
    "link": lambda path: path.symlink_to("/dev/zero"),
    "link to a folder": lambda path: path.symlink_to("../other"),
    "link to nothing": lambda path: path.symlink_to("gone"),
    "huge": sparse,
}
PLACES = [
    "copies.jsonl",
    "events/tablet.jsonl",
    "sync/verify.json",
    "gopro/media.json",
    "annotations/steps-1.json",
]


@pytest.mark.parametrize(
    "place", [*PLACES, "derived.jsonl", "recording.json", "sync/index.parquet", "logs/recording.jsonl"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_of_its_own_is_refused_by_every_command(
    finished: Path, kind: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = finished.parent / "other"
    other.mkdir()
    path = finished / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    monkeypatch.chdir(finished.parent)
    monkeypatch.setattr(mover_process, "lower_priority", lambda: None)  # of this very process
    KINDS[kind](path)
    assert verify(finished)["status"] == "FAIL"
    slow = (["report"], ["sync"], ["move", "--to", str(other), "--keep"]) if place == "copies.jsonl" else ()
    for command in (["info"], *slow):
        done = CliRunner().invoke(main, [command[0], str(finished), *command[1:]])
        assert isinstance(done.exception, SystemExit)
        assert done.exit_code != 0
        assert place in done.output
        assert "not a file" in done.output or "too large" in done.output
    assert not list(other.iterdir())


@pytest.mark.parametrize("folder", ["sync", "hololens", "events"])
def test_a_linked_folder_is_never_written_into(finished: Path, folder: str) -> None:
    other = finished.parent.parent / "other"
    shutil.copytree(finished, finished.parent / "good")
    if (finished / folder).exists():
        (finished / folder).rename(other)
    else:
        other.mkdir()
    before = sorted(path.stat().st_mtime_ns for path in other.rglob("*"))
    (finished / folder).symlink_to("../../other")
    assert verify(finished)["corrupt"] == [{"file": folder, "stream": "recording", "block": "file"}]
    for command in ("verify", "report", "sync"):
        assert CliRunner().invoke(main, [command, str(finished)]).exit_code != 0
    with pytest.raises(UnsafeFile), edit_manifest(finished):
        pass
    assert sorted(path.stat().st_mtime_ns for path in other.rglob("*")) == before
    done = CliRunner().invoke(main, ["list", str(finished.parent)])
    assert done.exit_code == 0
    assert "good" in done.stdout
    assert f"{folder}: is a link" in done.stderr


def test_a_recording_may_be_reached_by_a_link(finished: Path) -> None:
    (finished.parent / "here").symlink_to(finished)
    assert verify(finished.parent / "here")["status"] == "PASS"


def test_a_folder_of_recorded_files_without_manifest_is_looked_through_too(finished: Path) -> None:
    (finished / "recording.json").unlink()
    os.mkfifo(finished / "events" / "other.jsonl")
    with pytest.raises(UnsafeFile, match="pipe"):
        read_manifest(finished)


def test_folders_without_end_are_refused(finished: Path) -> None:
    finished.joinpath(*["a"] * 40).mkdir(parents=True)
    with pytest.raises(NotARecording, match="folders deep"):
        read_manifest(finished)


ODD: list[Any] = [True, -1, 10**20, 1e308, "x\x1b[2J", [], {}, [[]], {"a": {}}, -(2**63), 3.5, None]
KEYS = [
    "recording",
    "state",
    "started",
    "streams",
    "devices",
    "files",
    "redactions",
    "consent_scopes",
    "recipe",
]


@pytest.mark.parametrize(
    "key", [*KEYS, "problems", "waiting", "part_of", "rebuilt", "consent_overrides", "zone"]
)
@pytest.mark.parametrize("number", range(len(ODD)))
def test_a_value_of_another_type_is_refused_or_harmless(finished: Path, key: str, number: int) -> None:
    changed(finished, {key: ODD[number]})
    said = verify(finished)
    assert said["status"] in ("PASS", "WARN", "FAIL")
    done = CliRunner().invoke(main, ["info", str(finished)])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "\x1b" not in done.output


@pytest.mark.parametrize("number", range(len(ODD)))
@pytest.mark.parametrize("key", ["session_s", "streams", "reasons", "status"])
def test_a_kept_verdict_of_other_types_is_none(finished: Path, key: str, number: int) -> None:
    keep_verdict(finished, verify(finished) | {key: ODD[number]})
    done = CliRunner().invoke(main, ["info", str(finished)])
    assert (done.exception, done.exit_code) == (None, 0)


def test_an_alignment_names_no_film_elsewhere(finished: Path) -> None:
    path = finished / "sync" / "alignment" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"schema": "alignment/1", "status": "aligned", "source": "../other/x.MP4"}))
    assert read_alignment(path).problem
    assert read_alignment(path).source == "a"


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(BadJson):
        parse_json('{"a": "\\ud800"}')
    assert parse_json('"\\ud83d\\ude00"') == "\U0001f600"


@pytest.mark.parametrize("note", [b"no note", b"[1]", b'{"note": "end", "host_ns": "noon"}', b"\xff"])
def test_a_ledger_that_was_sealed_with_something_else_is_damage(finished: Path, note: bytes) -> None:
    files = sealed(finished, "ledger/hololens", 2, [Packet(0, 1, 0, 0, 1, note, b"")])
    changed(finished, {"files": read_manifest(finished)["files"] | files})
    assert [one["file"] for one in verify(finished)["corrupt"]] == ["ledger/hololens/000002.h5"]


def test_a_copy_names_no_file_elsewhere(finished: Path) -> None:
    line = CopyRecord(COPIED, "../other/x.h5", 1, "0" * 64, 0, "t", "/store", "direct")
    (finished / "copies.jsonl").write_bytes(checked_json(asdict(line)))
    with pytest.raises(UnreadableFile, match="outside of the recording"):
        read_copies(finished)


def test_a_copy_log_of_empty_lines_holds_what_was_written_between(finished: Path) -> None:
    line = CopyRecord(COPIED, "gopro/GX010001.MP4", 1, "0" * 64, 0, "t", "/store", "direct")
    sound, empty = checked_json(asdict(line)), b"\n" * 1000
    (finished / "copies.jsonl").write_bytes(empty + sound + empty + b"{}\n" + sound[:-1] + b" \n" + sound[:9])
    assert read_copies(finished) == [line]


def test_destroyed_samples_cost_no_memory_by_their_span(finished: Path) -> None:
    name, runs = "gopro/GX010001.MP4", [[0, 9_999_999], [7, 3], [2, 2]]
    changed(finished, {"redactions": [REDACTION | {"films": {name: {"samples": {"vide": runs}}}}]})
    done = done_samples(read_manifest(finished), name, "vide")
    assert done == runs
    assert in_runs(done, 5).tolist() == [True] * 5
    assert in_runs([[3, 1], [1, 2], [2, 2], [4, 9]], 6).tolist() == [False, True, True, False, True, True]
    assert in_runs([], 2).tolist() == [False, False]


FILM, SEALED = "gopro/GX010001.MP4", "hololens/pv/000002.h5"
READERS: dict[str, tuple[Any, str]] = {
    "move": (Target, "copy"),
    "upload": (CloudStore, "send"),
    "archive": (archive, "file_sha256"),
}


@pytest.mark.parametrize(
    ("command", "name"), [*product(("move", "upload"), (FILM, SEALED)), ("archive", SEALED)]
)
def test_a_file_of_another_size_than_sealed_is_refused_before_it_is_read(
    finished: Path, command: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mover_process, "lower_priority", lambda: None)  # of this very process
    read: list[Path] = []
    real = getattr(*READERS[command])

    def noted(*given: Any, **named: Any) -> Any:
        read.extend(one for one in given if isinstance(one, Path))
        return real(*given, **named)

    monkeypatch.setattr(*READERS[command], noted)
    (finished / name).write_bytes(b"x" * 7)
    store = finished.parent.parent / "store"
    store.mkdir()
    ways = {"move": ["--to", str(store), "--keep"], "upload": [f"file://{store}"], "archive": []}
    done = CliRunner().invoke(main, [command, str(finished), *ways[command]])
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code == 1
    assert name in done.output
    assert finished / name not in read
    assert not list(store.rglob(f"{Path(name).name}*"))
