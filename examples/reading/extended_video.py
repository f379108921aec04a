"""Extended video: the list of cameras, and the first picture.

python examples/reading/extended_video.py data/take-1
"""

import sys

from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    print(recording.calibration("hololens/extended_video")["device_list"].values)
    frame = next(recording["hololens/extended_video"].frames(0, 1))
    print(frame.device_ticks, frame.rgb().shape, "rig pose" if frame.pose is not None else "no pose")
