"""A plug-in sensor as a producer runs it: each stream yields packets in the thread of its recorder."""

from __future__ import annotations

from kitchensync.capture.plan import SensorPlan
from kitchensync.capture.produce.device import Device
from kitchensync.capture.produce.probe_clock import PROBES_PER_ROUND, Ask
from kitchensync.capture.produce.stream_end import SILENT_NS
from kitchensync.capture.produce.stream_recorder import StreamRecorder, StreamSource
from kitchensync.capture.produce.stream_watch import QUIET_PERIODS
from kitchensync.sensors.errors import PacketsEnded, SensorError
from kitchensync.sensors.hololens.remote import ClockExchange
from kitchensync.sensors.hololens.wire import SIGNED_HEADER
from kitchensync.sensors.plugin import Sensor, SensorPacket, load_sensor
from kitchensync.sensors.stream import SensorStream
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.ledger import HeldNote

CLOSE_LIMIT_S = 10.0  # below PRODUCER_END_S, after which the supervisor kills the producer
ASK_TRIES = 3  # one lost answer must not count as a device that is gone
TICKS = range(-(2**63), 2**63)
HELD_NS = 1_000_000_000
"""Time to queue a packet from which on the delay is noted as backpressure."""


class PluginSource(StreamSource):
    """One stream of a plug-in sensor."""

    cause = "reconnect"
    tells_refusal = False

    def __init__(self, stream: SensorStream, sensor: Sensor, ask: Ask | None) -> None:
        """Store the sensor; `ask` reads the device's clock, if it has one."""
        self.stream, self._sensor, self._ask = stream, sensor, ask
        period_ns = 1e9 / stream.nominal_hz if stream.nominal_hz else float("inf")
        self.silent_ns = SILENT_NS + QUIET_PERIODS * period_ns

    def receive(self, recorder: StreamRecorder) -> None:
        """Queue the packets of the plug-in. Raises PacketsEnded, and any error of the plug-in as SensorError."""
        try:
            for packet in self._sensor.packets(self.stream.name):
                self._queue(packet, recorder)
                if recorder.is_ending:
                    return
        except SensorError:
            if not recorder.is_ending:  # closing a sensor may make it raise
                raise
        except Exception as error:  # a plug-in may raise anything; the error is noted and the stream reopened
            if not recorder.is_ending:
                raise SensorError(f"{type(error).__name__}: {error}") from error
        else:
            if not recorder.is_ending:
                raise PacketsEnded(self.stream.name)

    def _queue(self, packet: SensorPacket, recorder: StreamRecorder) -> None:
        arrived_ns = host_ns()
        if len(packet.payload) > self.stream.max_payload_bytes or packet.device_ticks not in TICKS:
            raise SensorError(f"a packet of {len(packet.payload)} bytes, stamp {packet.device_ticks}")
        header = SIGNED_HEADER.pack(packet.device_ticks, len(packet.payload))
        packets = recorder.packets([memoryview(header + packet.payload)], arrived_ns)
        seq = packets[0].seq
        stored = recorder.writer.put(packets, recorder.may_wait())
        recorder.queued(packets, [] if stored else [(seq, seq)])
        if (end_ns := host_ns()) - arrived_ns > HELD_NS:
            recorder.note(HeldNote(cause="backpressure", start_host_ns=arrived_ns, end_host_ns=end_ns))

    def unreachable_reason(self) -> str:
        """Return why the device's clock does not answer, "" if it does or the device has none."""
        if self._ask is None:
            return ""
        why = ""
        for _ in range(ASK_TRIES):
            try:
                self._ask()
            except Exception as error:  # noqa: BLE001 (a plug-in may raise anything)
                why = f"the device does not answer ({error})"
            else:
                return ""
        return why


class PluginDevice(Device):
    """All streams of one plug-in sensor."""

    def __init__(self, plan: SensorPlan) -> None:
        """Load the plug-in. Raises NoSuchSensor, BadSensor."""
        self._sensor = load_sensor(plan.kind, plan.settings)
        exchange = getattr(self._sensor, "clock_exchange", None)
        self.ask = exchange and (lambda: [ClockExchange(*exchange()) for _ in range(PROBES_PER_ROUND)])
        self.sources = [
            PluginSource(stream, self._sensor, self.ask)
            for stream in self._sensor.streams()
            if stream.name in plan.streams
        ]

    def end_sources(self) -> float:
        """Close the sensor, which ends its packets."""
        self._sensor.close()
        return CLOSE_LIMIT_S
