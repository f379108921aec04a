"""A recording whose headset is given faults afterwards: its packets as the virtual headset would have sent them."""

from __future__ import annotations

import shutil
from pathlib import Path

from small_recordings import seal_stream

from kitchensync.storage.recording import open_recording
from kitchensync.virtual_kitchen.faults import parse_faults
from kitchensync.virtual_kitchen.headset.blind import SensorFaults
from kitchensync.virtual_kitchen.headset.stream import SentPacket
from kitchensync.virtual_kitchen.kitchen import Kitchen


def add_faults(path: Path, kitchen: Kitchen, *faults: str) -> None:
    """Spoil the streams `hololens/..` of a recording; faults are written as for `simulate --fault`."""
    plan = parse_faults(faults)
    with open_recording(path) as recording:
        streams = {
            name: [
                (ticks, payload, pose)
                for ticks, (_, payload), pose in zip(
                    stream.index["device_ticks"].tolist(), stream.packets(), _poses(stream), strict=True
                )
            ]
            for name in recording.streams
            if name.startswith("hololens/") and len(stream := recording[name])
        }
    for name, rows in streams.items():
        losing, sent = SensorFaults(plan, name.rpartition("/")[2]), []
        for ticks, payload, pose in rows:
            packet = SentPacket(ticks, payload, pose)
            spoilt = losing.spoil(packet, kitchen.headset_clock.world_s_at(ticks))
            sent.append(packet if spoilt is None else spoilt[0])
        shutil.rmtree(path / name)
        seal_stream(path, name, [(one.ticks, one.payload) for one in sent], poses=[one.pose for one in sent])


def _poses(stream) -> list[bytes]:
    poses = stream.poses()
    return [b""] * len(stream) if poses is None else [pose.tobytes() for pose in poses]
