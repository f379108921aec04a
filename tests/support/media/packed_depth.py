"""Near depth as a headset packs it into a video picture."""

from __future__ import annotations

import numpy as np


def pack_nv12(depth_mm: np.ndarray, ab: np.ndarray) -> np.ndarray:
    """Pack depth and AB as the headset does before encoding: uint8 (768, 512), with its losses."""
    luma = (depth_mm.astype(np.uint16) >> 2).astype(np.uint8)
    root = np.floor(np.sqrt(ab[:, ::2].astype(np.float32))).astype(np.uint16).astype(np.uint8)
    return np.concatenate([luma, root.reshape(256, 512)])
