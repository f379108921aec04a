"""Several streams in one write: each packet once, gaps reported, everything again after the server lost data."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from types import SimpleNamespace

import pytest
from queue_contents import numbers_in_queue
from waiting import until

from kitchensync.capture.queue import stream_entries
from kitchensync.capture.queue.pipe import Batch, QueuePipe
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.storage.chunks.chunk_writer import Sealed
from kitchensync.storage.names import stream_key

NEVER = lambda: False  # noqa: E731


FOR_EVER_S = 1e6


def wait_in_thread(pipe: QueuePipe, limit_s: float = FOR_EVER_S) -> threading.Thread:
    """Wait in a thread until all packets are synced."""
    thread = threading.Thread(target=pipe.wait_for_sync, args=(limit_s,), daemon=True)
    thread.start()
    return thread


def check_ended(thread: threading.Thread) -> None:
    until(lambda: not thread.is_alive(), "the end of the wait")


class NotingWriter:
    """A writer that only notes its calls."""

    sure_of = 0

    def __init__(self) -> None:
        self.kept: list[int] = []

    def pack(self, packets, pieces) -> None:
        raise AssertionError("not sent in these tests")

    def keep(self, packets) -> None:
        self.kept += [packet.seq for packet in packets]

    def forgotten(self):
        return []


def packets(*seqs: int, size: int = 20) -> list[QueuedPacket]:
    return [QueuedPacket(seq, seq, seq, 1, bytes([seq % 256]) * size, 0) for seq in seqs]


@pytest.mark.parametrize(
    ("answers", "done", "lost", "kept"),
    [
        ("yyyy", 4, [], [5, 6, 7, 8]),
        ("yynn", 2, [(7, 8)], [5, 6]),
        ("nnnn", 0, [(5, 8)], []),
        ("ynny", 4, [(6, 7)], [5, 8]),
        ("nyny", 4, [(5, 5), (7, 7)], [6, 8]),
        ("nynn", 2, [(5, 5), (7, 8)], [6]),
    ],
)
def test_a_packet_lost_before_a_queued_one_is_reported(answers, done, lost, kept):
    writer = NotingWriter()
    batch = Batch(writer, packets(5, 6, 7, 8))
    batch.settle([answer == "y" for answer in answers])
    assert (batch.done, batch.lost(), writer.kept) == (done, lost, kept)


def test_streams_that_share_a_pipe_keep_their_order_and_bytes(client):
    pipe = QueuePipe(client)
    writers = {name: QueueWriter(client, "u", name, 7, pipe=pipe) for name in ("a", "b", "c")}
    for first in range(0, 300, 100):
        pipe.put(
            [
                Batch(writers["a"], packets(*range(first, first + 100))),
                Batch(writers["b"], packets(*range(first, first + 100), size=70_000)),
                Batch(writers["c"], packets(first // 100, size=0)),
            ],
            NEVER,
        )
    reader = QueueReader(client, "u", list(writers), "drainer-0")
    got = reader.fresh(count=1000, block_ms=100)
    assert {name: [packet.seq for packet in packets] for name, packets in got.items()} == {
        "a": list(range(300)),
        "b": list(range(300)),
        "c": [0, 1, 2],
    }
    assert all(bytes(packet.payload) == bytes([packet.seq % 256]) * 70_000 for packet in got["b"])
    pipe.close()
    reader.close()


@pytest.mark.slow
def test_a_connection_cut_in_the_middle_loses_nothing(client):
    pipe = QueuePipe(client)
    writers = [QueueWriter(client, "u", name, 7, pipe=pipe) for name in ("a", "b")]

    def cut() -> None:
        client.client_kill_filter(_type="normal", skipme=True)

    for first in range(0, 4000, 50):
        batches = [Batch(writer, packets(*range(first, first + 50), size=3000)) for writer in writers]
        cutter = threading.Thread(target=cut)
        cutter.start()
        pipe.put(batches, NEVER)
        cutter.join()
        assert [batch.lost() for batch in batches] == [[], []]
    assert pipe.connections > 0
    reader = QueueReader(client, "u", ["a", "b"], "drainer-0")
    got = reader.fresh(count=10_000, block_ms=100)
    assert [[packet.seq for packet in got[name]] for name in ("a", "b")] == [list(range(4000))] * 2
    pipe.close()
    reader.close()


def test_the_server_works_between_begin_and_finish(client):
    pipe = QueuePipe(client)
    writer = QueueWriter(client, "u", "a", 7, pipe=pipe)
    batch = Batch(writer, packets(*range(50)))
    pipe.begin([batch])
    until(lambda: len(numbers_in_queue(client, "u", "a")) == 50, "the packets in the queue")
    assert batch.done == 0
    pipe.finish(NEVER)
    assert (batch.done, batch.lost()) == (50, [])
    pipe.close()


@pytest.mark.slow
def test_a_cut_between_begin_and_finish_stores_everything_once(client):
    pipe = QueuePipe(client)
    writer = QueueWriter(client, "u", "a", 7, pipe=pipe, entry_packets=4)
    for first in range(0, 1000, 50):
        batch = Batch(writer, packets(*range(first, first + 50)))
        pipe.begin([batch])
        client.client_kill_filter(_type="normal", skipme=True)
        pipe.finish(NEVER)
        assert (batch.done, batch.lost()) == (50, [])
    assert pipe.connections > 0
    assert numbers_in_queue(client, "u", "a") == list(range(1000))
    pipe.close()


def test_a_server_killed_during_the_wait_for_sync_gets_its_lost_packets_again(server, client, tmp_path):
    pipe = QueuePipe(client)
    writers = {name: QueueWriter(client, "u", name, 7, pipe=pipe) for name in ("a", "b")}
    pipe.put([Batch(writer, packets(*range(100))) for writer in writers.values()], NEVER)
    pipe.put([Batch(writers["a"], packets(*range(100, 200)))], NEVER)
    server.process.send_signal(signal.SIGSTOP)
    thread = wait_in_thread(pipe)
    server.process.kill()
    server.process.wait()
    shutil.rmtree(tmp_path / "appendonlydir")  # more than it can lose normally
    server.start()
    check_ended(thread)
    assert {name: len(numbers_in_queue(client, "u", name)) for name in writers} == {"a": 200, "b": 100}
    pipe.close()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["in order", "keeps no file", "gone", "nothing given"])
def test_the_wait_for_sync_ends_as_early_as_possible(server, client, way):
    pipe = QueuePipe(client)
    if way != "nothing given":
        pipe.put([Batch(QueueWriter(client, "u", "a", 7, pipe=pipe), packets(*range(100)))], NEVER)
    if way == "keeps no file":
        server.give_up_persistence()
    if way == "gone":
        server.stop()
    check_ended(wait_in_thread(pipe, 0.5 if way == "gone" else FOR_EVER_S))
    pipe.close()


def test_after_a_reconnect_packets_written_before_it_are_synced_too(client):
    """Packets of a closed connection are in the server, which may still be killed before it syncs."""
    client.config_set("appendfsync", "no")
    pipe = QueuePipe(client)
    writer = QueueWriter(client, "u", "a", 7, pipe=pipe)
    pipe.put([Batch(writer, packets(0))], NEVER)
    client.client_kill_filter(_type="normal", skipme=True)
    pipe.put([Batch(writer, packets(0))], NEVER)
    begin_s = time.monotonic()
    pipe.wait_for_sync(0.5)
    assert time.monotonic() - begin_s >= 0.5
    client.config_set("appendfsync", "everysec")
    check_ended(wait_in_thread(pipe))
    until(lambda: client.keys() == [stream_key("u", "a").encode()], "the end of the mark")
    pipe.close()


def test_a_queue_without_free_memory_still_drops_sealed_packets(client, tmp_path):
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    writer = QueueWriter(client, "u", "s", 7)
    assert writer.put(packets(*range(100), size=50_000), NEVER) == 100
    taken = reader.fresh(count=1000, block_ms=100)["s"]
    client.config_set("maxmemory", "3mb")
    assert writer.put(packets(100, size=50_000), lambda: True) == 0
    reader.acknowledge("s", taken, Sealed(tmp_path / "000001.h5", 0, 99, 100, 1, "00"))
    assert reader.waiting() == 0
    assert client.hgetall("ks:{u:s}:files")
    writer.pipe.close()
    reader.close()


def test_a_quiet_stream_is_checked_from_time_to_time(client, monkeypatch):
    now_s = [1.0]
    monkeypatch.setattr(stream_entries, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    pipe = QueuePipe(client)
    writers = [QueueWriter(client, "u", name, 7, pipe=pipe) for name in ("quiet", "other")]
    pipe.put([Batch(writer, packets(*range(10))) for writer in writers], NEVER)
    for seq in (10, 20):
        client.config_resetstat()
        now_s[0] += 2 * stream_entries.QUIET_S
        pipe.put([Batch(writers[1], packets(seq))], NEVER)
        for later in range(seq + 1, seq + 10):
            pipe.put([Batch(writers[1], packets(later))], NEVER)
        assert client.info("commandstats")["cmdstat_xinfo|stream"]["calls"] == len(writers)
    client.delete(stream_key("u", "quiet"))
    now_s[0] += 2 * stream_entries.QUIET_S
    pipe.put([Batch(writers[1], packets(30))], NEVER)
    assert numbers_in_queue(client, "u", "quiet") == list(range(10))
    pipe.close()


def test_a_stream_that_is_quiet_when_the_server_loses_data_is_queued_again_too(client):
    """Its device may have ended it: no later packet would trigger the check of its newest ones."""
    pipe = QueuePipe(client)
    writers = [QueueWriter(client, "u", name, 7, pipe=pipe) for name in ("quiet", "other")]
    pipe.put([Batch(writer, packets(*range(10))) for writer in writers], NEVER)
    client.delete(stream_key("u", "quiet"))
    client.client_kill_filter(_type="normal", skipme=True)
    pipe.put([Batch(writers[1], packets(10))], NEVER)
    assert [len(numbers_in_queue(client, "u", name)) for name in ("quiet", "other")] == [10, 11]
    pipe.close()
