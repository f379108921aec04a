"""Privacy pauses that are not stored, with a real queue: packets that the drainer seals, notes and drops."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from drained import drain

from kitchensync.capture.drain import withheld
from kitchensync.capture.drain.drainer import Drainer
from kitchensync.capture.plan import Plan
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.stored_packets import StoredPackets
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import read_manifest, write_json
from kitchensync.storage.verify.findings import Findings
from kitchensync.storage.verify.sealed_files import Contents
from kitchensync.storage.verify.stream_balance import balance

pytestmark = pytest.mark.slow
SECOND = 1_000_000_000
PV, GYROSCOPE = "hololens/pv", "hololens/gyroscope"


@pytest.fixture
def dropping(plan: Plan) -> Plan:
    streams = {name: {"format": {}} for name in (PV, GYROSCOPE)}
    devices = {"hololens": {"kind": "hololens"}}
    manifest = {"schema": "recording/1", "recording": "take", "state": "recording", "files": {}}
    write_json(Path(plan.path) / "recording.json", manifest | {"streams": streams, "devices": devices})
    return replace(plan, pause="drop")


def put(client, plan: Plan, seqs: range) -> None:
    """Queue ten packets per second of both streams, so many per entry that a pause begins and ends within one."""
    times = {seq: seq * SECOND // 10 for seq in seqs}
    packets = [
        QueuedPacket(seq, at_ns // 100, at_ns, 1, b"%06d" % seq + bytes(26), 0)
        for seq, at_ns in times.items()
    ]
    for stream in (PV, GYROSCOPE):
        assert QueueWriter(client, plan.uuid, stream, 7).put(packets, lambda: True) == len(packets)


def touch(plan: Plan, kind: str, at_s: float) -> None:
    log = EventLog(Path(plan.path), "tablet")
    log.append(kind, host_ns=round(at_s * SECOND), uncertainty_ns=0, body={}, op_id=f"{kind} {at_s}")


def stored(plan: Plan, stream: str) -> list[list[int]]:
    """Return the sequence numbers of each chunk."""
    seqs = []
    for path in chunk_paths(Path(plan.path) / stream):
        with Chunk(path) as chunk:
            assert chunk.damage() == []
            seqs.append(chunk.index["seq"].tolist())
    return seqs


def withheld_of(plan: Plan) -> dict[str, list[list[int]]]:
    entries = read_manifest(Path(plan.path)).get("redactions", [])
    return {
        name: [chunk["seq"] for chunk in chunks]
        for entry in entries
        for name, chunks in entry["streams"].items()
    }


def test_frames_of_a_pause_are_never_stored_and_chunks_end_at_its_limits(dropping: Plan, client) -> None:
    put(client, dropping, range(200))
    touch(dropping, "pause", 5.0)
    touch(dropping, "resume", 9.0)
    drain(dropping)
    assert stored(dropping, PV) == [list(range(48)), list(range(101, 200))], "also the second after it"
    assert stored(dropping, GYROSCOPE) == [list(range(200))], "motion is neither video nor sound"
    assert withheld_of(dropping) == {PV: [[48, 100]]}
    assert QueueReader(client, dropping.uuid, [PV, GYROSCOPE], "drainer-0").waiting() == 0
    content = b"".join(path.read_bytes() for path in (Path(dropping.path) / PV).iterdir())
    assert b"000047" in content
    assert b"000075" not in content


def test_a_pause_that_begins_while_it_records_cuts_the_open_chunk(dropping: Plan, client) -> None:
    drainer = Drainer(dropping, 0)
    put(client, dropping, range(60))
    drainer._take(drainer._fresh(100, 256))
    drainer._seal_due(everything=False)
    assert stored(dropping, PV) == []
    touch(dropping, "pause", 5.0)
    drainer._seal_due(everything=False)
    assert stored(dropping, PV) == [list(range(48))]
    assert stored(dropping, GYROSCOPE) == []
    touch(dropping, "resume", 7.0)
    put(client, dropping, range(60, 100))
    drainer.end()
    drainer.run()
    assert list(chain(*stored(dropping, PV))) == [*range(48), *range(81, 100)]
    assert stored(dropping, GYROSCOPE) == [list(range(100))]
    numbers = [n for first, last in withheld_of(dropping)[PV] for n in range(first, last + 1)]
    assert numbers == list(range(48, 81))


def test_a_crash_after_the_note_stores_and_notes_nothing_twice(dropping: Plan, client, monkeypatch) -> None:
    put(client, dropping, range(100))
    touch(dropping, "pause", 4.0)
    real = withheld.Withheld.note

    def die(self: withheld.Withheld, stream: str, packets: list) -> None:
        real(self, stream, packets)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(withheld.Withheld, "note", die)
        with pytest.raises(RuntimeError, match="killed"):
            drain(dropping)
    drain(dropping)
    assert stored(dropping, PV) == [list(range(38))]
    assert withheld_of(dropping) == {PV: [[38, 99]]}
    assert QueueReader(client, dropping.uuid, [PV], "drainer-0").waiting() == 0


def test_the_balance_names_the_privacy_gap(dropping: Plan, client) -> None:
    put(client, dropping, range(200))
    touch(dropping, "pause", 5.0)
    touch(dropping, "resume", 9.0)
    drain(dropping)
    index = StoredPackets(PV, Path(dropping.path) / PV, {}).index
    findings = Findings()
    counts = balance(PV, Contents(index, "", 0), read_manifest(Path(dropping.path)), [], findings, [])
    assert counts["received"] == counts["stored"] + 53 == 200
    assert [gap["cause"] for gap in counts["gaps"]] == ["privacy"]
    assert findings.status == "WARN"


def test_marked_pauses_are_stored(dropping: Plan, client) -> None:
    put(client, dropping, range(100))
    touch(dropping, "pause", 4.0)
    drain(replace(dropping, pause="mark"))
    assert stored(dropping, PV) == [list(range(100))]
