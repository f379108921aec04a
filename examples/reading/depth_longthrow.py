"""Far depth: how much of each picture is valid, and how far is it?

python examples/reading/depth_longthrow.py data/take-1
"""

import sys

import numpy as np

from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    for frame in recording["hololens/depth_longthrow"].depth(0, 5):
        valid = frame.depth_mm > 0
        print(
            frame.row, frame.device_ticks, f"{valid.mean():.0%} valid, {np.median(frame.depth_mm[valid])} mm"
        )
