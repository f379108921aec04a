"""Which world frame the poses of a stream are in: a headset's app that starts anew begins another one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from storage.notes import Note
from storage.recording import StoredStream

NEW_WORLD = "new_world_frame"


def world_frames(stream: StoredStream, notes: list[Note]) -> npt.NDArray[np.int32]:
    """Number of the world frame of every packet, (n,) int32: 0 until the app was started anew, then 1, 2, ...

    `notes` are the stream's in the ledger. Poses of different frames have nothing to do with each other.
    """
    connection = stream.index["connection"].astype(np.int64)
    frames = np.zeros(len(connection), dtype=np.int32)
    for note in notes:
        if note["note"] == NEW_WORLD:
            frames[connection >= int(note["connection"])] = int(note["app_start"])
    return frames
