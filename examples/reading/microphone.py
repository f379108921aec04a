"""Microphone: loudness of every second.

python examples/reading/microphone.py data/take-1
"""

import sys

import numpy as np

from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    stream = recording["hololens/microphone"]
    rate_hz, level, first = stream.format["rate_hz"], [], None
    for ticks, samples in stream.sound():
        first = ticks if first is None else first
        level.append(np.sqrt(np.mean(samples**2)))
    per_second = max(1, round(rate_hz / 1024))
    for second in range(0, len(level), per_second):
        loud = 20 * np.log10(np.mean(level[second : second + per_second]) + 1e-9)
        print(f"{second // per_second:3} s {loud:6.1f} dB")
    print(f"unreadable: {stream.bad or 'none'}")
