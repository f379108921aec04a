"""The balance sheet against recordings that were damaged on purpose."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from sealed_chunks import sealed

from kitchensync.storage.chunks.chunk_reader import Chunk
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.commands.storage import verify as verify_command
from kitchensync.storage.disk.media_blocks import block_checksums
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify

STREAM = "hololens/gyroscope"
PAYLOADS = [b"packet %d" % n for n in range(40)]


def packets_of(seqs: list[int]) -> list[Packet]:
    return [Packet(n, 1, 480_000 * n, 48_000_000 * n, 1, PAYLOADS[n], b"") for n in seqs]


def notes_of(*notes: dict[str, Any]) -> list[Packet]:
    texts = [json.dumps({"stream": STREAM, "host_ns": 0, **note}).encode() for note in notes]
    return [Packet(n, 1, 0, 0, 1, text, b"") for n, text in enumerate(texts)]


def make(path: Path, seqs: list[int], *notes: dict[str, Any]) -> Path:
    """A closed recording of one stream with these packets and ledger notes."""
    files = sealed(path, STREAM, 1, packets_of([n for n in seqs if n < 20]))
    files |= sealed(path, STREAM, 2, packets_of([n for n in seqs if n >= 20]))
    end = {"note": "end", "reason": "ended_by_device", "received": 40}
    files |= sealed(path, "ledger/hololens", 1, notes_of(*notes, end))
    write_json(
        path / "recording.json",
        {
            "schema": "recording/1",
            "recording": path.name,
            "state": "complete",
            "streams": {STREAM: {"nominal_hz": 20.8}},
            "devices": {},
            "files": files,
        },
    )
    return path


@pytest.fixture
def whole(tmp_path) -> Path:
    return make(tmp_path / "take", list(range(40)))


def test_a_whole_recording_passes_with_the_hash_of_its_payloads(whole):
    result = verify(whole)
    assert (result["status"], result["reasons"]) == ("PASS", [])
    facts = result["streams"][STREAM]
    assert (facts["received"], facts["stored"], facts["missing"], facts["gaps"]) == (40, 40, [], [])
    assert facts["sha256"] == hashlib.sha256(b"".join(PAYLOADS)).hexdigest()
    assert facts["bytes"] == sum(map(len, PAYLOADS))


def test_missing_packets_without_a_cause_fail(tmp_path):
    result = verify(make(tmp_path / "take", [n for n in range(40) if n not in (7, 8, 39)]))
    assert result["status"] == "FAIL"
    assert result["streams"][STREAM]["missing"] == [[7, 8], [39, 39]]


def test_missing_packets_with_a_declared_loss_warn(tmp_path):
    loss = {"note": "declared_loss", "first_seq": 7, "last_seq": 8}
    result = verify(make(tmp_path / "take", [n for n in range(40) if n not in (7, 8)], loss))
    assert result["status"] == "WARN"
    assert result["streams"][STREAM]["gaps"][0]["cause"] == "declared_loss"


def test_a_packet_stored_twice_fails(tmp_path):
    path = make(tmp_path / "take", list(range(40)))
    files = sealed(path, STREAM, 3, packets_of([39]))
    with edit_manifest(path) as manifest:
        manifest["files"] |= files
    result = verify(path)
    assert (result["status"], result["streams"][STREAM]["duplicates"]) == ("FAIL", 1)


@pytest.mark.parametrize("name", [f"{STREAM}/000002.h5", "ledger/hololens/000001.h5"])
def test_a_removed_file_is_named(whole, name):
    (whole / name).unlink()
    result = verify(whole)
    assert result["status"] == "FAIL"
    assert any(name in reason for reason in result["reasons"])


def test_an_armed_stream_without_packets_fails(whole):
    with edit_manifest(whole) as manifest:
        manifest["streams"]["hololens/pv"] = {}
    assert "hololens/pv was armed and holds no packet" in verify(whole)["reasons"]


def test_an_unreadable_manifest_fails_in_one_line(whole):
    (whole / "recording.json").write_text("{")
    result = verify(whole)
    assert result["status"] == "FAIL"
    assert "cannot be read" in result["reasons"][0]


@pytest.mark.parametrize("key", ["state", "files", "devices"])
def test_a_manifest_that_lacks_what_is_needed_fails_in_one_line(whole, key):
    with edit_manifest(whole) as manifest:
        del manifest[key]
    answer = verify(whole)
    assert answer["status"] == "FAIL"
    assert answer["reasons"] == [f"recording.json lacks {key}: restore it from a copy"]


def test_a_cut_camera_file_fails(whole):
    (whole / "gopro").mkdir()
    (whole / "gopro" / "GX010001.MP4").write_bytes(b"12345")
    digest = hashlib.sha256(b"12345").hexdigest()
    entry = {"file": "GX010001.MP4", "bytes": 5, "sha256": digest}
    write_json(whole / "gopro" / "media.json", {"files": [entry]})
    with edit_manifest(whole) as manifest:
        manifest["devices"] = {"gopro": {"kind": "gopro"}}
    assert verify(whole)["status"] == "PASS"
    (whole / "gopro" / "GX010001.MP4").write_bytes(b"1234")
    result = verify(whole)
    assert result["status"] == "FAIL"
    assert result["streams"]["gopro/GX010001.MP4"]["missing"] == [[4, 4]]
    (whole / "gopro" / "GX010001.MP4").write_bytes(b"12346")
    assert verify(whole)["status"] == "FAIL"


def test_the_command_prints_one_object_and_the_worst_decides(whole, tmp_path):
    runner = CliRunner()
    one = runner.invoke(verify_command, [str(whole), "--json"])
    assert (one.exit_code, json.loads(one.output)["schema"]) == (0, "verify/1")
    make(tmp_path / "other", list(range(39)))
    both = runner.invoke(verify_command, [str(tmp_path), "--json"])
    answer = json.loads(both.output)
    assert (both.exit_code, answer["schema"], answer["status"]) == (1, "verify-all/1", "FAIL")
    assert [result["recording"] for result in answer["recordings"]] == ["other", "take"]
    plain = runner.invoke(verify_command, [str(whole)])
    assert "PASS  take" in plain.output


def test_texts_on_which_hdf5_may_hang_are_refused_unread(whole):
    """As early versions wrote them; the size of an object in HDF5's heap for such texts is flipped."""
    path = whole / STREAM / "000002.h5"
    with Chunk(path) as chunk:
        index, payloads = chunk.index, b"".join(chunk.payloads())
    with h5py.File(path, "w") as file:
        file["data"], file["index"] = np.frombuffer(payloads, np.uint8), index
        file.attrs["schema"], file.attrs["stream"], file.attrs["recording"] = "chunk/1", STREAM, "u" * 20
        file.attrs["count"], file.attrs["index_crc32"] = len(index), zlib.crc32(index.tobytes())
    content = bytearray(path.read_bytes())
    content[content.index(b"GCOL") + 25] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadChunk, match="no fixed length"), open_recording(whole) as recording:
        len(recording[STREAM])
    (whole / STREAM / "000001.h5").write_bytes(b"no HDF5 at all")
    found = {entry["file"]: entry["block"] for entry in verify(whole)["corrupt"]}
    assert found[f"{STREAM}/000001.h5"].startswith("structure: does not open as HDF5")
    assert "no fixed length" in found[f"{STREAM}/000002.h5"]


