"""One stream of a plug-in sensor into the queue: number, queue, open again, and say what happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from capture.ledger import Ledger
from capture.queue import QueuedPacket, QueueWriter
from capture.stream_recorder import QUEUE_PATIENCE_S, StreamState
from capture.stream_watch import StampWatch
from sensors.errors import SensorError
from sensors.host_clock import host_ns
from sensors.plugin import Sensor, SensorPacket, SensorStream

LONGEST_WAIT_S = 2.0
TICKS = range(-(2**63), 2**63)


class SensorRecorder:
    """Runs in a thread of its own; `stop` may be called from any other."""

    def __init__(
        self, name: str, sensor: Sensor, stream: SensorStream, writer: QueueWriter, ledger: Ledger
    ) -> None:
        """`name` is the full one, such as `webcam/video`."""
        self.name, self.stream = name, stream
        self.state = StreamState()
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
        self._ending.set()

    def is_alive(self) -> bool:
        """Tell whether the stream is still being received."""
        return self._thread.is_alive()

    def _run(self) -> None:
        self._seq = self.state.received = self._writer.next_sequence()
        reason, wait_s = "stopped", 0.0
        while not self._ending.wait(wait_s):
            received = self._seq
            try:
                self._one_opening()
            except Exception as error:  # noqa: BLE001 (a plug-in may raise anything; it is noted and opened again)
                self._closed(error)
                wait_s = 0.25 if self._seq > received else min(max(2 * wait_s, 0.25), LONGEST_WAIT_S)
                continue
            reason = "stopped" if self._ending.is_set() else "ended_by_device"
            break
        self.state.state = self.state.ended = reason
        self._ledger.note("end", self.name, self._patience(), reason=reason, received=self._seq)

    def _one_opening(self) -> None:
        self.state.connections += 1
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
        self._seq += 1
        state = self.state
        state.received = self._seq
        state.bytes += len(packet.payload)
        state.last_host_ns = now_ns
        state.first_host_ns = state.first_host_ns or now_ns
        state.state = "streaming"

    def _closed(self, error: Exception) -> None:
        text = str(error) if isinstance(error, SensorError) else f"{type(error).__name__}: {error}"
        self.state.state, self.state.problem = "reconnecting", text
        self._ledger.note(
            "closed", self.name, self._patience(), cause="reconnect", next_seq=self._seq, why=text
        )

    def _patience(self) -> Callable[[], bool]:
        end_s = time.monotonic() + QUEUE_PATIENCE_S
        return lambda: time.monotonic() > end_s
