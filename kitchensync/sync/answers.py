"""What every answer of `sync` needs; it is light, so that a run over many recordings starts at once."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np


def software_version() -> str:
    """Version of this software, as installed."""
    try:
        return version("kitchensync")
    except PackageNotFoundError:
        return "unknown"


def plain(value: Any) -> Any:
    """Make a value JSON-able: numpy scalars become Python's, and what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
