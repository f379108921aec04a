"""Plug-in sensors: anything that yields packets with times becomes a stream like those of the headset.

A package announces its sensor as an entry point of the group `kitchensync.sensors`: a callable that takes the table
of `rig.toml` (`[sensor.NAME]` without `kind`) and returns a `Sensor`. Examples: `examples/plugins/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol, cast

from kitchensync.sensors.errors import SensorError, WordedError
from kitchensync.sensors.stream import SensorStream, record_of

GROUP = "kitchensync.sensors"


class SensorPacket(NamedTuple):
    """One packet; a sensor without its own clock uses `host_ns() // 100`."""

    device_ticks: int
    "The sensor's timestamp, in 100 ns of its own clock."
    payload: bytes


class Sensor(Protocol):
    """A plug-in sensor. Each stream has one thread that calls `packets`.

    `close` may be called from another thread.
    """

    def streams(self) -> Sequence[SensorStream]:
        """Return the streams of the sensor, without touching the device."""
        ...

    def packets(self, stream: str) -> Iterator[SensorPacket]:
        """Open the stream and yield its packets; return when the device has ended it.

        Raise an error if the device is lost: the stream is then opened again, and the ledger notes a gap.
        """
        ...

    def close(self) -> None:
        """Make a `packets` that waits for the device return soon."""
        ...


class ClockedSensor(Sensor, Protocol):
    """A sensor that can report its time; the clock exchanges are stored for the alignment as `clock/<device>`."""

    def clock_exchange(self) -> tuple[int, int, int]:
        """Return host_ns before the request, host_ns after the answer, and the device's ticks."""
        ...


class NoSuchSensor(SensorError):
    """No installed package announces this kind of sensor."""

    def __init__(self, kind: str, installed: Sequence[str]) -> None:
        super().__init__(
            f"no sensor of kind {kind!r} is installed; installed: {', '.join(installed) or 'none'}"
            f" (packages announce theirs as entry points of {GROUP})"
        )


class BadSensor(WordedError, SensorError):
    """A plug-in does not follow the interface of sensors."""

    text = "sensor {at!r}: {why}"


def kinds() -> list[str]:
    """Return the kinds of sensors that installed packages announce."""
    return sorted(entry_points(group=GROUP).names)


def installed_stream(kind: str, settings: Mapping[str, Any], name: str) -> SensorStream | None:
    """Return a stream of a plug-in; None if the plug-in is not installed or cannot be loaded."""
    try:
        streams = load_sensor(kind, settings).streams()
    except SensorError:
        return None
    return next((stream for stream in streams if stream.name == name), None)


def load_sensor(kind: str, settings: Mapping[str, Any]) -> Sensor:
    """Make the sensor of a table of `rig.toml`. Raises `NoSuchSensor`, `BadSensor`."""
    plugins = list(entry_points(group=GROUP, name=kind))
    if not plugins:
        raise NoSuchSensor(kind, kinds())
    try:
        make = cast(Callable[[dict[str, Any]], Sensor], plugins[0].load())
        sensor = make(dict(settings))
        streams = sensor.streams()
        names = [stream.name for stream in streams]
    except KeyError as error:
        why = f"its table in the rig file lacks {error.args[0]}; add a line {error.args[0]} = .. to it"
        raise BadSensor(kind, why) from error
    except Exception as error:
        raise BadSensor(kind, f"{type(error).__name__}: {error}") from error
    if not names or len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise BadSensor(kind, f"its stream names {names} must be different identifiers")
    for stream in streams:
        if stream.record is not None and record_of(stream.kept_format) != stream.record:
            raise BadSensor(
                kind, f"the record of {stream.name} must have fields that are single numbers, packed"
            )
    return sensor
