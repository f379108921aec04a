"""Head, gaze ray and hands: 1936 bytes per packet, sent as soon as the connection is accepted.

All values are in the world frame of this app start, in metres. A part without its bit in `valid` keeps its last
values, so always test `valid` first.
"""

from __future__ import annotations

import numpy as np

from kitchensync.sensors.hololens.headset_stream import RECORDS, Flags, HeadsetStream, RecordCodec

NAME = "spatial_input"

HEAD, EYE_RAY, LEFT_HAND, RIGHT_HAND = 1, 2, 4, 8
"Bits of `valid`."

_FINGERS = ("index", "middle", "ring", "little")
_BONES = ("metacarpal", "proximal", "intermediate", "distal", "tip")
JOINTS: tuple[str, ...] = (
    "palm",
    "wrist",
    "thumb_metacarpal",
    "thumb_proximal",
    "thumb_distal",
    "thumb_tip",
    *(f"{finger}_{bone}" for finger in _FINGERS for bone in _BONES),
)
"The 26 joints, in wire order."

JOINT = np.dtype(
    [
        ("orientation_xyzw", "<f4", (4,)),
        ("position", "<f4", (3,)),  # m
        ("radius", "<f4"),  # m
        ("accuracy", "<i4"),  # 0 high, 1 approximate
    ]
)
DTYPE = np.dtype(
    [
        ("valid", "<u4"),
        ("head_position", "<f4", (3,)),  # m
        ("head_forward", "<f4", (3,)),  # unit vector
        ("head_up", "<f4", (3,)),  # unit vector; right = up x (-forward)
        ("eye_origin", "<f4", (3,)),  # m
        ("eye_direction", "<f4", (3,)),
        ("left_hand", JOINT, (26,)),
        ("right_hand", JOINT, (26,)),
    ]
)


CODEC = RecordCodec(NAME, DTYPE)
decode, encode = CODEC.decode, CODEC.encode

STREAM = HeadsetStream(
    NAME,
    nominal_hz=30.0,
    max_payload_bytes=4 << 10,
    port=3812,
    pose_bytes=0,
    module=__name__,
    kind=RECORDS,
    is_default=True,
    is_head_pose=True,
    configure=lambda p: b"",
    details=lambda p: {"codec": "struct", "unit": "m, world frame of the app start", "loses": []},
    bits_per_s=lambda p: 0.47e6,
    record=DTYPE,
    check=CODEC.check,
    decode=decode,
    encode=encode,
    flags=Flags(
        0, {"head": HEAD, "gaze": EYE_RAY, "left_hand": LEFT_HAND, "right_hand": RIGHT_HAND}, slice(40, 64)
    ),
)
