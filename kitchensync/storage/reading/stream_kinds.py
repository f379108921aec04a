"""Which reader fits which stream: by the last part of its name, whoever the device is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES, RECORDS, SAMPLES, SOUND
from kitchensync.storage.errors import NotOfThisKind
from kitchensync.storage.names import CLOCK_STREAMS, LEDGER_STREAMS

if TYPE_CHECKING:
    from kitchensync.sensors.gopro.files.clip import Clip
    from kitchensync.sensors.gopro.files.telemetry import ImuTrack

HEADSET = {
    kind: tuple(stream.name for stream in STREAMS.values() if stream.kind == kind)
    for kind in (SAMPLES, FRAMES, DEPTH, RECORDS, SOUND)
}


class CameraStreamKind(NamedTuple):
    """One stream of a GoPro's clip."""

    name: str
    reader: str
    imu: Callable[[Clip], ImuTrack] | None = None
    "Reads its inertial samples."
    unit: str = ""
    "Of those."


CAMERA_STREAMS = {
    kind.name: kind
    for kind in (
        CameraStreamKind("video", "pictures"),
        CameraStreamKind("audio", "sound"),
        CameraStreamKind("gyroscope", "imu", lambda clip: clip.gyroscope(), "rad/s"),
        CameraStreamKind("accelerometer", "imu", lambda clip: clip.accelerometer(), "m/s^2"),
    )
}
CAMERA = {
    reader: tuple(kind.name for kind in CAMERA_STREAMS.values() if kind.reader == reader)
    for reader in ("imu", "pictures", "sound")
}
WORDS = {
    "samples": "a motion sensor",
    "frames": "a camera",
    "depth": "depth",
    "records": "records of a fixed layout",
    "sound": "sound",
    "imu": "a motion sensor",
    "pictures": "a film",
}
"""Reader -> kind of stream it reads."""


def check_kind(name: str, reader: str, readers: dict[str, tuple[str, ...]] = HEADSET) -> None:
    """Check that a reader fits a stream. Raises NotOfThisKind with the kind of the stream and the right reader."""
    device, _, short = name.rpartition("/")
    is_internal = device in (CLOCK_STREAMS, LEDGER_STREAMS)
    if not is_internal and short in readers[reader]:
        return
    fits = None if is_internal else next((word for word, shorts in readers.items() if short in shorts), None)
    raise NotOfThisKind(name, WORDS[reader], WORDS[fits] if fits else None, f"{fits or 'payloads'}()")
