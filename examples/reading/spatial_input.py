"""Head, gaze and hands: how long was each seen, and how far did the right hand travel?

python examples/reading/spatial_input.py data/take-1
"""

import sys

import numpy as np

from kitchensync.sensors.hololens.streams.spatial_input import EYE_RAY, HEAD, JOINTS, LEFT_HAND, RIGHT_HAND
from kitchensync.storage.reading.records import hand
from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    records = recording["hololens/spatial_input"].records()
    parts = {"head": HEAD, "gaze": EYE_RAY, "left hand": LEFT_HAND, "right hand": RIGHT_HAND}
    for name, bit in parts.items():
        print(f"{name}: {records.has(bit).mean():.0%} of {len(records.row)} packets")
    wrist = hand(records, "right").position_m[:, JOINTS.index("wrist")]
    steps = np.linalg.norm(np.diff(wrist, axis=0), axis=1)  # NaN where it was not seen
    print(f"the right wrist moved {np.nansum(steps):.2f} m")
