"""The queue with a real server: each packet once, in order, deleted only after its acknowledgement."""

from __future__ import annotations

import os
import random
import signal
import struct
import threading

import pytest
from processes import wait_until_synced
from queue_contents import numbers_in_queue

from kitchensync.capture.queue import stream_entries
from kitchensync.capture.queue.newest_packets import in_order, newest_first
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.storage.names import stream_key

NEVER = lambda: False  # noqa: E731


def put(writer: QueueWriter, *seqs: int, body: bytes = b"payload+pose", pose_bytes: int = 5) -> None:
    for seq in seqs:
        assert writer.put([QueuedPacket(seq, seq * 10, seq * 100, 1, body, pose_bytes)], NEVER) == 1


def test_a_packet_comes_out_as_it_went_in(client):
    put(QueueWriter(client, "u", "hololens/pv", 7), 0)
    reader = QueueReader(client, "u", ["hololens/pv"], "drainer-0")
    (packet,) = reader.fresh(count=10, block_ms=100)["hololens/pv"]
    assert (packet.seq, packet.epoch_ms, packet.device_ticks, packet.host_ns) == (0, 7, 0, 0)
    assert (bytes(packet.payload), bytes(packet.pose)) == (b"payload", b"+pose")


def test_small_packets_share_an_entry_and_come_out_as_they_went_in(client):
    """Large packets and those after a gap begin a new entry; poses may have any length."""
    chance = random.Random(1)
    numbers = [*range(100), 150, *range(152, 300)]
    sizes = [chance.choice([0, 10, 1000, 30_000, 65_536, 65_537, 200_000]) for _ in numbers]
    packets = [
        QueuedPacket(
            seq, -seq, seq * 100, seq % 3, chance.randbytes(size), chance.choice([0, size // 2, size])
        )
        for seq, size in zip(numbers, sizes, strict=True)
    ]
    assert QueueWriter(client, "u", "s", 7).put(packets, NEVER) == len(packets)
    assert client.xlen(stream_key("u", "s")) < len(packets)
    assert numbers_in_queue(client, "u", "s") == numbers
    assert [packet.seq for packet in in_order(client, "u", "s")] == numbers
    newest = [packet.seq for packet in newest_first(client, "u", "s")]
    assert newest == numbers[::-1][: len(newest)] != []
    for got, body, pose_bytes in out_of(client, packets):
        assert (bytes(got.payload) + bytes(got.pose), len(got.pose)) == (body, pose_bytes)


def out_of(client, packets):
    """Read packets, compare their metadata, and return each with its body and the length of its pose."""
    taken = QueueReader(client, "u", ["s"], "drainer-0").fresh(count=1000, block_ms=100)["s"]
    rows = [(packet.seq, packet.device_ticks, packet.host_ns, packet.connection) for packet in taken]
    assert rows == [packet[:4] for packet in packets]
    return [(got, packet.body, packet.pose_bytes) for got, packet in zip(taken, packets, strict=True)]


def test_an_entry_stays_until_all_of_its_packets_are_acknowledged(client):
    packets = [QueuedPacket(seq, seq, seq, 1, b"x", 0) for seq in range(20)]
    QueueWriter(client, "u", "s", 7).put(packets, NEVER)
    assert client.xlen(stream_key("u", "s")) == 1
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    taken = reader.fresh(count=10, block_ms=100)["s"]
    reader.acknowledge("s", taken[:19], None)
    again = QueueReader(client, "u", ["s"], "drainer-0")
    assert [packet.seq for packet in again.unfinished()["s"]] == list(range(20))
    reader.acknowledge("s", taken[19:], None)
    assert again.unfinished() == {}
    assert again.waiting() == 0


def test_a_read_reports_whether_there_is_more(client):
    """The count is one of entries, not of packets."""
    writer = QueueWriter(client, "u", "s", 7, entry_packets=2)
    writer.put([QueuedPacket(seq, seq, seq, 1, b"x", 0) for seq in range(10)], NEVER)
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    read = [(len(reader.fresh(count=3, block_ms=1).get("s", [])), reader.has_more) for _ in range(3)]
    assert read == [(6, True), (4, False), (0, False)]


@pytest.mark.parametrize(
    ("meta", "body"), [(struct.pack("<qqIII", 5, 6, 1, 0, 4), b"short"), (b"", b""), (bytes(27), b"")]
)
def test_an_entry_with_a_wrong_length_is_rejected(client, meta, body):
    client.xadd(stream_key("u", "s"), {"n": meta, "b": body}, id="7-9")
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    assert reader.fresh(count=10, block_ms=100) == {}
    assert list(reader.unreadable) == ["s"]


def test_a_repeated_put_is_stored_once(client):
    writer = QueueWriter(client, "u", "s", 7)
    put(writer, 0, 1, 1, 0, 2)
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    assert [packet.seq for packet in reader.fresh(count=10, block_ms=100)["s"]] == [0, 1, 2]


@pytest.mark.parametrize(("first", "second", "taken_for"), [(7, 8, 8), (1000, 400, 1001)])
def test_a_restarted_producer_continues_the_numbering(client, first, second, taken_for):
    """This also holds after the wall clock was set back."""
    put(QueueWriter(client, "u", "s", first), 0, 1)
    again = QueueWriter(client, "u", "s", second)
    assert again.next_sequence() == 2
    put(again, 2, 3)
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    packets = reader.fresh(count=10, block_ms=100)["s"]
    runs = [(first, 0), (first, 1), (taken_for, 2), (taken_for, 3)]
    assert [(packet.epoch_ms, packet.seq) for packet in packets] == runs


def test_the_numbering_continues_after_everything_was_acknowledged(client):
    put(QueueWriter(client, "u", "s", 7), 0, 1)
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    reader.acknowledge("s", reader.fresh(count=10, block_ms=100)["s"], None)
    assert QueueWriter(client, "u", "s", 8).next_sequence() == 2


def test_unacknowledged_packets_are_read_again_by_the_same_consumer(client):
    put(QueueWriter(client, "u", "s", 7), *range(600))
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    taken = []
    while got := reader.fresh(count=100, block_ms=1):
        taken += got["s"]
    reader.acknowledge("s", taken[:50], None)
    again = QueueReader(client, "u", ["s"], "drainer-0")
    assert [packet.seq for packet in again.unfinished()["s"]] == list(range(50, 600))
    assert again.fresh(count=10, block_ms=1) == {}
    assert again.waiting() == 550


def kill(server) -> None:
    """Kill the server and start it again with its append-only file."""
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    assert not server.is_up()


def forget_the_newest(server, bytes_to_forget: int) -> None:
    """Truncate the append-only file, as a crash of the computer may do with data that was not synced.

    The file may be shorter than that: a server postpones writes while a slow disk syncs.
    """
    (newest,) = server.folder.glob("appendonlydir/*.incr.aof")
    os.truncate(newest, max(newest.stat().st_size - bytes_to_forget, 0))


def seqs_in(server) -> list[int]:
    with connect(server.url) as fresh:
        reader = QueueReader(fresh, "u", ["s"], "drainer-0")
        return [packet.seq for packet in reader.fresh(count=1000, block_ms=100)["s"]]


def test_nothing_is_lost_when_the_server_is_killed(server, client):
    writer = QueueWriter(client, "u", "s", 7)
    put(writer, *range(100))
    kill(server)
    server.start()
    put(writer, 100)
    writer.pipe.close()
    assert seqs_in(server) == list(range(101))


def test_a_server_that_lost_its_newest_packets_gets_them_again(server, client):
    losses = []
    writer = QueueWriter(client, "u", "s", 7, lambda *loss: losses.append(loss))
    put(writer, *range(100))
    wait_until_synced(client)
    kill(server)
    forget_the_newest(server, 3000)
    server.start()
    put(writer, 100)
    writer.pipe.close()
    assert seqs_in(server) == list(range(101))
    assert losses == []


def test_lost_packets_that_are_no_longer_kept_are_reported(server, client, monkeypatch):
    losses = []
    monkeypatch.setattr(stream_entries, "KEEP_BYTES", 60)
    writer = QueueWriter(client, "u", "s", 7, lambda *loss: losses.append(loss))
    put(writer, *range(100))
    wait_until_synced(client)
    kill(server)
    forget_the_newest(server, 3000)
    server.start()
    put(writer, 100)
    writer.pipe.close()
    seqs = seqs_in(server)
    ((first, last),) = losses
    assert sorted([*seqs, *range(first, last + 1)]) == list(range(101))
    assert last - first > 5


def test_many_packets_at_once_are_stored_in_order_small_and_large(client):
    writer = QueueWriter(client, "u", "s", 7)
    bodies = [bytes([n % 256]) * size for n, size in enumerate([0, 1, 20_000, 5, 100_000, 16_384, 3] * 9)]
    packets = [QueuedPacket(n, n, n, 1, memoryview(body), 0) for n, body in enumerate(bodies)]
    assert writer.put(packets, NEVER) == len(packets)
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    stored = reader.fresh(count=1000, block_ms=100)["s"]
    assert [bytes(packet.payload) for packet in stored] == bodies
    writer.pipe.close()


def test_a_full_queue_refuses_the_packet_instead_of_dropping_others(client):
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    assert reader.fresh(count=1, block_ms=1) == {}
    client.config_set("maxmemory", "3mb")
    writer = QueueWriter(client, "u", "s", 7)
    stored = 0
    for seq in range(100):
        if not writer.put([QueuedPacket(seq, 0, 0, 1, bytes(100_000), 0)], lambda: True):
            break
        stored += 1
    assert 0 < stored < 100
    assert len(reader.fresh(count=1000, block_ms=100)["s"]) == stored


def test_the_server_listens_on_its_private_socket_only(server, client):
    assert client.config_get("port") == {"port": "0"} or client.config_get("port") == {b"port": b"0"}
    assert server.socket.stat().st_mode & 0o077 == 0
    pid = server.process.pid
    server.stop()
    assert not server.socket.exists()
    assert not os.path.exists(f"/proc/{pid}")


@pytest.mark.slow
def test_a_producer_waits_for_a_server_that_is_starting(server, client):
    put(QueueWriter(client, "u", "s", 7), 0, 1, 2)
    wait_until_synced(client)
    server.process.kill()
    server.process.wait()
    starter = threading.Timer(0.5, server.start)
    starter.start()
    try:
        assert QueueWriter(client, "u", "s", 8).next_sequence() == 3
    finally:
        starter.join()
