"""The producer of one device: its stream recorders, clock probe, ledger and health."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kitchensync.capture.drain.open_chunk import sealed_until
from kitchensync.capture.errors import StreamsFailed
from kitchensync.capture.plan import Plan, clock_stream, has_own_queue, ledger_stream
from kitchensync.capture.process.health import HealthSender
from kitchensync.capture.process.heartbeat import was_paused
from kitchensync.capture.process.log import log_warning
from kitchensync.capture.process.pause import Pause, PauseThread
from kitchensync.capture.produce.device import Device
from kitchensync.capture.produce.headset_device import HeadsetDevice
from kitchensync.capture.produce.ledger_writer import Ledger
from kitchensync.capture.produce.plugin_device import PluginDevice
from kitchensync.capture.produce.probe_clock import ClockProbe
from kitchensync.capture.produce.stream_end import Streams
from kitchensync.capture.produce.stream_recorder import StreamRecorder
from kitchensync.capture.produce.stream_watch import STREAMING, RateWatch
from kitchensync.capture.queue.pipe import QueuePipe
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import ENTRY_PACKETS
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.chunks.chunk_reader import chunk_paths
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.ledger import (
    BY_DEVICE,
    LOST,
    STOPPED,
    SUSPEND,
    ConditionNote,
    HeldNote,
    QueueLossNote,
)
from kitchensync.storage.names import stream_folder

HEALTH_PERIOD_S = 0.25  # far below MIN_SILENT_S: silence is judged from these reports

SETTLED_NS = 1_000_000_000  # four beats of the recorder, which has noted its own pause by then

SYNC_LIMIT_S = 3.0
"""The queue server syncs its file once a second; on a slow disk a sync may take about as long."""


class Producer:
    """All streams of one device."""

    def __init__(self, plan: Plan, name: str, make: Callable[[Ledger], Device]) -> None:
        """Connect to the queue, not yet to the device."""
        self._plan = plan
        self._epoch_ms = time.time_ns() // 1_000_000
        self._ending = threading.Event()
        self._pauses = PauseThread()
        self._unsettled_pauses: list[Pause] = []
        self._writers: list[QueueWriter] = []
        self._health = HealthSender(plan.health, f"producer {name}")
        notes = connect(plan.queue_url)
        self.ledger = Ledger(notes, plan.uuid, ledger_stream(name), self._epoch_ms)
        self.device, streams = make(self.ledger), Streams()
        self.recorders: list[StreamRecorder] = []
        self.rates: dict[str, RateWatch] = {}
        for source in self.device.sources:
            stream = f"{name}/{source.stream.name}"
            writer, is_own = self.writer(stream, self.device.pipe), has_own_queue(plan)
            self.recorders.append(
                StreamRecorder(stream, source, writer, self.ledger, streams, has_own_queue=is_own)
            )
            rate_hz = self.device.rate_hz(source.stream)
            self.rates[stream] = RateWatch(rate_hz, adaptive=source.stream.adaptive)
        ask = self.device.ask
        self.probe = None if ask is None else ClockProbe(name, ask, self.writer(clock_stream(name)))

    def writer(self, stream: str, pipe: QueuePipe | None = None) -> QueueWriter:
        """Return a writer that queues one stream over a shared pipe or its own, and notes losses in the queue."""
        client = connect(self._plan.queue_url)

        def on_loss(first_seq: int, last_seq: int) -> None:
            try:
                first_unsealed = sealed_until(chunk_paths(stream_folder(Path(self._plan.path), stream)))
            except (BadChunk, OSError) as error:
                log_warning("sealed packets are not known", stream=stream, error=str(error))
                first_unsealed = 0
            first_seq = max(first_seq, first_unsealed)
            if first_seq <= last_seq:
                self.ledger.note(QueueLossNote(first_seq=first_seq, last_seq=last_seq), stream)

        # An entry is deleted as a whole, and packets withheld by a pause must not wait for those after them.
        entry_packets = 1 if self._plan.pause == "drop" else ENTRY_PACKETS
        writer = QueueWriter(client, self._plan.uuid, stream, self._epoch_ms, on_loss, pipe, entry_packets)
        self._writers.append(writer)
        return writer

    def end(self) -> None:
        """End after all received packets are queued."""
        self._ending.set()

    def run(self) -> None:
        """Receive until every stream has ended or `end` was called. Raises StreamsFailed if any ended by an error."""
        self.device.start()
        for recorder in self.recorders:
            recorder.start()
        limit_s: float | None = None
        self._pauses.start()
        while any(recorder.is_alive() for recorder in self.recorders):
            if self._ending.wait(HEALTH_PERIOD_S):
                limit_s = self._stop_all() if limit_s is None else limit_s
                time.sleep(0.02)
                if time.monotonic() > limit_s:
                    break  # a hanging recorder has queued its packets; its thread ends with this process
            self._note_holds(SETTLED_NS)
            self._begin_probes()
            self._send_health(done=False)
        self._pauses.stop()
        self._note_holds(0)
        self._check_ends()
        if self.probe is not None and self.probe.ident is not None:
            self.probe.stop()
            self.probe.join(timeout=10)
        self.device.switch_off()
        self.device.stop()
        # Wait until the queue server has synced everything, because nobody could send it again after our end.
        end_s = time.monotonic() + SYNC_LIMIT_S
        for writer in self._writers:
            writer.pipe.wait_for_sync(end_s - time.monotonic())
        self.ledger.wait_for_sync(end_s - time.monotonic())
        self._send_health(done=True)
        self._health.close()

    def _check_ends(self) -> None:
        failed = [
            recorder.name
            for recorder in self.recorders
            if recorder.state.ended not in (STOPPED, BY_DEVICE, LOST)
        ]
        if failed and not self._ending.is_set():
            self._send_health(done=False)
            self._health.close()
            raise StreamsFailed(failed)

    def _stop_all(self) -> float:
        if self.probe is not None:
            self.probe.stop()
        for recorder in self.recorders:
            recorder.stop()
        return time.monotonic() + self.device.end_sources()

    def _begin_probes(self) -> None:
        """Start the clock probe with the first packet; before, the device is busy starting its sensors."""
        probe = self.probe
        if probe is None or probe.ident is not None or self._ending.is_set():
            return
        if any(recorder.state.first_host_ns for recorder in self.recorders):
            probe.start()

    def _note_holds(self, settled_ns: int) -> None:
        """Note times in which nothing was received, with the cause.

        A pause is noted `settled_ns` after its end: by then the supervisor has noted whether it paused as well.
        """
        for start_ns, end_ns in self.device.queue_stalls():
            self._note_hold("backpressure", start_ns, end_ns)
        self._unsettled_pauses += self._pauses.take_new()
        settled = [pause for pause in self._unsettled_pauses if host_ns() - pause.end_ns >= settled_ns]
        for pause in settled:
            self._unsettled_pauses.remove(pause)
            is_suspend = pause.slept or was_paused(Path(self._plan.work), pause.start_ns, pause.end_ns)
            self._note_hold(SUSPEND if is_suspend else "restart", pause.start_ns, pause.end_ns)

    def _note_hold(self, cause: str, start_ns: int, end_ns: int) -> None:
        note = HeldNote(cause=cause, start_host_ns=start_ns, end_host_ns=end_ns)
        for recorder in self.recorders:
            self.ledger.note(note, recorder.name, lambda: True)

    def _send_health(self, *, done: bool) -> None:
        streams = {recorder.name: self._shown(recorder) for recorder in self.recorders}
        probe = self.probe
        clock = {"probes": probe.probes, "answered_host_ns": probe.answered_host_ns} if probe else {}
        vanished_ns = max((writer.pipe.vanished_ns for writer in self._writers), default=0)
        self._health.send(streams=streams, done=done, vanished_ns=vanished_ns, **clock)

    def _shown(self, recorder: StreamRecorder) -> dict[str, Any]:
        """Return a stream's state for the supervisor; a change of its rate condition is noted in the ledger."""
        watch, state = self.rates[recorder.name], recorder.state
        facts = asdict(state) | {"nominal_hz": watch.nominal_hz, "adaptive": watch.adaptive}
        if facts["state"] != STREAMING:
            return facts
        changed = watch.update(host_ns(), state.received, state.last_host_ns)
        if changed is not None:
            note = ConditionNote(condition=changed, received=state.received, last_host_ns=state.last_host_ns)
            self.ledger.note(note, recorder.name, lambda: True)
        return facts | {"state": watch.condition, "rate_hz": round(watch.rate_hz, 1)}


def producer_of(plan: Plan, name: str) -> Producer:
    """Return the producer of one device of a plan."""
    headsets = {headset.name: headset for headset in plan.headsets}
    if name in headsets:
        return Producer(plan, name, lambda ledger: HeadsetDevice(plan, headsets[name], ledger))
    sensor = next(sensor for sensor in plan.sensors if sensor.name == name)
    return Producer(plan, name, lambda ledger: PluginDevice(sensor))
