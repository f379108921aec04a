"""Sensor faults of the headset: lost tracking and frozen sensors. Packets stay whole and in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kitchensync.virtual_kitchen.faults import FaultPlan
from kitchensync.virtual_kitchen.headset.stream import SentPacket
from kitchensync.virtual_kitchen.headset.streams.imu_streams import SAMPLE

SPATIAL, EYES = "spatial_input", "eye_tracking"
GAZE = {SPATIAL: slice(40, 64), EYES: slice(4, 92)}
"""Bytes of a payload that hold eye rays; for the eye tracker also its flags."""
COMBINED_AT, COMBINED = 88, 2  # place of the valid bits of the eye tracker, bit of its combined ray


class SensorFaults:
    """Applies sensor faults to one stream on one connection; stale values are those of the last good packet."""

    def __init__(self, faults: FaultPlan, stream: str) -> None:
        self._faults, self._stream = faults, stream
        self._last = b""

    def spoil(self, packet: SentPacket, due_s: float) -> tuple[SentPacket, str] | None:
        """Return the packet with the active faults applied and the first fault's name; None if none is active."""
        active, payload, pose = self._faults.active, packet.payload, packet.pose
        faults: list[str] = []
        if active("lost_tracking", "", due_s) and (pose or self._stream == SPATIAL):
            pose = bytes(len(pose))
            if self._stream == SPATIAL:  # the last good record with all validity bits cleared
                payload = bytes(4) + (self._last or bytes(len(payload)))[4:]
            faults.append("lost_tracking")
        if active("frozen_gaze", "", due_s) and self._stream in GAZE:
            payload = self._with_last_gaze(payload)
            faults.append("frozen_gaze")
        if active("still_sensor", self._stream, due_s):
            payload = self._still(payload)
            faults.append("still_sensor")
        if faults:
            return replace(packet, payload=payload, pose=pose, sha256=""), faults[0]
        if self._stream != EYES or payload[COMBINED_AT] & COMBINED:  # never repeat a blink: its rays are zero
            self._last = payload
        return None

    def _with_last_gaze(self, payload: bytes) -> bytes:
        where = GAZE[self._stream]
        self._last = self._last or payload
        return payload[: where.start] + self._last[where] + payload[where.stop :]

    def _still(self, payload: bytes) -> bytes:
        """Return a batch that repeats the last good sample."""
        samples = np.frombuffer(payload, SAMPLE).copy()
        before = np.frombuffer(self._last, SAMPLE)
        samples["xyz"] = before["xyz"][-1] if len(before) else samples["xyz"][0]
        self._last = self._last or payload
        return samples.tobytes()
