"""Near depth: points in metres in the frame of the sensor, with its own calibration.

python examples/reading/depth_ahat.py data/take-1
"""

import sys

import numpy as np

from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    constants = recording.calibration("hololens/depth_ahat")
    x, y = constants["uv2x"].values, constants["uv2y"].values
    scale = float(constants["scale"].values)
    for frame in recording["hololens/depth_ahat"].depth(0, 3):
        rays = np.stack([x, y, np.ones_like(x)], axis=-1)
        metres = frame.depth_mm / scale / np.linalg.norm(rays, axis=-1)
        points = (rays * metres[..., None])[frame.depth_mm > 0]
        print(frame.row, frame.device_ticks, f"{len(points)} points, middle at {np.median(points, axis=0)} m")
