"""A clock probe: one question to a device for its time, with our clock before and after.

Probes are recorded as a stream of their own (`clock/<device>`), one payload a probe, so that the alignment of
clocks can be redone with better mathematics.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

PROBE = np.dtype(
    [
        ("host_send_ns", "<i8"),  # CLOCK_MONOTONIC just before the question left
        ("host_receive_ns", "<i8"),  # CLOCK_MONOTONIC just after the answer came
        ("device_ticks", "<i8"),  # the device's answer, 100 ns ticks
        ("utc_filetime", "<i8"),  # its UTC (100 ns since 1601), 0 where it was not asked
    ]
)


def decode(payload: bytes) -> npt.NDArray[np.void]:
    """Read the probes of a payload, (n,) of PROBE, without a copy."""
    return np.frombuffer(payload, PROBE)


def encode(host_send_ns: int, host_receive_ns: int, device_ticks: int, utc_filetime: int = 0) -> bytes:
    """Write one probe."""
    return np.array((host_send_ns, host_receive_ns, device_ticks, utc_filetime), PROBE).tobytes()
