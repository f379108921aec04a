"""A recording folder read as one object, against what was put into it."""

from __future__ import annotations

import json

import pytest

from kitchensync.storage.chunks import stored_packets
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.errors import BadEventLog, BadName, NotARecording, UnknownStream
from kitchensync.storage.events import EventLog, read_events
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json
from kitchensync.storage.names import check_new_recording, check_recording_id
from kitchensync.storage.recording import open_recording


@pytest.fixture
def folder(tmp_path):
    """A recording of one stream in three chunks with 10 packets each, and three camera files."""
    path = tmp_path / "take1"
    stream = path / "hololens" / "pv"
    stream.mkdir(parents=True)
    for number in range(3):
        rows = [Packet(10 * number + n, 1, n, n, 1, b"%d" % (10 * number + n), b"\0" * 64) for n in range(10)]
        seal(stream, number + 1, rows, {})
    (path / "gopro").mkdir()
    for name in ("GX010002.MP4", "GX020001.MP4", "GX010001.MP4", "media.json"):
        (path / "gopro" / name).touch()
    manifest = {
        "schema": "recording/1",
        "recording": "take1",
        "state": "complete",
        "files": {},
        "streams": {"hololens/pv": {"format": {"codec": "h265"}}},
        "devices": {"gopro": {"kind": "gopro"}, "hololens": {"kind": "hololens"}},
    }
    write_json(path / "recording.json", manifest)
    return path


def test_a_stream_over_several_chunks_reads_as_one(folder, monkeypatch):
    monkeypatch.setattr(stored_packets, "OPEN_FILES", 2)
    with open_recording(folder) as recording:
        stream = recording["hololens/pv"]
        truth = [b"%d" % n for n in range(30)]
        assert len(stream) == 30
        assert [payload for _, payload in stream.packets()] == truth
        assert [payload for _, payload in stream.packets(8, 22)] == truth[8:22]
        assert [stream.payload(n) for n in (29, 0, 15, 10, 9)] == [truth[n] for n in (29, 0, 15, 10, 9)]
        assert stream.index["seq"].tolist() == list(range(30))
        assert stream.poses().shape == (30, 4, 4)
        assert stream.format == {"codec": "h265"}
        with pytest.raises(IndexError, match="there is no packet 30"):
            stream.payload(30)


def test_camera_files_are_in_the_order_of_recording_and_chapter(folder):
    with open_recording(folder) as recording:
        names = [path.name for path in recording.gopro_files["gopro"]]
    assert names == ["GX010001.MP4", "GX020001.MP4", "GX010002.MP4"]


def test_old_cameras_begin_with_another_name(folder):
    for name in ("GP010007.MP4", "GOPR0007.MP4", "GP020007.MP4"):
        (folder / "gopro" / name).write_bytes(b"")
    with open_recording(folder) as recording:
        names = [path.name for path in recording.gopro_files["gopro"]]
    assert names[-3:] == ["GOPR0007.MP4", "GP010007.MP4", "GP020007.MP4"]


def test_unknown_streams_and_folders_are_named(folder, tmp_path):
    with open_recording(folder) as recording, pytest.raises(UnknownStream, match="hololens/pv"):
        recording["hololens/lidar"]
    with pytest.raises(NotARecording, match="recording.json is missing"):
        open_recording(tmp_path)


def test_the_manifest_is_edited_whole(folder):
    with edit_manifest(folder) as manifest:
        manifest["recipe"] = {"name": "tea"}
    assert read_manifest(folder)["recipe"] == {"name": "tea"}
    assert json.loads((folder / "recording.json").read_text())["streams"]
    (folder / "recording.json").write_text("{")
    with pytest.raises(NotARecording, match="cannot be read"):
        read_manifest(folder)


def test_events_are_stored_once_and_in_time_order(folder):
    log = EventLog(folder, "tablet")
    log.append("done", host_ns=20, uncertainty_ns=5, body={"step": "3"}, op_id="b")
    first = log.append("error", host_ns=10, uncertainty_ns=5, body={"step": "2"}, op_id="a")
    assert log.append("error", host_ns=99, uncertainty_ns=5, body={"step": "9"}, op_id="a") == first
    assert [(event["kind"], event["host_ns"], event["writer"]) for event in read_events(folder)] == [
        ("error", 10, "tablet"),
        ("done", 20, "tablet"),
    ]


def test_a_changed_event_line_is_found(folder):
    log = EventLog(folder, "tablet")
    for number in range(3):
        log.append("done", host_ns=number, uncertainty_ns=0, body={"step": str(number)})
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(lines[0] + lines[1].replace(b'"step": "1"', b'"step": "7"') + lines[2])
    with pytest.raises(BadEventLog, match="line 2"):
        read_events(folder)


@pytest.mark.parametrize("gone", [0, 1])
def test_event_lines_that_were_taken_out_are_found(folder, gone):
    log = EventLog(folder, "tablet")
    for number in range(3):
        log.append("done", host_ns=number, uncertainty_ns=0, body={"step": str(number)})
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    with pytest.raises(BadEventLog, match=f"line {gone + 1}.*does not follow"):
        read_events(folder)


def test_a_torn_last_line_is_cut_and_the_log_goes_on(folder):
    log = EventLog(folder, "tablet")
    log.append("done", host_ns=1, uncertainty_ns=0, body={})
    with log.path.open("ab") as file:
        file.write(b'{"kind": "do')
    log.append("done", host_ns=2, uncertainty_ns=0, body={})
    assert [event["host_ns"] for event in read_events(folder)] == [1, 2]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", "a b", "x" * 65, "é"])
def test_names_that_are_no_folder_names_are_refused(name):
    with pytest.raises(BadName):
        check_recording_id(name)


@pytest.mark.parametrize("name", ["con", "NUL", "aux.2", "com1", "LPT9.x", "take-1.", "take-2", "TAKE-2"])
def test_a_new_recording_has_a_name_that_every_store_can_hold(tmp_path, name):
    (tmp_path / "Take-2").mkdir()
    with pytest.raises(BadName):
        check_new_recording(tmp_path / name)
    assert check_recording_id(name) == name, "old ones stay readable"


@pytest.mark.parametrize("name", ["take-1", "console", "Take-2", "com10", "a.b"])
def test_other_names_are_taken(tmp_path, name):
    (tmp_path / "Take-2").mkdir()
    check_new_recording(tmp_path / name)
    check_new_recording(tmp_path / "not there yet" / name)
