"""Gyroscope: about 315 samples per packet, 21 packets per second, in deg/s or rad/s: the format does not define it.

Its packets are decoded by `inertial_samples.decode_samples`.
"""

from __future__ import annotations

from kitchensync.sensors.hololens.headset_stream import EXTRINSICS
from kitchensync.sensors.hololens.streams.inertial_samples import inertial_stream

STREAM = inertial_stream(
    "gyroscope",
    port=3807,
    nominal_hz=21.0,
    max_payload_bytes=128 << 10,
    module=__name__,
    is_gyroscope=True,
    unit="as sent: deg/s or rad/s, decided at alignment",
    bits_per_s=1.71e6,
    constants=(EXTRINSICS,),
)
