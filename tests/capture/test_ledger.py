"""Notes of a recording over a real queue."""

from __future__ import annotations

import json

from capture.produce.notes import Ledger
from capture.queue.stream_queue import QueueReader


def test_a_note_that_found_no_room_is_said_with_the_next(client):
    ledger = Ledger(client, "u", "ledger/hololens", 7)
    ledger.note("connected", "hololens/pv")
    room = client.config_get("maxmemory")["maxmemory"]
    client.config_set("maxmemory", "1")
    ledger.note("declared_loss", "hololens/pv", lambda: True, first_seq=3, last_seq=9)
    ledger.note("condition", "hololens/pv", lambda: True, condition="stalled")
    client.config_set("maxmemory", room)
    ledger.note("end", "hololens/pv", received=10)
    reader = QueueReader(client, "u", ["ledger/hololens"], "drainer-0")
    packets = reader.fresh(count=10, block_ms=100)["ledger/hololens"]
    reader.close()
    assert [packet.seq for packet in packets] == [0, 1, 2, 3]
    notes = [json.loads(bytes(packet.payload)) for packet in packets]
    assert [note["note"] for note in notes] == ["connected", "declared_loss", "condition", "end"]
    assert (notes[1]["first_seq"], notes[1]["last_seq"]) == (3, 9)
