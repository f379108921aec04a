"""Packets of a made recording sealed anew, as if each had come when it was taken."""

from __future__ import annotations

import shutil
from pathlib import Path

from small_recordings import HOST0_NS

from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.recording import open_recording
from kitchensync.virtual_kitchen.kitchen import Kitchen


def reseal(
    recording: Path, name: str, kitchen: Kitchen, holes_s: tuple[tuple[float, float], ...] = ()
) -> None:
    """Let each packet come when it was taken, but for those in the holes."""
    with open_recording(recording) as opened:
        stream = opened[name]
        rows = [(int(stream.index["device_ticks"][row]), payload) for row, payload in stream.packets()]
        poses = stream.poses()
    shutil.rmtree(recording / name)
    (recording / name).mkdir()
    packets = []
    for k, (ticks, payload) in enumerate(rows):
        world_s = kitchen.headset_clock.world_s_at(ticks)
        if not any(a < world_s < b for a, b in holes_s):
            host_ns, pose = HOST0_NS + round(world_s * 1e9), b"" if poses is None else poses[k].tobytes()
            packets.append(Packet(len(packets), 1, ticks, host_ns, 1, payload, pose))
    seal(recording / name, 1, packets, {})
