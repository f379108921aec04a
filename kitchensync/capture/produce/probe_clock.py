"""Asks a headset for its time, again and again, and records question and answer as a stream."""

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
"""From the beginning of one round to that of the next: the clock's bound is proven for one exchange a second."""

LEAST_PAUSE_S = 0.1

PROBES_A_ROUND = 5
"""Several in a row: the one with the shortest round trip says most."""


Ask = Callable[[], list[ClockExchange]]
"""Asks a device for its time, a few times in a row. Raises SensorError."""


def ask_headset(host: str, remote_lock: threading.Lock) -> Ask:
    """Ask over a connection of its own each round: the port serves one client at a time, hence the lock."""

    def ask() -> list[ClockExchange]:
        with remote_lock, RemoteControl(host) as remote:
            return [remote.clock_exchange(with_utc=True) for _ in range(PROBES_A_ROUND)]

    return ask


class ClockProbe(threading.Thread):
    """One device's probes, until stopped; a lost connection is made again."""

    def __init__(self, device: str, ask: Ask, writer: QueueWriter) -> None:
        """`writer` belongs to this thread alone."""
        super().__init__(name=f"clock {device}", daemon=True)
        self._ask = ask
        self._writer = writer
        self._ending = threading.Event()
        self.probes = 0
        self.answered_host_ns = 0  # or since when it is asked

    def stop(self) -> None:
        """Ask the end."""
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
                answers = []  # the streams tell of the lost network; probes just go on later
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
    """Report when the round after the one that was due at `due_s` begins: slow answers do not make rounds rarer."""
    return max(due_s + PERIOD_S, now_s + LEAST_PAUSE_S)
