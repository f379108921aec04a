"""The magnetic field with repaired stamps: how strong is it?

python examples/reading/magnetometer.py data/take-1
"""

import sys

import numpy as np

from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    samples = recording["hololens/magnetometer"].samples()
    assert samples.repair is not None
    late_ms = (samples.soc_ticks - samples.ticks)[np.flatnonzero(np.diff(samples.row, prepend=-1))] / 1e4
    print(
        f"{len(samples.xyz)} samples at {samples.repair.rate_hz:.1f} Hz, {len(samples.bad)} packets unreadable"
    )
    print(f"batch stamps were up to {late_ms.max():.2f} ms late; repaired they step by one sample")
    print(f"field strength: {np.linalg.norm(samples.xyz, axis=1).mean():.0f} (thought to be microtesla)")
