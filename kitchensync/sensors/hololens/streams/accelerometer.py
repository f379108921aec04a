"""Accelerometer: about 93 samples per packet, 11.8 packets per second."""

from __future__ import annotations

from kitchensync.sensors.hololens.headset_stream import EXTRINSICS
from kitchensync.sensors.hololens.streams.inertial_samples import inertial_stream

STREAM = inertial_stream(
    "accelerometer",
    port=3806,
    nominal_hz=11.8,
    max_payload_bytes=64 << 10,
    module=__name__,
    unit="m/s^2",
    bits_per_s=0.29e6,
    constants=(EXTRINSICS,),
)
