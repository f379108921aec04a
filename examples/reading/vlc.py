"""Grey cameras: the first picture of each that was recorded, turned upright.

python examples/reading/vlc.py data/take-1
"""

import sys

import numpy as np

from kitchensync.storage.recording import open_recording

TURNS = {"vlc_leftfront": -1, "vlc_rightright": -1, "vlc_leftleft": 1, "vlc_rightfront": 1}

with open_recording(sys.argv[1]) as recording:
    for name in recording.streams:
        short = name.partition("/")[2]
        if short in TURNS:
            frame = next(recording[name].frames(0, 1))
            upright = np.rot90(frame.grey(), TURNS[short])
            exposure_ms = frame.metadata["exposure_ns"] / 1e6
            print(name, upright.shape, f"mean {upright.mean():.0f}, exposure {exposure_ms:.2f} ms")
            print("  sensor_ticks pair the cameras:", int(frame.metadata["sensor_ticks"]), "ns")
