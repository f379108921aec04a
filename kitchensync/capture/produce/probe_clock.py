"""Probe a device's clock periodically and record the exchanges as a stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.remote import ClockExchange, RemoteControl
from kitchensync.shell.host_clock import encode, host_ns

PERIOD_S = 1.0
"""Period of the rounds: the error bound of the clock is derived for one exchange a second."""

MIN_PAUSE_S = 0.1  # on a slow network rounds must not follow each other without a pause

PROBES_PER_ROUND = 5
"""Several in a row: the exchange with the shortest round trip is the most accurate."""


Ask = Callable[[], list[ClockExchange]]
"""Reads a device's clock a few times in a row. Raises SensorError."""


def ask_headset(host: str, remote_lock: threading.Lock) -> Ask:
    """Return a function that probes a headset over a new connection; its port serves one client at a time."""

    def ask() -> list[ClockExchange]:
        with remote_lock, RemoteControl(host) as remote:
            return [remote.clock_exchange(with_utc=True) for _ in range(PROBES_PER_ROUND)]

    return ask


class ClockProbe(threading.Thread):
    """Thread that probes one device until stopped."""

    def __init__(self, device: str, ask: Ask, writer: QueueWriter) -> None:
        """Prepare the thread; only this thread may use `writer`."""
        super().__init__(name=f"clock {device}", daemon=True)
        self._ask = ask
        self._writer = writer
        self._ending = threading.Event()
        self.probes = 0
        self.answered_host_ns = 0
        """Time of the last answer, before the first one the start of probing."""

    def stop(self) -> None:
        """Let the thread end."""
        self._ending.set()

    def run(self) -> None:
        """Probe until stopped."""
        self.answered_host_ns = host_ns()
        seq = self._writer.next_sequence()
        due_s = time.monotonic()
        while not self._ending.is_set():
            try:
                answers = self._ask()
            except SensorError:
                answers = []  # the streams report the lost network
            for answer in answers:
                seq = self._store(answer, seq)
            now_s = time.monotonic()
            due_s = next_round_s(due_s, now_s)
            self._ending.wait(due_s - now_s)

    def _store(self, answer: ClockExchange, seq: int) -> int:
        record = encode(
            answer.host_send_ns, answer.host_receive_ns, answer.device_ticks, answer.utc_filetime or 0
        )
        packet = QueuedPacket(seq, answer.device_ticks, answer.host_receive_ns, 1, record, 0)
        stored = self._writer.put([packet], self._ending.is_set)
        self.probes += stored
        self.answered_host_ns = answer.host_receive_ns
        return seq + stored


def next_round_s(due_s: float, now_s: float) -> float:
    """Return the start of the round after the one due at `due_s`, so that slow answers do not make rounds rarer."""
    return max(due_s + PERIOD_S, now_s + MIN_PAUSE_S)
