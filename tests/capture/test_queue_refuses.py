"""A queue server that refuses writes: its message is shown, writes are retried, and no disk is blamed."""

from __future__ import annotations

import json
import signal
import threading
from typing import Any

import pytest
from queue_contents import numbers_in_queue
from refusing_server import REFUSALS, refusing_server
from rehearsal.stage import record_command, recorder
from waiting import until

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.monitor.monitor import RecordingMonitor
from kitchensync.capture.monitor.rules import ALARM
from kitchensync.capture.produce.stream_end import Streams
from kitchensync.capture.produce.stream_recorder import StreamRecorder, StreamSource
from kitchensync.capture.queue.dry_run import check_server
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.capture.served_kitchen import simulator
from kitchensync.capture.session import alarms
from kitchensync.capture.session.alarms import QueueWatch
from kitchensync.sensors.plugin import SensorStream
from kitchensync.storage.ledger import DeclaredLossNote, LossNote, Note, QueueLossNote, read_note, written

FULL_DISK = "MISCONF Errors writing to the AOF file: No space left on device"


@pytest.fixture
def refusing(tmp_path):
    with refusing_server(tmp_path / "queue") as server:
        yield server


def packets(*seqs: int) -> list[QueuedPacket]:
    return [QueuedPacket(seq, seq, seq, 1, b"x", 0) for seq in seqs]


@pytest.mark.slow
@pytest.mark.parametrize("kind", REFUSALS)
def test_packets_wait_for_a_server_that_refuses_and_are_stored_once(refusing, kind):
    writer = QueueWriter(connect(refusing.url), "u", "s", 7)
    assert writer.put(packets(0, 1), lambda: False) == 2
    refusing.refuse(kind)
    assert writer.put(packets(2), lambda: bool(writer.pipe.refusal)) == 0
    assert writer.pipe.refusal.startswith(kind)
    waits = threading.Thread(target=writer.put, args=(packets(2, 3), lambda: False))
    waits.start()
    refusing.heal(kind)
    waits.join(60)
    assert numbers_in_queue(refusing.admin, "u", "s") == [0, 1, 2, 3]
    assert writer.put(packets(4), lambda: False) == 1
    assert writer.pipe.refusal == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refusing_server_is_detected_and_its_time_measured(refusing, kind, monkeypatch):
    monkeypatch.setattr(alarms, "PERIOD_S", 0.02)
    watch = QueueWatch(refusing.url)
    watch.start()
    refusing.refuse(kind)
    until(lambda: watch.refusal.startswith(kind), "the message of the server")
    until(lambda: watch.waits_s > 0, "the measured time")
    assert watch.silent_s == 0.0
    refusing.heal(kind)
    until(lambda: watch.refusal == "", "its recovery")
    assert watch.held_s > 0
    assert refusing.admin.keys("*") == []
    watch.stop()


@pytest.mark.slow
@pytest.mark.parametrize("kind", REFUSALS)
def test_nothing_is_recorded_with_a_refusing_server(refusing, kind):
    refusing.refuse(kind)
    with pytest.raises(QueueUnavailable, match=kind if kind != "OOM" else "memory"):
        check_server(refusing.url)


class Source(StreamSource):
    """A source without packets."""

    stream = SensorStream("s", nominal_hz=50)


class Notes:
    """A ledger in memory."""

    def __init__(self) -> None:
        self.losses: list[LossNote] = []

    def note(self, note: Note, stream: str, give_up: Any = None) -> None:
        if isinstance(note, LossNote):
            self.losses.append(note)


@pytest.mark.parametrize(
    ("message", "has_own_queue", "kind"),
    [
        ("OOM command not allowed", True, QueueLossNote),
        (FULL_DISK, False, QueueLossNote),
        (FULL_DISK, True, DeclaredLossNote),
        ("", False, DeclaredLossNote),
    ],
)
def test_a_loss_is_attributed_to_the_queue_if_its_server_refused(client, message, has_own_queue, kind):
    notes, writer = Notes(), QueueWriter(client, "u", "s", 7)
    taken = StreamRecorder("s", Source(), writer, notes, Streams(), has_own_queue=has_own_queue)
    writer.pipe.refusal = message
    taken.queued(packets(0, 1, 2), [(1, 2)])
    (loss,) = notes.losses
    assert loss == kind(first_seq=1, last_seq=2, why=message or None)
    assert message in taken.state.problem
    assert read_note(written(loss, "s", 5).line().encode()) == written(loss, "s", 5)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(400)
def test_a_recording_continues_when_its_server_accepts_writes_again(tmp_path, monkeypatch):
    """All four kinds of refusal in one recording; every packet is accounted for, and no disk is reported full."""
    monitor = RecordingMonitor()

    def refusals() -> list[dict[str, Any]]:
        views = monitor.views("take")
        return [
            finding for view in views for finding in view["findings"] if finding["rule"] == "queue_refuses"
        ]

    def stored() -> dict[str, int]:
        return {name: facts.get("stored", 0) for name, facts in taking.state()["streams"].items()}

    def go_on() -> bool:
        now = stored()
        return all(now[name] > count for name, count in before.items())

    with simulator(tmp_path, 5, 900) as kitchen, refusing_server(tmp_path / "queue") as server:
        monkeypatch.setenv("XDG_RUNTIME_DIR", kitchen.environment["XDG_RUNTIME_DIR"])
        options = ("--redis", server.url, "--streams", "gyroscope,accelerometer,magnetometer")
        command = record_command(kitchen, tmp_path / "data", 900, *options)
        with recorder(command, tmp_path, kitchen.environment) as taking:
            taking.wait_for_all()
            for kind in REFUSALS:
                before = stored()
                server.refuse(kind)
                alarms = until(refusals, kind)
                assert f"the queue server refuses writes: {kind}" in alarms[0]["operator"]
                assert alarms[0]["severity"] == ALARM
                assert taking.state()["phase"] == "recording"
                server.heal(kind)
                until(lambda: not refusals(), f"the end of {kind}")
                until(go_on, "packets that are stored again")
            assert taking.state()["restarts"] == []
            taking.process.send_signal(signal.SIGINT)
            answer = json.loads(taking.output())
        assert server.admin.keys("*") == []
    assert answer["ended"] == "signal"
    for name, facts in answer["streams"].items():
        missing = sum(last - first + 1 for first, last in facts["missing"])
        assert (facts["received"], facts["duplicates"]) == (facts["stored"] + missing, 0), name
        assert not {gap["cause"] for gap in facts["gaps"]} & {"no_space", "declared_loss"}, name
    assert not any("disk" in reason for reason in answer["reasons"])
    notes = [note for note in answer["notes"] if "the queue server refused writes for a while" in note]
    assert all(any(f": {kind}" in note for note in notes) for kind in REFUSALS), notes
