"""SI units of inertial samples: what a stored value is multiplied by. Pure."""

from __future__ import annotations

import math

RAD_PER_S = {"deg_per_s": math.pi / 180, "rad_per_s": 1.0}
"""Unit that a gyroscope sends, by its name in rig files and alignments -> rad/s in one of it."""

ALREADY_SI = ("m/s^2",)
"""Units of streams whose values need no factor."""
