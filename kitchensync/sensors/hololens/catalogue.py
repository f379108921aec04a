"""List of the streams of a headset; a new stream is a file in `streams` and a line here."""

from __future__ import annotations

from kitchensync.sensors.errors import UnknownSensorStream
from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.sensors.hololens.streams import (
    accelerometer,
    depth_ahat,
    depth_longthrow,
    extended_audio,
    extended_depth,
    extended_video,
    eye_tracking,
    gyroscope,
    magnetometer,
    microphone,
    pv,
    spatial_input,
    vlc,
)

STREAMS: dict[str, HeadsetStream] = {
    stream.name: stream
    for stream in (
        pv.STREAM,
        *vlc.STREAMS,
        depth_ahat.STREAM,
        depth_longthrow.STREAM,
        gyroscope.STREAM,
        accelerometer.STREAM,
        magnetometer.STREAM,
        spatial_input.STREAM,
        microphone.STREAM,
        eye_tracking.STREAM,
        extended_audio.STREAM,
        extended_video.STREAM,
        extended_depth.STREAM,
    )
}
FRONT_CAMERA, GYROSCOPE, MICROPHONE, HEAD_POSE = (
    next(name for name, stream in STREAMS.items() if getattr(stream, part))
    for part in ("is_front_camera", "is_gyroscope", "is_voice", "is_head_pose")
)
"""Names of the streams with a special role."""
DEFAULT_SET = tuple(stream.name for stream in STREAMS.values() if stream.is_default)


def known_stream(name: str) -> HeadsetStream | None:
    """Return a stream by its name in a recording, with or without its device; None for plug-ins and cameras."""
    return STREAMS.get(name.rpartition("/")[2])


def is_head_pose(name: str) -> bool:
    """Return whether a stream of a recording has the poses of head, eyes and hands."""
    stream = known_stream(name)
    return stream is not None and stream.is_head_pose


def is_front_camera(name: str) -> bool:
    """Return whether a stream of a recording is a headset's front camera."""
    stream = known_stream(name)
    return stream is not None and stream.is_front_camera


def headset_stream(name: str) -> HeadsetStream:
    """Return a stream by its short name. Raises `UnknownSensorStream`."""
    try:
        return STREAMS[name]
    except KeyError:
        raise UnknownSensorStream(name, sorted(STREAMS)) from None


def forbidden_together(names: list[str]) -> tuple[str, str] | None:
    """Return two of these streams that a headset cannot send at the same time, or None."""
    for name in names:
        for other in STREAMS[name].excludes if name in STREAMS else ():
            if other in names:
                return other, name
    return None
