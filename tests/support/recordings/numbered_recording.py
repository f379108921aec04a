"""A recording of a headset and a camera in which every picture and sample says which one it is, the truth known.

Host time is HOST0_NS plus world time; ticks and media times follow the virtual kitchen's clocks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from made_videos import numbered_planes, video_units
from small_recordings import (
    FRAMES,
    HOST0_NS,
    SECONDS,
    SEED,
    START_WORLD_S,
    gyroscope_packets,
    probe_packets,
    seal_stream,
    spatial_packets,
    write_film,
    write_manifest,
    write_shutter,
)

from kitchensync.sensors.hololens.streams import depth_ahat, pv
from kitchensync.storage.manifest import edit_manifest
from kitchensync.virtual_kitchen.kitchen import Kitchen

PV_S = np.delete(np.arange(0.01, SECONDS, 1 / 29.97), [100, 101, 300])
"""World seconds of the front camera's pictures: three were never taken."""
DEPTH_S = 5.0 + np.arange(12) / 15
FRAME_S = 1001 / 30000
WIDTH, HEIGHT = 640, 360
PV_FORM = {"codec": "h264", "width": WIDTH, "height": HEIGHT, "hz": 30, "divisor": 1}


def film_host_ns(kitchen: Kitchen, number: float) -> float:
    """When picture `number` of the film was taken."""
    return HOST0_NS + 1e9 * kitchen.camera_clock.world_s_at(number * FRAME_S, START_WORLD_S)


def matrices(count: int) -> np.ndarray:
    """Poses whose place says which one it is: the k-th lies k metres to the right."""
    found = np.tile(np.eye(4, dtype="<f4"), (count, 1, 1))
    found[:, 3, 0] = np.arange(count)
    return found


def metadata_of(number: int) -> np.ndarray:
    """What is sent with a picture: its focal length says which one it is."""
    found = np.zeros((), pv.METADATA)
    found["focal_length"], found["principal_point"] = (500 + number, 501 + number), (320, 180)
    found["width"], found["height"] = WIDTH, HEIGHT
    return found


def pv_packets(kitchen: Kitchen) -> list[tuple[int, bytes]]:
    units = video_units((numbered_planes(n) for n in range(len(PV_S))), key_every=30)
    return [
        (kitchen.headset_clock.ticks_at(world_s), pv.encode(unit, metadata_of(n)))
        for n, (world_s, unit) in enumerate(zip(PV_S, units, strict=True))
    ]


def depth_packets(kitchen: Kitchen) -> list[tuple[int, bytes]]:
    """Flat pictures: depth and brightness are 100 and 200 more than the packet's number; the fourth is damaged."""
    packets = []
    for n, world_s in enumerate(DEPTH_S):
        image = np.empty((2, 512, 512), "<u2")
        image[0], image[1] = 100 + n, 200 + n
        content = image.tobytes()[: -4 if n == 3 else None]
        packets.append((kitchen.headset_clock.ticks_at(world_s), depth_ahat.encode(content, n)))
    return packets


def write_numbered(root: Path, name: str = "take1") -> Kitchen:
    """Write the recording `name`; `kitchensync sync` has not been over it."""
    recording = root / name
    kitchen = write_film(recording / "gopro", SEED, FRAMES)
    rng = np.random.default_rng(0)
    seal_stream(recording, "hololens/gyroscope", gyroscope_packets(kitchen, rng))
    poses = matrices(len(PV_S))
    poses[50] = 0  # not tracked
    seal_stream(recording, "hololens/pv", pv_packets(kitchen), poses=[pose.tobytes() for pose in poses])
    near = [pose.tobytes() for pose in matrices(len(DEPTH_S))]
    seal_stream(recording, "hololens/depth_ahat", depth_packets(kitchen), poses=near)
    seal_stream(recording, "hololens/spatial_input", list(spatial_packets(kitchen)))
    seal_stream(recording, "clock/hololens", list(probe_packets(kitchen)))
    streams = {"hololens/gyroscope": {}, "hololens/pv": {"format": PV_FORM}, "hololens/spatial_input": {}}
    streams |= {"hololens/depth_ahat": {"format": {"codec": "raw"}}, "hololens/magnetometer": {}}
    write_manifest(recording, streams, {"hololens": "hololens", "gopro": "gopro"})
    with edit_manifest(recording) as manifest:
        manifest |= {"uuid": f"uuid of {name}", "consent": "form-1", "consent_scopes": ["release_raw"]}
    write_shutter(recording / "gopro")
    return kitchen
