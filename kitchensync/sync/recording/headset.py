"""What `sync` reads of a headset in a recording: its inertial clocks, its gyroscope, its poses, its probes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.storage.ledger import Note
from kitchensync.storage.reading.inertial import InertialClock, blocks_of_samples
from kitchensync.storage.reading.worlds import frames_of
from kitchensync.storage.recording import StoredStream
from kitchensync.storage.timeline.pose_track import PoseTrack, rotation_wxyz
from kitchensync.sync.align.headset_gyro import HeadsetGyro, headset_gyro


def gyroscope(stream: StoredStream, clock: InertialClock) -> HeadsetGyro:
    """The gyroscope on its repaired clock, thinned while it is read."""
    pairs = map(itemgetter("vinyl_ns", "xyz"), blocks_of_samples(stream))
    return headset_gyro(pairs, clock.repair)


def head_poses(stream: StoredStream, notes: Sequence[Note] = ()) -> PoseTrack:
    """Head pose (x right, y up, z back, head to world), NaN where not tracked; `notes` tell of new world frames."""
    count = len(stream)
    position = np.full((count, 3), np.nan)
    matrices = np.full((count, 3, 3), np.nan)
    rows, records = [], []
    for row, payload in stream.packets():
        try:
            record = spatial_input.decode(payload)
        except SensorError:
            continue
        if record["valid"] & spatial_input.HEAD:
            rows.append(row)
            records.append(record)
    if records:
        up, forward, at = (
            np.array([record[name] for record in records], dtype=np.float64)
            for name in ("head_up", "head_forward", "head_position")
        )
        matrices[rows] = np.stack([np.cross(up, -forward), up, -forward], axis=2)
        position[rows] = at
    ticks, world = stream.index["device_ticks"].astype(np.int64), frames_of(stream.index, list(notes))
    return PoseTrack(ticks, position, rotation_wxyz(matrices), world, "head")


def frame_poses(name: str, stream: StoredStream, notes: Sequence[Note] = ()) -> PoseTrack | None:
    """Poses that came with the packets of a stream, local to world; None when there are none."""
    stored = stream.poses()
    if stored is None or len(stored) != len(stream):
        return None
    ticks = stream.index["device_ticks"].astype(np.int64)
    return PoseTrack.of_wire(ticks, stored, frames_of(stream.index, list(notes)), name)
