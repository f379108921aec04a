"""Asks a headset for its time, again and again, and records question and answer as a stream."""

from __future__ import annotations

import threading

from capture.queue import QueuedPacket, QueueWriter
from sensors.clock_probe import encode
from sensors.errors import SensorError
from sensors.hololens.remote import RemoteControl

FIRST_PROBES = 10
FIRST_PERIOD_S = 0.05
PERIOD_S = 1.0


class ClockProbe(threading.Thread):
    """One headset's probes, until stopped; a lost connection is made again."""

    def __init__(self, host: str, writer: QueueWriter) -> None:
        """`writer` belongs to this thread alone."""
        super().__init__(name=f"clock {host}", daemon=True)
        self._host = host
        self._writer = writer
        self._ending = threading.Event()
        self.probes = 0

    def stop(self) -> None:
        """Ask the end."""
        self._ending.set()

    def run(self) -> None:
        """Probe until stopped."""
        seq = self._writer.next_sequence()
        while not self._ending.is_set():
            try:
                with RemoteControl(self._host) as remote:
                    while not self._ending.wait(FIRST_PERIOD_S if self.probes < FIRST_PROBES else PERIOD_S):
                        seq = self._probe(remote, seq)
            except SensorError:
                self._ending.wait(PERIOD_S)  # the streams tell of the lost network; probes just go on later

    def _probe(self, remote: RemoteControl, seq: int) -> int:
        answer = remote.clock_exchange(with_utc=True)
        record = encode(
            answer.host_send_ns, answer.host_receive_ns, answer.device_ticks, answer.utc_filetime or 0
        )
        packet = QueuedPacket(seq, answer.device_ticks, answer.host_receive_ns, 1, record, 0)
        if not self._writer.put(packet, self._ending.is_set):
            return seq
        self.probes += 1
        return seq + 1
