"""Streams deleted from a queue in use: packets are queued again and stored once, a loss is reported once."""

from __future__ import annotations

import json
import signal
import threading

import pytest
import redis
from drained import stored
from queue_contents import numbers_in_queue
from rehearsal.stage import record_command, recorder
from waiting import until

from kitchensync.capture.drain.drainer import Drainer
from kitchensync.capture.monitor.monitor import RecordingMonitor
from kitchensync.capture.plan import QUEUE
from kitchensync.capture.queue import queue_reader, stream_entries
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.capture.served_kitchen import simulator
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.names import DRAINERS, stream_key

STREAM = "hololens/gyroscope"


def put(writer: QueueWriter, *seqs: int) -> None:
    for seq in seqs:
        assert writer.put([QueuedPacket(seq, seq, seq, 1, b"%06d" % seq, 0)], lambda: False) == 1


def seqs_of(reader: QueueReader) -> list[int]:
    return [packet.seq for packet in reader.fresh(count=1000, block_ms=10).get("s", [])]


def delete(client: redis.Redis) -> None:
    client.delete(*client.keys("ks:*"))


def flush(client: redis.Redis) -> None:
    client.flushall()


def destroy_groups(client: redis.Redis) -> None:
    client.xgroup_destroy(stream_key("u-1", STREAM), DRAINERS)


@pytest.mark.slow
@pytest.mark.parametrize("vanish", [delete, flush, destroy_groups])
def test_a_restarted_drainer_stores_every_packet_once(client, plan, vanish, monkeypatch):
    monkeypatch.setattr(stream_entries, "KEEP_S", 1e6)  # even on a busy computer
    writer = QueueWriter(client, plan.uuid, STREAM, 7)
    drainer = Drainer(plan, 0)
    draining = threading.Thread(target=drainer.run, daemon=True)
    draining.start()
    put(writer, *range(50))
    until(lambda: drainer._chunks[STREAM].next_seq == 50, "the first packets")
    put(writer, *range(50, 100))
    vanish(client)
    put(writer, *range(100, 200))
    until(lambda: drainer._chunks[STREAM].next_seq == 200, "the last packet")
    drainer.end()
    draining.join(60)
    assert stored(plan.path, STREAM) == list(range(200))
    assert writer.pipe.vanished_ns or drainer._reader.vanished_ns
    assert client.xlen(stream_key(plan.uuid, STREAM)) == 0


def test_packets_queued_again_twice_are_stored_once(client, monkeypatch):
    """Each packet must be in one entry only: a server refuses a repeated entry, but not a repeated packet."""
    monkeypatch.setattr(stream_entries, "KEEP_S", 1e6)
    writer = QueueWriter(client, "u", "s", 7)
    for first in range(0, 40, 10):
        packets = [QueuedPacket(seq, seq, seq, 1, b"x", 0) for seq in range(first, first + 10)]
        assert writer.put(packets, lambda: False) == 10
        if first:
            flush(client)
    put(writer, 40)
    assert numbers_in_queue(client, "u", "s") == list(range(41))


def test_packets_that_cannot_be_queued_again_are_reported_once(client, monkeypatch):
    monkeypatch.setattr(stream_entries, "KEEP_BYTES", 60)
    losses: list[tuple[int, int]] = []
    writer = QueueWriter(client, "u", "s", 7, lambda *loss: losses.append(loss))
    put(writer, *range(50))
    flush(client)
    put(writer, *range(50, 100))
    ((first, last),) = losses
    assert (first, 30 < last < 50) == (0, True)
    flush(client)
    put(writer, 100)
    assert losses[1][0] == last + 1
    seqs = seqs_of(QueueReader(client, "u", ["s"], "drainer-0"))
    assert sorted([*seqs, *(seq for loss in losses for seq in range(loss[0], loss[1] + 1))]) == list(
        range(101)
    )


def test_a_quiet_stream_is_recreated_by_its_drainer_and_continues_its_numbering(client, monkeypatch):
    """Its producer checks the queue before it writes again; a restarted one continues the numbering."""
    monkeypatch.setattr(queue_reader, "RESEND_NS", 0)
    writer, reader = QueueWriter(client, "u", "s", 7), QueueReader(client, "u", ["s"], "drainer-0")
    put(writer, 0, 1)
    assert seqs_of(reader) == [0, 1]
    put(writer, 2)
    delete(client)
    assert seqs_of(reader) == []
    assert client.exists(stream_key("u", "s"))
    assert QueueWriter(client, "u", "s", 8).next_sequence() == 2
    monkeypatch.setattr(stream_entries, "QUIET_S", -1.0)
    put(writer, 3)
    assert seqs_of(reader) == [2, 3]


