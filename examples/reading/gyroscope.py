"""Turn rates with repaired stamps: how far did the head turn about each axis?

python examples/reading/gyroscope.py data/take-1
"""

import sys

import numpy as np

from kitchensync.storage.recording import open_recording

with open_recording(sys.argv[1]) as recording:
    samples = recording["hololens/gyroscope"].samples()
    assert samples.repair is not None
    late_ms = (samples.soc_ticks - samples.ticks)[np.flatnonzero(np.diff(samples.row, prepend=-1))] / 1e4
    print(
        f"{len(samples.xyz)} samples at {samples.repair.rate_hz:.1f} Hz, {len(samples.bad)} packets unreadable"
    )
    print(f"batch stamps were up to {late_ms.max():.2f} ms late; repaired they step by one sample")
    seconds = np.diff(samples.ticks, prepend=samples.ticks[0]) / 1e7
    turned = (samples.xyz * seconds[:, None]).sum(axis=0)
    scale = recording.si_scale("hololens/gyroscope")
    if scale is None:
        print("turned about x y z, in the unit that it sends times seconds:", turned)
    else:
        print("turned about x y z, rad:", turned * scale)
    print("rig to sensor:", recording.calibration("hololens/gyroscope")["extrinsics"].values.tolist())