def test_a_chunk_that_is_a_pipe_or_a_link_is_named_and_never_opened(whole):
    chunk = whole / STREAM / "000001.h5"
    aside = chunk.rename(whole.parent / "aside.h5")
    for kind, make in (("a pipe", os.mkfifo), ("a link", lambda path: path.symlink_to(aside))):
        make(chunk)
        with pytest.raises(BadChunk, match=f"is {kind}, not a file"):
            Chunk(chunk)
        found = {entry["file"]: entry["block"] for entry in verify(whole)["corrupt"]}
        assert found == {f"{STREAM}/000001.h5": "file"}
        chunk.unlink()


@pytest.mark.parametrize("place", [0, 4 << 20, (9 << 20) - 1])
def test_a_flipped_bit_in_a_camera_file_is_located_to_its_block(finished, place):
    film = finished / "gopro" / "GX010001.MP4"
    media = json.loads((finished / "gopro" / "media.json").read_text())
    media["files"][0]["blocks"] = block_checksums(film)
    write_json(finished / "gopro" / "media.json", media)
    assert verify(finished)["status"] == "PASS"
    content = bytearray(film.read_bytes())
    content[place] ^= 64
    film.write_bytes(content)
    first = place // (4 << 20) * (4 << 20)
    block = f"bytes {first}-{min(first + (4 << 20), len(content)) - 1}"
    name = "gopro/GX010001.MP4"
    assert verify(finished)["corrupt"] == [{"file": name, "stream": name, "block": block}]


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ({"reason": "lost", "cause": "network"}, "network"),
        ({"reason": "lost", "cause": "backpressure"}, "backpressure"),
        (None, "restart"),
        ({"reason": "stopped"}, None),
        ({"reason": "ended_by_device"}, None),
    ],
)
def test_a_stream_that_never_came_back_has_a_gap_until_the_stop(tmp_path, end, cause):
    stop_ns = 48_000_000 * 70
    opened = {"note": "connected", "connection": 1, "next_seq": 0}
    notes = [] if end is None else [{"note": "end", "received": 40, "host_ns": stop_ns, **end}]
    path = make(tmp_path / "take", list(range(40)))
    (path / "ledger/hololens/000001.h5").unlink()
    files = sealed(path, "ledger/hololens", 1, notes_of(opened, *notes))
    manifest = json.loads((path / "recording.json").read_text())
    manifest["files"] |= files
    manifest["stopped"] = {"reason": "time", "host_ns": stop_ns}
    write_json(path / "recording.json", manifest)
    result = verify(path)
    gaps = result["streams"][STREAM]["gaps"]
    assert [gap["cause"] for gap in gaps] == ([cause] if cause else [])
    ended = end is not None and end["reason"] == "ended_by_device"
    assert result["status"] == ("PASS" if ended else "WARN")  # the others lack a part of the session
    for gap in gaps:
        assert gap["start_ticks"] == 480_000 * 39
        assert stop_ns // 100 <= gap["end_ticks"] <= stop_ns // 100 + 2 * 480_000 + 10_000_000


