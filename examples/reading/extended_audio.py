"""Extended audio: what the headset can hear with, and the loudest moment of what it heard and played.

python examples/reading/extended_audio.py data/take-1
"""

import sys

import numpy as np

from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    print(recording.calibration("hololens/extended_audio")["device_list"].values)
    stream = recording["hololens/extended_audio"]
    print(f"source {stream.format['source']}, {stream.format['channels']} channels")
    loudest, at_ticks = max((float(np.abs(samples).max()), ticks) for ticks, samples in stream.sound())
    print(f"loudest {20 * np.log10(loudest + 1e-9):.1f} dB in the packet of {at_ticks}")
