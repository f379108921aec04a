"""The queue against a real server: each packet once, in order, forgotten only when acknowledged."""

from __future__ import annotations

import os
import signal

from capture import queue
from capture.queue import QueuedPacket, QueueReader, QueueWriter

NEVER = lambda: False  # noqa: E731


def put(writer: QueueWriter, *seqs: int, body: bytes = b"payload+pose", pose_bytes: int = 5) -> None:
    for seq in seqs:
        assert writer.put(QueuedPacket(seq, seq * 10, seq * 100, 1, body, pose_bytes), NEVER)


def test_a_packet_comes_out_as_it_went_in(client):
    put(QueueWriter(client, "u", "hololens/pv", 7), 0)
    reader = QueueReader(client, "u", ["hololens/pv"], "drainer-0")
    (packet,) = reader.fresh(count=10, block_ms=100)["hololens/pv"]
    assert (packet.seq, packet.epoch_ms, packet.device_ticks, packet.host_ns) == (0, 7, 0, 0)
    assert (bytes(packet.payload), bytes(packet.pose)) == (b"payload", b"+pose")


def test_a_repeated_put_is_stored_once(client):
    writer = QueueWriter(client, "u", "s", 7)
    put(writer, 0, 1, 1, 0, 2)
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    assert [packet.seq for packet in reader.fresh(count=10, block_ms=100)["s"]] == [0, 1, 2]


def test_a_new_run_of_the_producer_goes_on_counting(client):
    put(QueueWriter(client, "u", "s", 7), 0, 1, 2)
    again = QueueWriter(client, "u", "s", 8)
    assert again.next_sequence() == 3
    put(again, 3)
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    packets = reader.fresh(count=10, block_ms=100)["s"]
    assert [(packet.epoch_ms, packet.seq) for packet in packets] == [(7, 0), (7, 1), (7, 2), (8, 3)]


def test_the_count_goes_on_even_when_everything_was_acknowledged(client):
    put(QueueWriter(client, "u", "s", 7), 0, 1)
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    reader.acknowledge("s", reader.fresh(count=10, block_ms=100)["s"], None)
    assert QueueWriter(client, "u", "s", 8).next_sequence() == 2


def test_what_was_taken_and_not_acknowledged_comes_back_to_the_same_consumer(client):
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


def test_nothing_is_lost_when_the_server_is_killed(server, client):
    writer = QueueWriter(client, "u", "s", 7)
    put(writer, *range(100))
    client.execute_command("WAITAOF", 1, 0, 5000)
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    assert not server.is_up()
    server.start()
    put(writer, 99, 100)
    with queue.connect(server.url) as fresh:
        reader = QueueReader(fresh, "u", ["s"], "drainer-0")
        assert [packet.seq for packet in reader.fresh(count=1000, block_ms=100)["s"]] == list(range(101))


def test_a_full_queue_gives_back_the_packet_instead_of_dropping_others(client):
    client.config_set("maxmemory", "3mb")
    writer = QueueWriter(client, "u", "s", 7)
    stored = 0
    for seq in range(100):
        if not writer.put(QueuedPacket(seq, 0, 0, 1, bytes(100_000), 0), lambda: True):
            break
        stored += 1
    assert 0 < stored < 100
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    assert len(reader.fresh(count=1000, block_ms=100)["s"]) == stored


def test_the_server_listens_on_its_private_socket_only(server, client):
    assert client.config_get("port") == {"port": "0"} or client.config_get("port") == {b"port": b"0"}
    assert server.socket.stat().st_mode & 0o077 == 0
    pid = server.process.pid
    server.stop()
    assert not server.socket.exists()
    assert not os.path.exists(f"/proc/{pid}")
