"""Extended depth: Zdepth headers, or depth where it was recorded raw or a decoder is at hand.

python examples/reading/extended_depth.py data/take-1
"""

import sys

from kitchensync.sensors.hololens import zdepth
from kitchensync.sensors.hololens.streams import extended_depth
from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    stream = recording["hololens/extended_depth"]
    if stream.format["codec"] == "zdepth":  # zdepth.use_decoder(your_function) makes .depth() work
        print(zdepth.header(extended_depth.decode(stream.payload(0)).image))
    else:
        frame = next(stream.depth(0, 1))
        print(frame.device_ticks, frame.depth_mm.shape)
