"""Archives against the chunks that they were packed from, kept elsewhere; every interruption goes on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from processes import COMMAND
from sealed_chunks import sealed

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.disk.durable import Disk
from kitchensync.storage.errors import BadChunk, NotPackable
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json
from kitchensync.storage.move import archive as archive_module
from kitchensync.storage.move.archive import archive, archive_stream
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow

GYROSCOPE, PV, AHAT, LEDGER = "hololens/gyroscope", "hololens/pv", "hololens/depth_ahat", "ledger/hololens"
rng = np.random.default_rng(4)


def payload_of(stream: str, number: int) -> bytes:
    """A payload of the right kind: records, an odd number of bytes, a raw picture."""
    if stream == GYROSCOPE:
        return rng.bytes(32 * (1 + number % 3))
    if stream == AHAT:
        return struct.pack("<II", 0, 1 << 20) + (rng.integers(400, 420, 1 << 19, "<u2")).tobytes() + bytes(8)
    return b"%d" % number * (1 + 50 * number)


@pytest.fixture
def take(tmp_path) -> tuple[Path, dict[str, list[bytes]]]:
    """A finished recording of three streams in several chunks, and what was put into it."""
    path = tmp_path / "take"
    truth: dict[str, list[bytes]] = {}
    files: dict[str, Any] = {}
    for stream, chunks, each in ((GYROSCOPE, 4, 5), (PV, 3, 7), (AHAT, 2, 2)):
        truth[stream] = [payload_of(stream, n) for n in range(chunks * each)]
        for number in range(chunks):
            rows = range(number * each, (number + 1) * each)
            packets = [Packet(n, 1, 10 * n, n, 1, truth[stream][n], bytes([n]) * 64) for n in rows]
            files |= sealed(path, stream, number + 1, packets, recording="u")
    ends = [
        {"stream": stream, "note": "end", "reason": "x", "received": len(truth[stream])} for stream in truth
    ]
    notes = [Packet(n, 1, 0, 0, 1, json.dumps(note).encode(), b"") for n, note in enumerate(ends)]
    files |= sealed(path, LEDGER, 1, notes)
    manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "devices": {}}
    write_json(path / "recording.json", manifest | {"streams": {name: {} for name in truth}, "files": files})
    assert verify(path)["status"] == "PASS"
    return path, truth


def check_whole(path: Path, truth: dict[str, list[bytes]]) -> None:
    """Everything that was put in comes out, and the balance sheet is closed."""
    result = verify(path)
    assert (result["status"], result["reasons"]) == ("PASS", [])
    with open_recording(path) as recording:
        for name, payloads in truth.items():
            assert [payload for _, payload in recording[name].packets()] == payloads
            assert recording[name].payload(len(payloads) - 2) == payloads[-2]
            assert recording[name].poses()[:, 0, 0].tobytes() == b"".join(
                bytes([n]) * 4 for n in range(len(payloads))
            )
            assert result["streams"][name]["sha256"] == hashlib.sha256(b"".join(payloads)).hexdigest()


def test_an_archive_holds_the_same_packets_in_one_file(take):
    path, truth = take
    before = {name: verify(path)["streams"][name] for name in truth}
    packed = {entry.stream: entry for entry in archive(path)}
    assert set(packed) == set(truth)
    assert sorted(file.name for file in (path / GYROSCOPE).iterdir()) == ["000001-000004.h5"]
    check_whole(path, truth)
    assert {name: verify(path)["streams"][name] for name in truth} == before
    assert archive(path) == []


def test_an_archive_says_which_files_it_was_packed_from(take):
    path, _ = take
    promised = read_manifest(path)["files"]
    archive(path)
    for stream in (GYROSCOPE, PV, AHAT):
        with Chunk(*chunk_paths(path / stream)) as packed:
            for block in packed.blocks:
                facts = promised[f"{stream}/{block['number']:06d}.h5"]
                assert (block["file_sha256"].decode(), block["file_bytes"]) == (
                    facts["sha256"],
                    facts["bytes"],
                )


class Killed(BaseException):
    """The process dies here."""


class DyingDisk(Disk):
    """Dies before the n-th call that changes names."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def _count(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Killed

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        if path.suffix == ".h5":
            self._count()
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        self._count()
        super().sync_folder(path)


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4, 5, 7])
def test_a_run_that_dies_anywhere_leaves_a_whole_recording_and_the_next_goes_on(take, calls):
    path, truth = take
    with pytest.raises(Killed):
        archive(path, disk=DyingDisk(calls))
    check_whole(path, truth)
    archive(path)
    check_whole(path, truth)
    for stream in truth:
        assert len(list((path / stream).iterdir())) == 1


