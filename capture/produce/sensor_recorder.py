"""One stream of a plug-in sensor into the queue: number, queue, open again, and say what happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from capture.produce.notes import Ledger
from capture.produce.probe_clock import Ask
from capture.produce.receiver import QUEUE_PATIENCE_S
from capture.produce.stream_end import DECIDE_NS, SILENT_NS, Streams, StreamState, end_of
from capture.produce.stream_watch import QUIET_PERIODS, StampWatch
from capture.queue.stream_queue import QueuedPacket, QueueWriter
from sensors.errors import SensorError
from sensors.host_clock import host_ns
from sensors.plugin import Sensor, SensorPacket, SensorStream

LONGEST_WAIT_S = 2.0
LOOK_S = 0.25
HELD_NS = 1_000_000_000
"""A packet for which the queue takes so long was held up by it."""
ASK_TRIES = 3
TICKS = range(-(2**63), 2**63)


class SensorRecorder:
    """Runs in a thread of its own; `stop` may be called from any other."""

    def __init__(
        self,
        name: str,
        sensor: Sensor,
        stream: SensorStream,
        writer: QueueWriter,
        ledger: Ledger,
        streams: Streams,
        ask: Ask | None = None,
    ) -> None:
        """`name` is the full one, such as `webcam/video`; `ask` asks the device for its time, where it has one."""
        self.name, self.stream = name, stream
        self.state = StreamState()
        streams.add(name, self.state)
        self._streams, self._ask = streams, ask
        self._stopped_ns, self._missed = 0, ""
        self._sensor, self._writer, self._ledger = sensor, writer, ledger
        self._ending = threading.Event()
        self._seq = 0
        self._stamps = StampWatch()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start receiving."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the end; the sensor's `close` is called by who owns it."""
        self._stopped_ns = self._stopped_ns or host_ns()
        self._ending.set()

    def is_alive(self) -> bool:
        """Tell whether the stream is still being received."""
        return self._thread.is_alive()

    def _run(self) -> None:
        self._seq = self.state.received = self._writer.next_sequence()
        self.state.away = "restart" if self._seq else ""
        wait_s = 0.0
        while not self._ending.wait(wait_s) and not self.state.closed_host_ns:
            received = self._seq
            try:
                self._one_opening()
                if not self._ending.is_set():
                    self._look_for_end()
            except Exception as error:  # noqa: BLE001 (a plug-in may raise anything; it is noted and opened again)
                if self._ending.is_set():
                    break  # closing a sensor may make it raise
                self._closed(error)
            wait_s = 0.25 if self._seq > received else min(max(2 * wait_s, 0.25), LONGEST_WAIT_S)
        period_ns = 1e9 / self.stream.nominal_hz if self.stream.nominal_hz else float("inf")
        end = end_of(self.state, self._missed, self._stopped_ns, SILENT_NS + QUIET_PERIODS * period_ns)
        self.state.state = self.state.ended = str(end["reason"])
        self._ledger.note("end", self.name, self._patience(), received=self._seq, **end)

    def _look_for_end(self) -> None:
        """See whether the device ended the stream, as its plug-in says. Raises SensorError when it did not."""
        closed_ns, before = host_ns(), self.state.away
        self.state.away, self.state.state = before or "reconnect", "reconnecting"
        if why := self._why_gone():
            raise SensorError(why)
        while self._streams.others_come(self.name) and host_ns() < closed_ns + DECIDE_NS:
            if self._streams.outlived(self.name, closed_ns) or self._ending.wait(LOOK_S):
                break
        if self._streams.outlived(self.name, closed_ns, stopping=self._ending.is_set()):
            raise SensorError("the device ended it while its other streams go on")
        self._missed, self.state.closed_host_ns = before, closed_ns

    def _why_gone(self) -> str:
        """Say why the device does not answer elsewhere than at its streams, "" when it does or cannot be asked."""
        why = ""
        for _ in range(ASK_TRIES if self._ask is not None else 0):
            try:
                assert self._ask is not None
                self._ask()
            except Exception as error:  # noqa: BLE001 (a plug-in may raise anything)
                why = f"the device does not answer ({error})"
            else:
                return ""
        return why

    def _one_opening(self) -> None:
        self.state.connections += 1
        self.state.state = "connected"
        connection = self.state.connections
        self._stamps = StampWatch()
        self._ledger.note("connected", self.name, self._patience(), connection=connection, next_seq=self._seq)
        for packet in self._sensor.packets(self.stream.name):
            self._store(packet)
            if self._ending.is_set():
                return

    def _store(self, packet: SensorPacket) -> None:
        now_ns = host_ns()
        if len(packet.payload) > self.stream.max_payload_bytes or packet.device_ticks not in TICKS:
            raise SensorError(f"a packet of {len(packet.payload)} bytes, stamp {packet.device_ticks}")
        queued = QueuedPacket(
            self._seq, packet.device_ticks, now_ns, self.state.connections, bytes(packet.payload), 0
        )
        if flag := self._stamps.flag(packet.device_ticks, now_ns):
            facts = {"flag": flag[0], "seq": self._seq, "ticks": packet.device_ticks}
            self._ledger.note("stamp", self.name, self._patience(), **facts)
        if not self._writer.put([queued], self._patience()):
            self.state.losses += 1
            self._ledger.note(
                "declared_loss", self.name, self._patience(), first_seq=self._seq, last_seq=self._seq
            )
        if (end_ns := host_ns()) - now_ns > HELD_NS:
            facts = {"cause": "backpressure", "start_host_ns": now_ns, "end_host_ns": end_ns}
            self._ledger.note("held", self.name, self._patience(), **facts)
        self._seq += 1
        state = self.state
        if state.away:
            state.away = state.fault = state.problem = ""
        state.received = self._seq
        state.bytes += len(packet.payload)
        state.last_host_ns, state.last_ticks = now_ns, packet.device_ticks
        state.first_host_ns = state.first_host_ns or now_ns
        state.state = "streaming"

    def _closed(self, error: Exception) -> None:
        text = str(error) if isinstance(error, SensorError) else f"{type(error).__name__}: {error}"
        self.state.state, self.state.problem = "reconnecting", text
        self.state.fault = self.state.fault or text
        self.state.away = self.state.away or "reconnect"
        if over_ns := self._streams.over_since(self.name):
            self._missed, self.state.closed_host_ns = self.state.away, over_ns
        self._ledger.note(
            "closed", self.name, self._patience(), cause="reconnect", next_seq=self._seq, why=text
        )

    def _patience(self) -> Callable[[], bool]:
        end_s = time.monotonic() + QUEUE_PATIENCE_S
        return lambda: time.monotonic() > end_s
