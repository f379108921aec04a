"""Sound of the kitchen by world time: the hum of a refrigerator and clicks."""

from __future__ import annotations

import numpy as np

from kitchensync.virtual_kitchen.world.seeds import generator

SLOT_S = 0.4
CLICK_S = 0.03


def kitchen_sound(seed: int, world_s: np.ndarray) -> np.ndarray:
    """Return the sound pressure (n,) float32 within +-1 at rising world times (n,)."""
    hum = 0.01 * np.sin(2 * np.pi * 100.0 * world_s) + 0.004 * np.sin(2 * np.pi * 300.0 * world_s)
    first, last = (int(np.floor(t / SLOT_S)) for t in (world_s[0] - CLICK_S, world_s[-1]))
    for slot in range(max(first, 0), last + 1):
        random = generator(seed, "kitchen sound", slot)
        at_s, loudness = (slot + random.random()) * SLOT_S, random.uniform(0.0, 0.6)
        begin, end = np.searchsorted(world_s, [at_s, at_s + CLICK_S])
        since = world_s[begin:end] - at_s
        pitch_hz = random.uniform(700.0, 2600.0)
        hum[begin:end] += loudness * np.exp(-since / 0.004) * np.sin(2 * np.pi * pitch_hz * since)
    return hum.astype(np.float32)