@pytest.mark.parametrize("delay_s", [0.5, 0.7, 0.9])
def test_a_killed_process_leaves_a_whole_recording_and_the_next_goes_on(take, delay_s):
    path, truth = take
    process = subprocess.Popen([COMMAND, "archive", str(path)], stdout=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(delay_s)  # somewhere in between, wherever that is on this computer
    process.kill()
    process.wait()
    check_whole(path, truth)
    subprocess.run([COMMAND, "archive", str(path)], check=True, stdout=subprocess.DEVNULL)
    check_whole(path, truth)
    for stream in truth:
        assert [file.suffix for file in (path / stream).iterdir()] == [".h5"]


def test_chunks_stay_when_the_archive_reads_back_otherwise(take, monkeypatch):
    path, truth = take
    real = archive_module.sync_path

    def corrupting(part: Path) -> None:
        flip_in_piece(part, 0)
        real(part)

    monkeypatch.setattr(archive_module, "sync_path", corrupting)
    monkeypatch.setattr(archive_module, "streams_with_files", lambda _: [GYROSCOPE])
    with pytest.raises(BadChunk, match="packet 3"):
        archive(path)
    check_whole(path, truth)
    assert len(list((path / GYROSCOPE).iterdir())) == 4


def test_damaged_chunks_are_not_packed(take):
    path, truth = take
    chunk = path / GYROSCOPE / "000002.h5"
    content = bytearray(chunk.read_bytes())
    content[content.index(truth[GYROSCOPE][6])] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(BadChunk, match="000002.h5"):
        archive(path)
    assert chunk.exists()


def flip_in_piece(archive_file: Path, piece: int) -> None:
    """Flip a bit in the middle of a piece of records that were compressed together."""
    with h5py.File(archive_file) as file:
        place = file["records"].id.get_chunk_info(piece)
    content = bytearray(archive_file.read_bytes())
    content[place.byte_offset + place.size // 2] ^= 8
    archive_file.write_bytes(content)


def test_a_flipped_bit_in_an_archive_is_located(take):
    path, truth = take
    archive(path)
    (file,) = (path / PV).iterdir()
    content = bytearray(file.read_bytes())
    content[content.index(truth[PV][20])] ^= 8
    file.write_bytes(content)
    assert verify(path)["corrupt"] == [{"file": f"{PV}/{file.name}", "stream": PV, "block": "packet 20"}]


def test_a_flipped_bit_costs_the_records_that_were_compressed_with_it_and_names_them(tmp_path):
    path, per_piece = tmp_path / "take", 1024
    motion = np.zeros(5 * per_piece, STREAMS["gyroscope"].record)
    motion["vinyl_ns"] = np.arange(len(motion)) * 150_000
    payloads = [motion[at : at + 300].tobytes() for at in range(0, len(motion), 300)]
    packets = [Packet(n, 1, n, n, 1, one, b"") for n, one in enumerate(payloads)]
    files = sealed(path, GYROSCOPE, 1, packets[:8]) | sealed(path, GYROSCOPE, 2, packets[8:])
    about = {"schema": "recording/1", "state": "complete", "streams": {GYROSCOPE: {}}, "files": files}
    write_json(path / "recording.json", about)
    archive_stream(path, GYROSCOPE)
    (file,) = (path / GYROSCOPE).iterdir()
    assert file.stat().st_size < motion.nbytes / 4
    with h5py.File(file) as stock:
        assert np.array_equal(stock["records"][:], motion)
    flip_in_piece(file, 2)
    first, last = 2 * per_piece // 300, -(-3 * per_piece // 300)
    with Chunk(file) as chunk:
        assert chunk.damage() == [f"packet {number}" for number in range(first, last)]
        bad: dict[int, str] = {}
        whole = [n for n in range(len(payloads)) if not first <= n < last]
        assert list(chunk.sound(bad=bad)) == [(n, payloads[n]) for n in whole]
        assert sorted(bad) == list(range(first, last))


def test_a_running_recording_is_not_packed(take):
    path, _ = take
    with edit_manifest(path) as manifest:
        manifest["state"] = "recording"
    with pytest.raises(NotPackable, match="not finished"):
        archive(path)


def test_a_folder_is_packed_past_a_bad_recording(take, tmp_path):
    """The first cannot be packed, one in the middle is no recording any more: the last is packed all the same."""
    recording, _ = take
    data = tmp_path / "data"
    for name in ("a-bad", "m-lost", "z-good"):
        shutil.copytree(recording, data / name)
    with edit_manifest(data / "a-bad") as manifest:
        manifest["state"] = "recording"
    (data / "m-lost" / "recording.json").write_bytes(b"\xff{")
    done = subprocess.run([COMMAND, "archive", data, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    rows = {row["recording"]: row for row in json.loads(done.stdout)["recordings"]}
    assert "is not finished" in rows["a-bad"]["reason"]
    assert "m-lost" in rows["m-lost"]["reason"]
    assert rows["z-good"]["streams"]
    assert [line.startswith("kitchensync: ") for line in done.stderr.splitlines()] == [True, True]
