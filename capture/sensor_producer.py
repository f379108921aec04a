"""The producer of a plug-in sensor: one process a sensor, one thread a stream.

python -P -m capture.sensor_producer PLAN DEVICE [--spare]
"""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from typing import Any

from capture import queue
from capture.clock_probe import PROBES_A_ROUND, Ask, ClockProbe
from capture.health import HealthSender
from capture.ledger import Ledger
from capture.plan import Plan, SensorPlan, clock_stream, ledger_stream
from capture.sensor_recorder import SensorRecorder
from capture.stream_watch import STREAMING, RateWatch
from capture.worker_process import run_process
from sensors.hololens.remote import ClockExchange
from sensors.host_clock import host_ns
from sensors.plugin import Sensor, load_sensor

HEALTH_PERIOD_S = 0.25
CLOSE_LIMIT_S = 10.0


class SensorProducer:
    """All streams of one plug-in sensor."""

    def __init__(self, plan: Plan, device: SensorPlan) -> None:
        """Load the plug-in and connect to the queue."""
        self._plan, self._epoch_ms = plan, time.time_ns() // 1_000_000
        self._ending = threading.Event()
        self._sensor = load_sensor(device.kind, device.settings)
        self._health = HealthSender(plan.health, f"producer {device.name}")
        notes = queue.connect(plan.queue_url)
        self._ledger = Ledger(notes, plan.uuid, ledger_stream(device.name), self._epoch_ms)
        streams = [stream for stream in self._sensor.streams() if stream.name in device.streams]
        self._recorders = [
            SensorRecorder(
                f"{device.name}/{stream.name}",
                self._sensor,
                stream,
                self._writer(f"{device.name}/{stream.name}"),
                self._ledger,
            )
            for stream in streams
        ]
        self._rates = {
            r.name: RateWatch(r.stream.nominal_hz, adaptive=r.stream.adaptive) for r in self._recorders
        }
        self._probe = self._clock_probe(device.name)

    def _writer(self, stream: str) -> queue.QueueWriter:
        client = queue.connect(self._plan.queue_url)

        def on_loss(first_seq: int, last_seq: int) -> None:
            self._ledger.note("queue_loss", stream, first_seq=first_seq, last_seq=last_seq)

        return queue.QueueWriter(client, self._plan.uuid, stream, self._epoch_ms, on_loss)

    def _clock_probe(self, device: str) -> ClockProbe | None:
        ask = _ask(self._sensor)
        return ClockProbe(device, ask, self._writer(clock_stream(device))) if ask else None

    def end(self, *_: object) -> None:
        """Ask the end: what has been received goes into the queue first."""
        self._ending.set()

    def run(self) -> None:
        """Receive until every stream has ended or the end is asked."""
        for recorder in self._recorders:
            recorder.start()
        if self._probe is not None:
            self._probe.start()
        limit_s: float | None = None
        while any(recorder.is_alive() for recorder in self._recorders):
            if self._ending.wait(HEALTH_PERIOD_S):
                limit_s = limit_s or self._stop_all()
                time.sleep(0.02)
                if time.monotonic() > limit_s:
                    break  # a plug-in that does not let go: its packets are queued, its thread dies with us
            self._tell(done=False)
        if self._probe is not None:
            self._probe.stop()
            self._probe.join(timeout=10)
        self._tell(done=True)
        self._health.close()

    def _stop_all(self) -> float:
        for recorder in self._recorders:
            recorder.stop()
        self._sensor.close()
        return time.monotonic() + CLOSE_LIMIT_S

    def _tell(self, *, done: bool) -> None:
        streams = {recorder.name: self._shown(recorder) for recorder in self._recorders}
        self._health.send(streams=streams, probes=self._probe.probes if self._probe else 0, done=done)

    def _shown(self, recorder: SensorRecorder) -> dict[str, Any]:
        facts, state = asdict(recorder.state), recorder.state
        if state.state != STREAMING:
            return facts
        watch = self._rates[recorder.name]
        if changed := watch.look(host_ns(), state.received, state.last_host_ns):
            self._ledger.note("condition", recorder.name, lambda: True, condition=changed)
        return facts | {"state": watch.condition}


def _ask(sensor: Sensor) -> Ask | None:
    exchange = getattr(sensor, "clock_exchange", None)
    if exchange is None:
        return None
    return lambda: [ClockExchange(*exchange()) for _ in range(PROBES_A_ROUND)]


def producer_of(plan: Plan, device: str) -> SensorProducer:
    """Make the producer of one plug-in sensor of a plan."""
    return SensorProducer(plan, next(sensor for sensor in plan.sensors if sensor.name == device))


if __name__ == "__main__":
    run_process(producer_of)
