"""All limits of `verify`; they are also in `docs/reference/faults-and-verdicts.md`.

Shares refer to the session: from the first packets of all armed streams until the stop.
"""

from __future__ import annotations

PERIODS = 3.0
"""Maximum covered time between packets, in nominal periods."""
ADAPTIVE_S = 0.5
"""The same for a stream with a variable rate, or stamped on arrival, seconds."""

COVERAGE_WARN, COVERAGE_FAIL = 0.95, 0.5
"""Below the first a stream or a camera is WARN, below the second FAIL."""

RATE_WARN = 0.8
"""Below this share of the nominal rate a stream is WARN; streams with a variable rate have none."""

SILENCE_WARN_S = 2.0
"""A stream without arrivals for longer is WARN, even if its packets arrived afterwards."""

LATE_NOTE_S, LATE_WARN_S = 0.5, 5.0
"""Delay above the shortest one from which a packet is noted, and WARN: a device that is late by seconds lacks as much
at the stop, and the operator sees old data."""

TAIL_S = 0.5
"""Maximum gap at the end that is not counted, as packets are on their way at the stop."""
TAIL_LATE_S = 0.5
"""Maximum delay by which the end of a late stream is moved before the stop."""

HOLE_NAMED_S = 1.0
"""Minimum length of a gap that is reported with the suitable uses, even if coverage is above its limit."""

LOST_S = 1.0
"""Maximum time without tracking of the head, and of constant values of a gaze or sensor, which never happens in a
live one; above it they are WARN."""
STILL_SLOW_S = 5.0
"""The same for a sensor with few coarse samples per second, such as a magnetometer."""

HEAD_TRACKED_WARN = 0.5
"""Below this share of packets with a head position the poses are WARN. Hands and gaze leave the view: only noted."""

CAMERA_SLOW_BYTES_PER_S = 1_000_000
"""Below this rate the download of camera files is noted."""

DECODED_WARN = 1.0
"""Below this share of decodable pictures (`verify --deep`) a stream is WARN."""
BLACK_LUMA = 24
"""Maximum brightness of a black picture (`verify --deep`); limited range begins at 16."""
SILENT_DBFS = -70.0
"""Below this level of the loudest second (`verify --deep`) sound is WARN, as of a dead microphone."""
