"""Extended eye tracker: combined, left and right gaze rays at 30, 60 or 90 Hz, with a pose.

Rays are in the frame of the tracker's node; the packet's pose transforms them to the world. Fields without their bit
in `valid` are zero. Its timestamps are converted from the headset's UTC, so an NTP step there shifts them.
"""

from __future__ import annotations

import numpy as np

from kitchensync.sensors.hololens.headset_stream import RECORDS, Flags, HeadsetStream, RecordCodec

NAME = "eye_tracking"

CALIBRATION, COMBINED, LEFT, RIGHT, LEFT_OPENNESS, RIGHT_OPENNESS, VERGENCE = (1 << bit for bit in range(7))
"Bits of `valid`."

RAY = np.dtype([("origin", "<f4", (3,)), ("direction", "<f4", (3,))])
DTYPE = np.dtype(
    [
        ("reserved", "<u4"),
        ("combined", RAY),  # m, unit vector
        ("left", RAY),
        ("right", RAY),
        ("left_openness", "<f4"),
        ("right_openness", "<f4"),
        ("vergence_distance", "<f4"),  # m
        ("valid", "<u4"),
    ]
)


CODEC = RecordCodec(NAME, DTYPE)
decode, encode = CODEC.decode, CODEC.encode

STREAM = HeadsetStream(
    NAME,
    nominal_hz=30.0,
    max_payload_bytes=4 << 10,
    port=3817,
    module=__name__,
    kind=RECORDS,
    rays_from_own_pose=True,
    configure=lambda p: bytes([p.eye_tracking_hz]),
    details=lambda p: {"codec": "struct", "unit": "m, node of the eye tracker", "loses": []},
    hz_by_profile=lambda p: float(p.eye_tracking_hz),
    bits_per_s=lambda p: 1344.0 * p.eye_tracking_hz,
    record=DTYPE,
    check=CODEC.check,
    decode=decode,
    encode=encode,
    flags=Flags(88, {"gaze": COMBINED}, slice(4, 76)),
)
