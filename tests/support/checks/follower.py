"""Follows one packet through the source: in which order which modules hold its bytes, or the samples in them."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np

from kitchensync.sensors.hololens.streams import inertial_samples as imu

ROOT = Path(__file__).resolve().parents[3]


class Follower:
    """Notes in `modules` who holds the packet while it is entered, in whatever they hold it."""

    def __init__(self, payload: bytes) -> None:
        samples = imu.decode_samples("followed", payload)
        middle = len(samples) // 2
        self._bytes = samples[middle : middle + 2].tobytes()
        self._sample = samples["xyz"][middle].astype(np.float64)
        self._seen = dict[str, None]()

    @property
    def modules(self) -> list[str]:
        return list(self._seen)

    def __enter__(self) -> Self:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not path.startswith(f"{ROOT}/") or "/.venv/" in path:
            return
        module = path.removeprefix(f"{ROOT}/")
        if module.startswith("tests/") or module in self._seen:
            return
        if any(self._holds(value) for value in list(frame.f_locals.values())):
            self._seen[module] = None

    def _holds(self, value: Any, depth: int = 0) -> bool:
        if isinstance(value, bytes | bytearray):
            return self._bytes in value
        if isinstance(value, memoryview):
            return self._bytes in value.tobytes()
        if isinstance(value, np.ndarray):
            return self._is_in(value)
        parts = value if isinstance(value, tuple | list) and depth < 3 else ()
        return any(self._holds(part, depth + 1) for part in parts)

    def _is_in(self, array: np.ndarray) -> bool:
        if array.dtype.kind == "f" and array.ndim == 2 and array.shape[1] == 3:
            return bool((array == self._sample).all(axis=1).any())
        return array.dtype != object and self._bytes in array.tobytes()
