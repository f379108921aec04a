"""A hand whose joints are known, for recordings of people whose hands were seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation
from small_recordings import seal_stream, write_constants

import kitchensync as ks
from kitchensync.sensors.hololens.streams import spatial_input


def a_hand(*, is_left: bool) -> np.ndarray:
    """Joints (1, 26, 3) of a hand that lies palm down, fingers ahead: x right, y down, z ahead."""
    across = {"thumb": -2, "index": -1, "middle": 0, "ring": 1, "little": 2}
    ahead = {"metacarpal": 0.02, "proximal": 0.08, "intermediate": 0.11, "distal": 0.13, "tip": 0.15}
    joints = np.zeros((1, len(spatial_input.JOINTS), 3))
    for number, name in enumerate(spatial_input.JOINTS):
        finger, _, bone = name.partition("_")
        if bone:
            joints[0, number] = (0.02 * across[finger] * (-1 if is_left else 1), 0, ahead[bone])
    return joints


def give_hands(take: Path) -> None:
    """Write both hands before the head into the packets of a recording, and the front camera's constants."""
    with ks.open(take) as rec:
        stored = rec.stored["hololens/spatial_input"]
        ticks = stored.index["device_ticks"].tolist()
        records = [spatial_input.decode(stored.payload(row)).copy() for row in range(len(stored))]
    for number, record in enumerate(records):
        record["valid"] |= spatial_input.LEFT_HAND | spatial_input.RIGHT_HAND
        turn = Rotation.from_euler("xyz", [3.0, number / 100, 0.2]).as_matrix()
        for side, across in (("left", -0.2), ("right", 0.2)):
            place = record["head_position"] + 0.4 * record["head_forward"] + [across, -0.2, 0]
            record[f"{side}_hand"]["position"] = a_hand(is_left=side == "left")[0] @ turn.T + place
    shutil.rmtree(take / "hololens" / "spatial_input")
    packets = [(at, spatial_input.encode(record)) for at, record in zip(ticks, records, strict=True)]
    seal_stream(take, "hololens/spatial_input", packets)
    write_constants(take, "pv")
