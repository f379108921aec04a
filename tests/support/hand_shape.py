"""A hand whose joints are known, for recordings of people whose hands were seen."""

from __future__ import annotations

import numpy as np

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