SCALE = "scale/grams"


def stamped_on_arrival(path: Path, arrived_s: list[float], late_ns: int = 30_000) -> dict[str, Any]:
    """Verify a recording of a 10 Hz sensor without a clock: its stamps are the arrivals, received `late_ns` later."""
    stamps_ns = [7_000_000_000_000 + round(at_s * 1e9) for at_s in arrived_s]
    packets = [Packet(n, 1, at // 100, at + late_ns, 1, b"12.5", b"") for n, at in enumerate(stamps_ns)]
    ends = {"note": "end", "reason": "ended_by_device", "received": len(packets)}
    note = json.dumps({"stream": SCALE, "host_ns": stamps_ns[-1], **ends}).encode()
    files = sealed(path, SCALE, 1, packets)
    files |= sealed(path, "ledger/scale", 1, [Packet(0, 1, 0, 0, 1, note, b"")])
    told = {"schema": "recording/1", "recording": path.name, "state": "complete", "files": files}
    streams = {SCALE: {"device": "scale", "nominal_hz": 10.0, "adaptive": False, "format": {}}}
    devices = {"scale": {"kind": "plugin", "sensor": "scale", "settings": {}}}
    write_json(path / "recording.json", told | {"streams": streams, "devices": devices})
    return verify(path)


@pytest.mark.parametrize("longest_s", [0.217, 0.4])
def test_jitter_of_a_sensor_that_is_stamped_on_arrival_is_no_gap(tmp_path: Path, longest_s: float) -> None:
    arrived_s = [n / 10 for n in range(200)]
    arrived_s[100:] = [at_s + longest_s - 0.1 for at_s in arrived_s[100:]]
    said = stamped_on_arrival(tmp_path / "take", arrived_s)
    assert (said["status"], said["reasons"], said["streams"][SCALE]["gaps"]) == ("PASS", [], [])
    assert said["streams"][SCALE]["coverage"] == 1.0


def test_an_outage_of_a_sensor_that_is_stamped_on_arrival_is_named(tmp_path: Path) -> None:
    arrived_s = [n / 10 for n in range(200) if not 100 < n < 121]
    said = stamped_on_arrival(tmp_path / "take", arrived_s)
    assert (said["status"], said["reasons"][0]) == ("WARN", f"{SCALE}: 1 gap (device_rate)")
    (gap,) = said["streams"][SCALE]["gaps"]
    assert gap["end_ticks"] - gap["start_ticks"] == 21_000_000
    assert said["streams"][SCALE]["coverage"] < 0.95


def test_a_clock_of_its_own_makes_the_same_interval_a_gap_of_the_device(tmp_path: Path) -> None:
    arrived_s = [n / 10 for n in range(200)]
    arrived_s[100:] = [at_s + 0.117 for at_s in arrived_s[100:]]
    said = stamped_on_arrival(tmp_path / "take", arrived_s, late_ns=20_000_000)
    assert said["reasons"] == [f"{SCALE}: 1 gap (device_rate)"]
