"""Every limit by which `verify` judges, in one place; `docs/reference/faults-and-verdicts.md` says the same.

A share is of the session: from the moment every armed stream has delivered until the stop.
"""

from __future__ import annotations

PERIODS = 3.0
"""Packets no further apart than this many nominal periods cover the time between them."""
ADAPTIVE_S = 0.5
"""The same for a stream that changes its rate by itself, or whose sensor is stamped on arrival, seconds."""

COVERAGE_WARN, COVERAGE_FAIL = 0.95, 0.5
"""Below the first a stream or a camera is WARN, below the second FAIL."""

RATE_WARN = 0.8
"""Below this share of a promised rate a stream is WARN; one that adapts its rate promises none."""

SILENCE_WARN_S = 2.0
"""A stream of which nothing arrived for longer is WARN, also where what it sent came afterwards."""

LATE_NOTE_S, LATE_WARN_S = 0.5, 5.0
"""A packet that arrived later than this, beyond the shortest way, is noted; WARN beyond the second: a device that is
behind by seconds lacks as much at the stop, and the operator sees what was."""

TAIL_S = 0.5
"""So much may lack at the end: the stop finds packets on their way."""
TAIL_LATE_S = 0.5
"""A stream that still came at the stop, late, is judged up to what had come; but at most so much earlier."""

HOLE_NAMED_S = 1.0
"""A hole of this length is named in what the recording is good for, even where coverage stays above its limit."""

LOST_S = 1.0
"""A headset that did not know where its head was for longer is WARN, and so are a gaze or a sensor that repeat one
value for so long: a live one never does."""
STILL_SLOW_S = 5.0
"""The same for a sensor of few coarse samples a second, such as a magnetometer."""

HEAD_TRACKED_WARN = 0.5
"""Below this share of packets with a head position the poses are WARN. Hands and gaze leave the view: noted only."""

CAMERA_SLOW_BYTES_PER_S = 1_000_000
"""Camera files that were fetched slower than this are noted."""

DECODED_WARN = 1.0
"""Below this share of pictures that decode (`verify --deep`) a stream is WARN."""
BLACK_LUMA = 24
"""A picture without a brighter point (`verify --deep`) is black: limited range begins at 16."""
SILENT_DBFS = -70.0
"""Sound whose loudest second stays below this level (`verify --deep`) is WARN: the microphone hears nothing."""
