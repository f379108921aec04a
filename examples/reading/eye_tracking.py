"""Eye tracker: gaze rays brought from the tracker to the world by the pose of each packet.

python examples/reading/eye_tracking.py data/take-1
"""

import sys

import numpy as np

from kitchensync.sensors.hololens.streams.eye_tracking import COMBINED
from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    stream = recording["hololens/eye_tracking"]
    records, poses = stream.records(), stream.poses()
    seen = np.flatnonzero(records.has(COMBINED))
    print(f"gaze known in {len(seen)} of {len(records.row)} readings")
    for i in seen[:3]:
        pose = poses[records.row[i]]
        origin, direction = (
            records.values["combined"]["origin"][i],
            records.values["combined"]["direction"][i],
        )
        print(
            records.device_ticks[i],
            "from",
            origin @ pose[:3, :3] + pose[3, :3],
            "to",
            direction @ pose[:3, :3],
        )
