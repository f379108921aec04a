"""Our own queue server: its configuration and the size of its file."""

from __future__ import annotations

import shutil
from collections import namedtuple

import pytest
from processes import wait_until_synced
from queue_contents import numbers_in_queue

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.queue.queue_connection import connect, wait_until_ready
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.server import MAX_FILE_BYTES, MIN_FILE_BYTES, QueueServer
from kitchensync.capture.queue.stream_entries import QueuedPacket

Usage = namedtuple("Usage", "total used free")


def test_it_syncs_every_second_never_evicts_and_compresses_nothing(client):
    config = client.config_get()
    expected = {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "no-appendfsync-on-rewrite": "no",
        "maxmemory-policy": "noeviction",
        "rdbcompression": "no",
        "rdbchecksum": "yes",
    }
    assert {name: config[name] for name in expected} == expected


def test_no_log_of_the_server_keeps_pieces_of_packets(client):
    writer = QueueWriter(client, "u", "s", 1)
    assert writer.put([QueuedPacket(0, 0, 0, 1, bytes(4 << 20), 0)], lambda: True) == 1
    for kind in ("slow", "large-request", "large-reply"):
        assert client.execute_command("COMMANDLOG", "LEN", kind) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("free", "least"),
    [(80 << 20, MIN_FILE_BYTES), (1 << 30, 128 << 20), (50 << 30, MAX_FILE_BYTES)],
)
def test_the_append_only_file_stays_small_on_a_small_disk(tmp_path, short_folder, monkeypatch, free, least):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free, 0, free))
    server = QueueServer(tmp_path, short_folder / "q")
    server.start()
    try:
        with connect(server.url) as client:
            config = client.config_get("auto-aof-rewrite-min-size")
        assert int(config["auto-aof-rewrite-min-size"]) == least
    finally:
        server.stop()


@pytest.mark.slow
def test_a_killed_server_reads_its_file_before_it_answers(server, client):
    writer = QueueWriter(client, "u", "s", 1)
    for first in range(0, 60_000, 500):
        packets = [QueuedPacket(seq, seq, seq, 1, bytes(900), 0) for seq in range(first, first + 500)]
        assert writer.put(packets, lambda: True) == 500
    wait_until_synced(client)
    server.process.kill()
    server.process.wait()
    client.connection_pool.disconnect()
    with pytest.raises(QueueUnavailable):
        wait_until_ready(client, "q", limit_s=0.01)
    server.start()
    assert numbers_in_queue(client, "u", "s") == list(range(60_000))
