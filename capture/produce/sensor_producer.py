"""The producer of a plug-in sensor: one process a sensor, one thread a stream.

python -P -m capture.produce.sensor_producer PLAN DEVICE [--spare]
"""

from __future__ import annotations

from capture.plan import Plan, SensorPlan, clock_stream
from capture.process.worker_process import run_process
from capture.produce.device_producer import DeviceProducer
from capture.produce.probe_clock import PROBES_A_ROUND, Ask, ClockProbe
from capture.produce.sensor_recorder import SensorRecorder
from capture.produce.stream_end import Streams
from capture.produce.stream_watch import RateWatch
from sensors.hololens.remote import ClockExchange
from sensors.plugin import Sensor, load_sensor

CLOSE_LIMIT_S = 10.0


class SensorProducer(DeviceProducer):
    """All streams of one plug-in sensor."""

    def __init__(self, plan: Plan, device: SensorPlan) -> None:
        """Load the plug-in and connect to the queue."""
        self._sensor = load_sensor(device.kind, device.settings)
        super().__init__(plan, device.name)
        streams = {
            f"{device.name}/{stream.name}": stream
            for stream in self._sensor.streams()
            if stream.name in device.streams
        }
        together, ask = Streams(), _ask(self._sensor)
        self.recorders = [
            SensorRecorder(name, self._sensor, stream, self.writer(name), self.ledger, together, ask)
            for name, stream in streams.items()
        ]
        self.rates = {
            name: RateWatch(stream.nominal_hz, adaptive=stream.adaptive) for name, stream in streams.items()
        }
        self.probe = (
            ClockProbe(device.name, ask, self.writer(clock_stream(device.name))) if ask is not None else None
        )

    def let_go(self) -> float:
        """Close the sensor, which ends its packets; a plug-in that does not let go is left behind."""
        self._sensor.close()
        return CLOSE_LIMIT_S


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
