"""A headset that does not know where it is, or whose sensors stand still: whole packets in time that say nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kitchensync.virtual_kitchen.faults import FaultPlan
from kitchensync.virtual_kitchen.headset.stream import SentPacket
from kitchensync.virtual_kitchen.headset.streams.imu_streams import SAMPLE

SPATIAL, EYES = "spatial_input", "eye_tracking"
GAZE = {SPATIAL: slice(40, 64), EYES: slice(4, 92)}
"""Bytes of a payload that hold eye rays; the eye tracker's flags too."""
COMBINED_AT, COMBINED = 88, 2


class LosingItself:
    """Spoils the packets of one stream on one connection; stale values are those of the last good packet."""

    def __init__(self, faults: FaultPlan, stream: str) -> None:
        self._faults, self._stream = faults, stream
        self._last = b""

    def spoil(self, packet: SentPacket, due_s: float) -> tuple[SentPacket, str] | None:
        """Return a packet as a fault leaves it, and the fault's name; None where none is active."""
        active, payload, pose = self._faults.active, packet.payload, packet.pose
        told: list[str] = []
        if active("lost_tracking", "", due_s) and (pose or self._stream == SPATIAL):
            pose = bytes(len(pose))
            payload = self._unseen(payload) if self._stream == SPATIAL else payload
            told.append("lost_tracking")
        if active("frozen_gaze", "", due_s) and self._stream in GAZE:
            payload = self._with_last_gaze(payload)
            told.append("frozen_gaze")
        if active("still_sensor", self._stream, due_s):
            payload = self._still(payload)
            told.append("still_sensor")
        if told:
            return replace(packet, payload=payload, pose=pose, sha256=""), told[0]
        if self._stream != EYES or payload[COMBINED_AT] & COMBINED:  # a blink is no value to repeat
            self._last = payload
        return None

    def _with_last_gaze(self, payload: bytes) -> bytes:
        where = GAZE[self._stream]
        self._last = self._last or payload
        return payload[: where.start] + self._last[where] + payload[where.stop :]

    def _unseen(self, payload: bytes) -> bytes:
        """Return the last record that was seen, with no bit set."""
        return bytes(4) + (self._last or bytes(len(payload)))[4:]

    def _still(self, payload: bytes) -> bytes:
        """Return a batch whose samples all repeat the last good one."""
        samples = np.frombuffer(payload, SAMPLE).copy()
        before = np.frombuffer(self._last, SAMPLE)
        samples["xyz"] = before["xyz"][-1] if len(before) else samples["xyz"][0]
        self._last = self._last or payload
        return samples.tobytes()
