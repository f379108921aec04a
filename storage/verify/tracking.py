"""In which share of a stream's packets the headset knew its place, the eyes, the hands: by flags, nothing decoded."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from sensors.hololens.headset_stream import HeadsetStream

POSE = "pose"


class Tracking:
    """Counts the flags of one stream, packet by packet, and the poses that are not all zero."""

    def __init__(self, stream: HeadsetStream | None) -> None:
        """Expect the packets of a stream of the headset, or of another sensor (None)."""
        flags, record = (stream.flags, stream.record) if stream is not None else (None, None)
        self.parts = flags.parts if flags is not None else {}
        """The parts that its payloads tell of; empty where only poses tell."""
        self._at = flags.at if flags is not None else 0
        self._size = record.itemsize if record is not None else 0
        self._seen: Counter[str] = Counter()
        self._packets = self._poses = 0

    def take(self, payload: bytes) -> None:
        """Take the next payload; one of another size says nothing."""
        if len(payload) != self._size:
            return
        self._packets += 1
        flags = int.from_bytes(payload[self._at : self._at + 4], "little")
        self._seen.update(part for part, bit in self.parts.items() if flags & bit)

    def take_poses(self, poses: npt.NDArray[np.float32] | None) -> None:
        """Take poses, (n, 4, 4), or None where the stream has none; an untracked one is all zero."""
        if poses is not None:
            self._poses += len(poses)
            self._seen[POSE] += int(np.count_nonzero(poses[:, 3, 3]))

    def shares(self) -> dict[str, float]:
        """Return part -> share of the packets, 0 to 1; empty for a stream that tells nothing."""
        found = {part: self._seen[part] / self._packets for part in self.parts if self._packets}
        return found | ({POSE: self._seen[POSE] / self._poses} if self._poses else {})
