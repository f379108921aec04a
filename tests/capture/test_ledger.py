"""Notes of a recording over a real queue."""

from __future__ import annotations

import json

from queue_contents import numbers_in_queue

from kitchensync.capture.produce.ledger_writer import Ledger
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.storage.ledger import ConditionNote, ConnectedNote, DeclaredLossNote, EndNote


def test_a_note_that_found_no_room_is_written_with_the_next(client):
    ledger = Ledger(client, "u", "ledger/hololens", 7)
    ledger.note(ConnectedNote(connection=1, next_seq=0), "hololens/pv")
    room = client.config_get("maxmemory")["maxmemory"]
    client.config_set("maxmemory", "1")
    ledger.note(DeclaredLossNote(first_seq=3, last_seq=9), "hololens/pv", lambda: True)
    stalled = ConditionNote(condition="stalled", received=10, last_host_ns=5)
    ledger.note(stalled, "hololens/pv", lambda: True)
    client.config_set("maxmemory", room)
    ledger.note(EndNote(received=10, reason="stopped"), "hololens/pv")
    reader = QueueReader(client, "u", ["ledger/hololens"], "drainer-0")
    packets = reader.fresh(count=10, block_ms=100)["ledger/hololens"]
    reader.close()
    assert [packet.seq for packet in packets] == [0, 1, 2, 3]
    notes = [json.loads(bytes(packet.payload)) for packet in packets]
    assert [note["note"] for note in notes] == ["connected", "declared_loss", "condition", "end"]
    assert (notes[1]["first_seq"], notes[1]["last_seq"]) == (3, 9)


def test_a_note_whose_outcome_is_unknown_is_not_written_twice(client):
    """The server stored it but its answer was lost: it is sent again with the same number."""
    ledger = Ledger(client, "u", "ledger/hololens", 7)
    real = ledger._writer.put
    ledger._writer.put = lambda packets, give_up: real(packets, give_up) and 0
    ledger.note(ConnectedNote(connection=1, next_seq=0), "hololens/pv")
    ledger._writer.put = real
    ledger.note(EndNote(received=10, reason="stopped"), "hololens/pv")
    assert numbers_in_queue(client, "u", "ledger/hololens") == [0, 1]
