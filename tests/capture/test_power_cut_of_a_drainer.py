"""Power cuts with the real drainer and a real queue, at every moment and with every disk state that fsync allows.

The drainer writes to the traced disk of `disk_model`. The disk is rebuilt after every call; all acknowledged
packets must be readable. Then another drainer continues with the remaining files and a queue that holds the other
packets, some packets twice, or not the newest ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from disk_model import TracingDisk, choices, remains

from kitchensync.capture.drain import drainer as drainer_module
from kitchensync.capture.drain import open_chunk as open_chunk_module
from kitchensync.capture.drain.drainer import Drainer
from kitchensync.capture.plan import Plan
from kitchensync.capture.process.outcome import Outcome
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.capture.session.closing import close_recording
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.manifest import write_json
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow

STREAMS = ("hololens/gyroscope", "hololens/pv")
COUNT = 60
SEEDS = range(5)
FORGOTTEN = 5
"""Newest packets that a queue without power forgets: `everysec` had not synced them."""


def payload(stream: str, seq: int) -> bytes:
    return random.Random(f"{stream} {seq}").randbytes(64 if stream.endswith("gyroscope") else 40 + seq)


def queue_packets(client, plan: Plan, stream: str, seqs: range) -> None:
    writer = QueueWriter(client, plan.uuid, stream, 7, entry_packets=2)
    packets = [QueuedPacket(seq, seq * 480_000, seq, 1, payload(stream, seq), 0) for seq in seqs]
    assert writer.put(packets, lambda: True) == len(packets)
    writer.pipe.close()


def drain(plan: Plan, disk: TracingDisk | None = None) -> None:
    drainer = Drainer(plan, 0, disk) if disk else Drainer(plan, 0)
    drainer.end()
    drainer.run()


def begin(plan: Plan, disk: TracingDisk) -> None:
    """Write the manifest as a session does."""
    manifest = {
        "schema": "recording/1",
        "recording": "take",
        "state": "recording",
        "files": {},
        "devices": {},
    }
    write_json(
        Path(plan.path) / "recording.json", manifest | {"streams": {name: {} for name in STREAMS}}, disk
    )


class Killed(BaseException):
    """The drainer dies here."""


@pytest.fixture
def trace(client, plan, monkeypatch) -> Callable[[TracingDisk], TracingDisk]:
    """Record to a traced disk: small chunks, one crash between sealing and acknowledging, three restarts."""
    monkeypatch.setattr(open_chunk_module, "CHUNK_BYTES", 700)
    monkeypatch.setattr(drainer_module, "READ_COUNT", 4)
    real = QueueReader.acknowledge
    deaths = [9]

    def make(disk: TracingDisk) -> TracingDisk:
        def noting(self, stream, packets, sealed) -> None:
            deaths[0] -= 1
            if deaths[0] == 0:
                raise Killed
            disk.note("acknowledged", {(stream, packet.seq) for packet in packets})
            real(self, stream, packets, sealed)

        begin(plan, disk)
        with monkeypatch.context() as patch:
            patch.setattr(QueueReader, "acknowledge", noting)
            for third in range(3):
                for stream in STREAMS:
                    queue_packets(client, plan, stream, range(third * COUNT // 3, (third + 1) * COUNT // 3))
                try:
                    drain(plan, disk)
                except Killed:
                    drain(plan, disk)
        assert deaths[0] < 0, "nothing died"
        return disk

    return make


def stored(recording: Path) -> set[tuple[str, int]]:
    """Read all packets back and check files, payloads and sequence numbers: no duplicates, no gaps."""
    packets = set()
    for stream in STREAMS:
        seqs: list[int] = []
        for path in chunk_paths(recording / stream):
            with Chunk(path) as chunk:
                assert chunk.damage() == [], path
                for row, content in zip(chunk.index, chunk.payloads(), strict=True):
                    assert content == payload(stream, int(row["seq"]))
                    seqs.append(int(row["seq"]))
        assert seqs == list(range(len(seqs))), f"{stream}: not once, in order, without holes"
        packets |= {(stream, seq) for seq in seqs}
    return packets


def cut(disk: TracingDisk, recording: Path, remaining: Path, behind: int, seed: int) -> set[tuple[str, int]]:
    """Rebuild a possible disk after a power cut; return the packets acknowledged before it."""
    remaining.mkdir()
    remains(disk.log[:behind], recording, remaining, choices(seed))
    return set().union(*(entry.data for entry in disk.log[:behind] if entry.what == "acknowledged"))


def check_every_cut(disk: TracingDisk, recording: Path, tmp_path: Path) -> int:
    for behind in range(len(disk.log) + 1):
        for seed in SEEDS:
            remaining = tmp_path / f"cut-{behind}-{seed}"
            acknowledged = cut(disk, recording, remaining, behind, seed)
            missing = acknowledged - stored(remaining)
            assert not missing, f"cut behind call {behind}: acknowledged and not there: {sorted(missing)}"
    return (len(disk.log) + 1) * len(SEEDS)


def test_nothing_is_acknowledged_before_it_is_on_disk(trace, plan, tmp_path):
    disk = trace(TracingDisk())
    assert stored(Path(plan.path)) == {(stream, seq) for stream in STREAMS for seq in range(COUNT)}
    assert check_every_cut(disk, Path(plan.path), tmp_path) > 500


class NoFolderSync(TracingDisk):
    """A disk whose folder syncs are ignored, like those of a drainer that omits them."""

    def sync_folder(self, path: Path) -> None:
        if path.name != "pv":
            super().sync_folder(path)


class LateSync(TracingDisk):
    """A disk that ignores all syncs, like those of a drainer that acknowledges before fsync."""

    def sync(self, handle: int) -> None:
        pass


@pytest.mark.parametrize("kind", [NoFolderSync, LateSync])
def test_a_drainer_that_does_not_sync_is_caught(trace, plan, tmp_path, kind):
    disk = trace(kind())
    with pytest.raises(Exception, match=r"acknowledged and not there|damaged chunk"):
        check_every_cut(disk, Path(plan.path), tmp_path)


@pytest.mark.parametrize("number", range(4))
def test_a_recording_continues_after_a_power_cut_and_its_ledger_names_the_tail(
    trace, plan, client, tmp_path, number
):
    disk = trace(TracingDisk())
    chance = random.Random(number)
    written = next(n for n, entry in enumerate(disk.log) if entry.what == "sync_folder")
    remaining = tmp_path / "left"
    behind = chance.randrange(written + 1, len(disk.log) + 1)
    acknowledged = cut(disk, Path(plan.path), remaining, behind, number)
    again = replace(plan, uuid=f"after-{number}", path=str(remaining))
    end = COUNT - FORGOTTEN if number % 2 else COUNT
    for stream in STREAMS:
        waiting = min({seq for seq in range(COUNT) if (stream, seq) not in acknowledged}, default=COUNT)
        # The queue's own file may be older than the last acknowledgement: these packets are read again.
        queue_packets(client, again, stream, range(max(0, waiting - 10 * (number % 3)), max(end, waiting)))
    drain(again)
    close_recording(again, Outcome(reason="recovered"), None)
    answer = verify(remaining)
    assert (answer["status"], answer["corrupt"]) == ("WARN", [])
    for stream in STREAMS:
        facts = answer["streams"][stream]
        kept = max([seq for name, seq in acknowledged if name == stream], default=-1) + 1
        assert facts["stored"] == facts["received"] == max(end, kept)
        assert (facts["duplicates"], facts["missing"]) == (0, [])
        assert [gap["cause"] for gap in facts["gaps"]] == ["restart"], "the tail has a name"
        assert facts["gaps"][0]["start_ticks"] == (facts["stored"] - 1) * 480_000
    assert stored(remaining) >= acknowledged
