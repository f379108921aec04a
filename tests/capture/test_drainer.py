"""The drainer with a real queue: sealing, crashes and repeated packets."""

from __future__ import annotations

import errno
import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import pytest
import redis
from drained import drain

from kitchensync.capture.drain import drainer as drainer_module
from kitchensync.capture.drain import open_chunk as open_chunk_module
from kitchensync.capture.drain.drainer import Drainer
from kitchensync.capture.drain.open_chunk import OpenChunk, open_chunk
from kitchensync.capture.plan import HeadsetPlan
from kitchensync.capture.queue.queue_reader import QueueReader, sealed_files
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.manifest import write_json
from kitchensync.storage.names import MANIFEST

pytestmark = pytest.mark.slow

STREAM = "hololens/gyroscope"


@pytest.fixture
def writer(client, plan) -> QueueWriter:
    return QueueWriter(client, plan.uuid, STREAM, 7)


def put(writer: QueueWriter, seqs: range) -> None:
    for seq in seqs:
        assert writer.put([QueuedPacket(seq, seq, seq, 1, b"%06d" % seq, 0)], lambda: True) == 1


def stored(plan) -> list[int]:
    """Read the sequence numbers back from the files, and check each payload against its number."""
    seqs: list[int] = []
    for path in chunk_paths(Path(plan.path) / STREAM):
        with Chunk(path) as chunk:
            assert chunk.damage() == []
            assert [int(payload) for payload in chunk.payloads()] == chunk.index["seq"].tolist()
            seqs += chunk.index["seq"].tolist()
    return seqs


def test_packets_from_before_the_stop_are_sealed_and_acknowledged(writer, client, plan):
    put(writer, range(1000))
    drain(plan)
    assert stored(plan) == list(range(1000))
    assert QueueReader(client, plan.uuid, [STREAM], "drainer-0").waiting() == 0
    files = sealed_files(client, plan.uuid, STREAM)
    assert files["000001.h5"]["bytes"] == (Path(plan.path) / STREAM / "000001.h5").stat().st_size


def test_a_restart_continues_after_the_last_sealed_packet(writer, plan):
    put(writer, range(10))
    drain(plan)
    put(writer, range(10, 25))
    drain(plan)
    assert stored(plan) == list(range(25))
    assert [path.name for path in chunk_paths(Path(plan.path) / STREAM)] == ["000001.h5", "000002.h5"]


def test_a_crash_between_reading_and_sealing_loses_nothing(writer, client, plan):
    put(writer, range(20))
    QueueReader(client, plan.uuid, [STREAM], "drainer-0").fresh(count=15, block_ms=100)
    part = Path(plan.path) / STREAM / "000001.h5.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"half")
    drain(plan)
    assert stored(plan) == list(range(20))
    assert not part.exists()


def test_a_crash_between_sealing_and_acknowledging_stores_nothing_twice(writer, client, plan, monkeypatch):
    put(writer, range(20))
    with monkeypatch.context() as patch:
        patch.setattr(QueueReader, "acknowledge", _die)
        with pytest.raises(RuntimeError, match="killed"):
            drain(plan)
    assert stored(plan) == list(range(20))
    put(writer, range(20, 30))
    drain(plan)
    assert stored(plan) == list(range(30))
    assert QueueReader(client, plan.uuid, [STREAM], "drainer-0").waiting() == 0


def _die(*_: object) -> None:
    raise RuntimeError("killed")


def test_a_full_disk_keeps_the_packets_until_there_is_room(writer, plan, monkeypatch):
    put(writer, range(30))
    real_seal, tries = drainer_module.seal, []

    def full_twice(*arguments: Any, **options: Any) -> object:
        tries.append(1)
        if len(tries) <= 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_seal(*arguments, **options)

    monkeypatch.setattr(drainer_module, "seal", full_twice)
    monkeypatch.setattr(drainer_module, "RETRY_S", 0.01)
    drain(plan)
    assert len(tries) == 3
    assert stored(plan) == list(range(30))


def test_a_cut_in_the_last_reading_leaves_nothing_in_the_queue(writer, client, plan, monkeypatch):
    """The result of the interrupted read is unknown: no packets read does not mean that none are queued."""
    put(writer, range(30))
    real_fresh, calls = QueueReader.fresh, []

    def cut_once(self: QueueReader, **how: Any) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise redis.ConnectionError("cut")
        return real_fresh(self, **how)

    monkeypatch.setattr(QueueReader, "fresh", cut_once)
    drain(plan)
    assert stored(plan) == list(range(30))


def test_chunks_close_at_their_size(writer, plan, monkeypatch):
    monkeypatch.setattr(open_chunk_module, "CHUNK_BYTES", 600)
    monkeypatch.setattr(drainer_module, "READ_COUNT", 50)
    put(writer, range(300))
    drain(plan)
    assert stored(plan) == list(range(300))
    assert len(chunk_paths(Path(plan.path) / STREAM)) == 3


