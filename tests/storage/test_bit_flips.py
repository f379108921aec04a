"""A single flipped bit anywhere in a recording is found and located to file, stream and block.

Where a flip belongs is known another way: from the places that stock h5py gives for the datasets of the whole file.
One round flips one bit in every file at once; KITCHENSYNC_FLIP_ROUNDS sets how many rounds are made.
"""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flips import block_at, flip, stream_of
from sealed_chunks import sealed

from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.copies.copy_log import COPIED, CopyLog, CopyRecord
from kitchensync.storage.disk.media_blocks import block_checksums
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.move.archive import archive_stream
from kitchensync.storage.reading.device_constants import ConstantTable, calibration_files, write_calibration
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("KITCHENSYNC_FLIP_ROUNDS", "6"))
SENSORS = ("gyroscope", "pv", "depth_ahat", "microphone")
source = random.Random(9)


def payload_of(stream: str, number: int) -> bytes:
    if stream.endswith("gyroscope"):
        return source.randbytes(32 * (1 + number % 3))
    if stream.endswith("depth_ahat"):
        picture = np.random.default_rng(number).integers(400, 420, 1 << 19, "<u2")
        return struct.pack("<II", 0, 1 << 20) + picture.tobytes() + struct.pack("<Q", number)
    if stream.startswith("clock"):
        return source.randbytes(32)
    return source.randbytes(100 + 37 * number)


def put(
    path: Path, stream: str, chunks: int, each: int, payloads: list[bytes] | None = None
) -> dict[str, Any]:
    """Seal some chunks; return their entries for the manifest."""
    files = {}
    for number in range(chunks):
        rows = range(number * each, (number + 1) * each)
        packets = [
            Packet(
                n, 1, 333_000 * n, 33_300_000 * n, 1, payloads[n] if payloads else payload_of(stream, n),
                source.randbytes(64) if stream.endswith("pv") else b"",
            )
            for n in rows
        ]  # fmt: skip
        files |= sealed(path, stream, number + 1, packets, recording="u")
    return files


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A closed recording with every kind of file: all layouts, an archive, a film, constants, events, copies."""
    path = tmp_path_factory.mktemp("flips") / "take"
    files: dict[str, Any] = {}
    counts = {"gyroscope": (2, 6), "pv": (2, 5), "depth_ahat": (1, 2), "microphone": (3, 4)}
    for short, (chunks, each) in counts.items():
        files |= put(path, f"hololens/{short}", chunks, each)
    ends = [
        {"stream": f"hololens/{short}", "note": "end", "reason": "ended_by_device", "received": chunks * each}
        for short, (chunks, each) in counts.items()
    ]
    files |= put(path, "ledger/hololens", 1, len(ends), [json.dumps(end).encode() for end in ends])
    files |= put(path, "clock/hololens", 2, 5)
    table = ConstantTable("lut", np.random.default_rng(1).random((20, 3)), "px", "camera", "rays")
    write_calibration(path / "hololens" / "calibration" / "pv.h5", [table], {"model": "pinhole", "note": "ä"})
    files |= calibration_files(path)
    film = path / "gopro" / "GX010001.MP4"
    film.parent.mkdir()
    film.write_bytes(source.randbytes(9 << 20))
    entry = {"file": film.name, "bytes": film.stat().st_size, "sha256": file_sha256(film)}
    write_json(film.parent / "media.json", {"files": [entry | {"blocks": block_checksums(film)}]})
    manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "files": files}
    manifest |= {"streams": {f"hololens/{short}": {} for short in SENSORS}, "place": "Küche 1e-07"}
    write_json(path / "recording.json", manifest | {"devices": {"gopro": {"kind": "gopro"}}})
    archive_stream(path, "hololens/microphone")
    for number in range(3):
        body = {"step": str(number), "note": "Möhre\tJ*\n"}
        EventLog(path, "tablet").append("done", host_ns=number, uncertainty_ns=1, body=body)
    with CopyLog(path) as log:
        for name in ("gopro/GX010001.MP4", "recording.json"):
            log.write(CopyRecord(COPIED, name, 5, "0" * 64, 7, "store", "/mnt/nas", "direct", utc_ns=8))
    assert verify(path)["reasons"] == []
    return path


def files_of(path: Path) -> Iterator[Path]:
    """All files but the two by which others are judged."""
    judges = ("recording.json", "media.json")
    return (file for file in sorted(path.rglob("*")) if file.is_file() and file.name not in judges)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_flipped_bit_in_every_file_is_found_and_located(whole, number):
    chance = random.Random(number)
    flips = {file: (chance.randrange(file.stat().st_size), chance.randrange(8)) for file in files_of(whole)}
    expected = {file: block_at(file, place) for file, (place, _) in flips.items()}
    for file, (place, bit) in flips.items():
        flip(file, place, bit)
    try:
        result = verify(whole)
    finally:
        for file, (place, bit) in flips.items():
            flip(file, place, bit)
    assert result["status"] == "FAIL"
    for file, block in expected.items():
        relative = file.relative_to(whole).as_posix()
        found = [entry for entry in result["corrupt"] if entry["file"] == relative]
        assert found, (relative, flips[file])
        assert {entry["stream"] for entry in found} == {stream_of(relative)}
        if block is not None:  # (a line in which a line end appears is two)
            assert block in [entry["block"] for entry in found], (relative, flips[file])
            assert len(found) == 1 or file.suffix == ".jsonl", (relative, flips[file])
    assert not {entry["file"] for entry in result["corrupt"]} - {
        file.relative_to(whole).as_posix() for file in flips
    }


@pytest.mark.parametrize(
    ("name", "stream", "step"), [("recording.json", "recording", 7), ("gopro/media.json", "gopro", 29)]
)
def test_a_flipped_bit_in_what_others_are_judged_by_is_found_and_nothing_else_is_blamed(
    whole, name, stream, step
):
    file = whole / name
    start = random.Random(ROUNDS).randrange(step)
    for place in range(start, file.stat().st_size, step if ROUNDS < 50 else 1):
        bit = (place + start) % 8
        flip(file, place, bit)
        result = verify(whole)
        flip(file, place, bit)
        assert result["corrupt"] == [{"file": name, "stream": stream, "block": "file"}], (place, bit)
    assert verify(whole)["status"] == "PASS"


def test_a_damaged_manifest_is_not_given_a_new_checksum(whole):
    from kitchensync.storage.errors import NotARecording

    manifest = whole / "recording.json"
    place = manifest.read_bytes().index(b"take")
    flip(manifest, place, 0)
    try:
        with pytest.raises(NotARecording, match="damaged"), edit_manifest(whole) as opened:
            opened["place"] = "elsewhere"
    finally:
        flip(manifest, place, 0)


def test_a_damaged_book_of_copies_is_mended_by_its_next_user(whole):
    log = whole / "copies.jsonl"
    content = log.read_bytes()
    flip(log, 30, 2)
    with CopyLog(whole) as mended:
        assert [file for file, _ in mended.copies] == ["recording.json"]
    assert verify(whole)["status"] == "PASS"
    log.write_bytes(content)
