"""Which world frame the poses of a stream are in: a headset's app that starts anew begins another one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kitchensync.storage.ledger import NewWorldFrameNote, Note, of_kind


def frames_of(index: npt.NDArray[np.void], notes: list[Note]) -> npt.NDArray[np.int32]:
    """Return the number of the world frame of every row of an index, (n,) int32 from 0, by notes of its stream.

    Connections are counted anew by every run of the producer, packets are not: a note that tells the number of
    the first packet is taken at its word.
    """
    frames = np.zeros(len(index), dtype=np.int32)
    for note in of_kind(notes, NewWorldFrameNote):
        if note.next_seq is not None:
            frames[index["seq"].astype(np.int64) >= note.next_seq] = note.app_start
        else:
            frames[index["connection"].astype(np.int64) >= note.connection] = note.app_start
    return frames


def first_rows(frames: npt.NDArray[np.int32]) -> list[int]:
    """Return the rows from which on another world frame holds than before."""
    return [int(row) + 1 for row in np.flatnonzero(np.diff(frames))]