def test_the_largest_stream_is_sealed_first_if_the_queue_is_full(writer, client, plan, monkeypatch):
    """A raw depth camera must not cause small files of every other stream."""
    large = next(name for name in plan.share(0) if name != STREAM)
    monkeypatch.setattr(drainer_module, "QUEUE_BYTES", 4000 * plan.drainers)
    put(writer, range(20))
    of_large = QueueWriter(client, plan.uuid, large, 7)
    assert (
        of_large.put([QueuedPacket(seq, seq, seq, 1, bytes(500), 0) for seq in range(20)], lambda: True) == 20
    )
    drainer = Drainer(plan, 0)
    drainer._take(drainer._fresh(None, 256))
    drainer._seal_due(everything=False)
    assert [len(chunk_paths(Path(plan.path) / name)) for name in (large, STREAM)] == [1, 0]
    drain_rest(drainer)
    assert stored(plan) == list(range(20))


def drain_rest(drainer: Drainer) -> None:
    drainer.end()
    drainer.run()


def test_sequence_numbers_continue_after_the_newest_chunk(tmp_path):
    fresh = open_chunk(tmp_path, STREAM)
    assert (fresh.number, fresh.next_seq) == (1, 0)


def test_a_chunk_describes_its_own_content(writer, plan):
    """Read it with h5py only: version, constants of the stream, first and last number, counts, checksums."""
    form = {"codec": "imu samples", "unit": "deg/s", "loses": []}
    manifest = {"schema": "recording/1", "recording": "take", "streams": {STREAM: {"format": form}}}
    write_json(Path(plan.path) / MANIFEST, manifest)
    put(writer, range(3, 10))
    drain(plan)
    with h5py.File(Path(plan.path) / STREAM / "000001.h5", "r") as file:
        attributes = dict(file.attrs)
        index, data = file["index"][:], file["data"][:].tobytes()
    assert attributes["schema"] == b"chunk/2"
    assert attributes["stream"] == STREAM.encode()
    assert json.loads(attributes["format"]) == form
    assert [attributes[name] for name in ("first_seq", "last_seq", "count")] == [3, 9, 7]
    assert attributes["payload_bytes"] == len(data) == 7 * 6
    assert attributes["index_crc32"] == zlib.crc32(index.tobytes())
    assert index["crc32"].tolist() == [zlib.crc32(b"%06d" % seq) for seq in range(3, 10)]


def test_a_drainer_that_falls_behind_does_not_compress_until_it_has_caught_up(client, plan, monkeypatch):
    monkeypatch.setattr(open_chunk_module, "CHUNK_BYTES", 1 << 20)
    plan = replace(plan, headsets=[HeadsetPlan("hololens", "127.0.0.1", ["depth_ahat"], {})])
    picture = struct.pack("<II", 1 << 19, 1 << 19) + bytes(1 << 20) + bytes(8)
    writer = QueueWriter(client, plan.uuid, "hololens/depth_ahat", 7)

    def compressed(seqs: range) -> list[bool]:
        """Queue frames, drain them, and return for each new file whether it is compressed."""
        packets = [QueuedPacket(seq, seq, seq, 1, picture, 0) for seq in seqs]
        assert writer.put(packets, lambda: True) == len(packets)
        drain(plan)
        flags = []
        for path in chunk_paths(Path(plan.path) / "hololens" / "depth_ahat"):
            with h5py.File(path) as file:
                if file.attrs["first_seq"] >= seqs[0]:
                    flags.append(file["frames"].compression is not None)
                    assert not file["frames"][:].any()
        return flags

    assert compressed(range(40)) == [True, True, True, False, False]  # reads of eight packets
    assert compressed(range(40, 44)) == [True]


@pytest.mark.parametrize(
    ("readings", "kept"),
    [
        ([[0, 1, 2], [3, 4]], [0, 1, 2, 3, 4]),
        ([[0, 1, 1, 2]], [0, 1, 2]),
        ([[0, 1], [0, 1, 2], [2, 5]], [0, 1, 2, 5]),
        ([[3, 4], [0, 1, 5]], [3, 4, 5]),
    ],
)
def test_a_repeated_packet_is_stored_once(readings, kept):
    chunk = OpenChunk(STREAM, Path("nowhere"), 1, 0)
    old = [
        packet.seq
        for reading in readings
        for packet in chunk.take([Packet(seq, 7, seq, seq, 1, b"x", b"") for seq in reading], 0.0)
    ]
    assert [packet.seq for packet in chunk.packets] == kept
    assert sorted([*kept, *old]) == sorted(seq for reading in readings for seq in reading)
    assert chunk.bytes == len(kept)
