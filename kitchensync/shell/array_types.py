"""Types of arrays that functions take and return; docstrings state their shapes and units."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Floats32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
UInt8 = npt.NDArray[np.uint8]
UInt16 = npt.NDArray[np.uint16]