def test_a_vanished_stream_is_first_left_to_its_producer(client, monkeypatch):
    monkeypatch.setattr(queue_reader, "RESEND_NS", 10**18)
    writer, reader = QueueWriter(client, "u", "s", 7), QueueReader(client, "u", ["s"], "drainer-0")
    put(writer, 0)
    assert (seqs_of(reader), reader.vanished_ns) == ([0], 0)
    put(writer, 1)
    flush(client)
    assert seqs_of(reader) == []
    assert not client.exists(stream_key("u", "s"))
    assert reader.vanished_ns > 0
    put(writer, 2)
    assert seqs_of(reader) == [0, 1, 2]


def test_a_stream_that_vanishes_during_the_wait_for_another_is_left_to_its_producer_too(client, monkeypatch):
    now_ns = [host_ns()]
    monkeypatch.setattr(queue_reader, "host_ns", lambda: now_ns[0])
    quiet, busy = (QueueWriter(client, "u", name, 7) for name in ("quiet", "s"))
    reader = QueueReader(client, "u", ["quiet", "s"], "drainer-0")
    put(quiet, 0)
    put(busy, 0)
    assert seqs_of(reader) == [0]
    client.delete(stream_key("u", "quiet"))
    assert seqs_of(reader) == []
    put(busy, 1, 2)
    client.delete(stream_key("u", "s"))
    now_ns[0] += queue_reader.RESEND_NS
    assert seqs_of(reader) == []
    assert client.exists(stream_key("u", "quiet"))
    assert not client.exists(stream_key("u", "s"))
    put(busy, 3)
    assert seqs_of(reader) == [0, 1, 2, 3]


def test_a_stream_that_vanishes_right_after_its_creation_is_created_again(client, monkeypatch):
    reader = QueueReader(client, "u", ["s"], "drainer-0")
    make, made = reader._create_missing, []

    def make_in_vain_at_first(patience_ns: int) -> bool:
        made.append(make(patience_ns))
        if len(made) == 1:
            flush(client)
        return made[-1]

    monkeypatch.setattr(reader, "_create_missing", make_in_vain_at_first)
    assert reader.unfinished() == {}
    assert len(made) == 2


def test_vanished_packets_are_queued_again_at_the_end(client):
    writer = QueueWriter(client, "u", "s", 7)
    put(writer, *range(10))
    flush(client)
    writer.pipe.wait_for_sync(60)
    assert numbers_in_queue(client, "u", "s") == list(range(10))


def test_a_drainer_waits_until_there_is_memory_to_recreate_a_stream(client, monkeypatch):
    monkeypatch.setattr(queue_reader, "RESEND_NS", 0)
    writer, reader = QueueWriter(client, "u", "s", 7), QueueReader(client, "u", ["s"], "drainer-0")
    put(writer, 0)
    assert seqs_of(reader) == [0]
    client.config_set("maxmemory", "1")
    flush(client)
    assert seqs_of(reader) == []
    trying = threading.Thread(target=put, args=(writer, 1))
    trying.start()
    until(lambda: writer.pipe.connections > 1, "a second try")
    client.config_set("maxmemory", "0")
    trying.join(60)
    assert seqs_of(reader) == [0, 1]


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_changed_queue_server_is_reported_and_every_packet_accounted_for(tmp_path, monkeypatch):
    monitor = RecordingMonitor()

    def is_said(rule: str) -> bool:
        views = monitor.views("take")
        return any(
            finding["rule"] == rule and view["health"] == "problem"
            for view in views
            for finding in view["findings"]
        )

    with simulator(tmp_path, 3, 600) as kitchen:
        monkeypatch.setenv("XDG_RUNTIME_DIR", kitchen.environment["XDG_RUNTIME_DIR"])
        command = record_command(kitchen, tmp_path / "data", 600)
        with recorder(command, tmp_path, kitchen.environment) as recording:
            recording.wait_for_all()
            with connect(f"unix://{recording.endpoints()[0].with_name(QUEUE)}") as client:
                client.config_set("maxmemory-policy", "allkeys-lru")
                until(lambda: is_said("queue_evicts"), "the policy")
                client.config_set("maxmemory-policy", "noeviction")
                flush(client)
            until(lambda: is_said("queue_vanished"), "the missing streams")
            recording.process.send_signal(signal.SIGINT)
            answer = json.loads(recording.output())
    assert answer["status"] != "PASS"
    assert not any("no cause is named" in reason for reason in answer["reasons"])
    assert any("vanished from the queue server" in reason for reason in answer["reasons"])
    for name, facts in answer["streams"].items():
        missing = sum(last - first + 1 for first, last in facts["missing"])
        assert facts["received"] == facts["stored"] + missing, name
        assert facts["duplicates"] == 0, name
        assert "declared_loss" not in {gap["cause"] for gap in facts["gaps"]}, name
