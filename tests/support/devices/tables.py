"""The tables that the virtual headset sends for its Research Mode cameras, as a camera that can be asked."""

from __future__ import annotations

import numpy as np

from kitchensync.storage.geometry.look_up_table import LookUpTable
from kitchensync.virtual_kitchen.headset import cameras as built


def look_up_table(model: built.RigCamera) -> LookUpTable:
    """Cut the answer to mode 2 (uv2x, uv2y, ..., mapx, mapy, k) into a camera."""
    sent = np.frombuffer(built.constants(model), "<f4")
    count = model.width * model.height
    shape = (model.height, model.width)
    plane = np.stack((sent[:count].reshape(shape), sent[count : 2 * count].reshape(shape)), -1)
    maps = sent[-4 - 2 * count : -4]
    source = np.stack((maps[:count].reshape(shape), maps[count:].reshape(shape)), -1)
    fx, fy, cx, cy = (float(x) for x in sent[-4:])
    return LookUpTable(plane, source, (fx, fy, cx, cy))
