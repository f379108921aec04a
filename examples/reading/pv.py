"""Pictures of the front camera: ten from the middle, each with exact stamp, pose and optics.

python examples/reading/pv.py data/take-1
"""

import sys

from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    stream = recording["hololens/pv"]
    middle = len(stream) // 2
    for frame in stream.frames(middle, middle + 10):
        place = "not tracked" if frame.pose is None else f"camera at {frame.pose[3, :3].round(3)} m"
        picture, focal_px = frame.rgb(), frame.intrinsics[0]
        print(frame.row, frame.device_ticks, picture.shape, f"focal length {focal_px:.1f} px,", place)
    print(f"unreadable: {stream.bad or 'none'}")
