"""Work whose process dies over some recordings; it is sent to worker processes by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def work(path: Path) -> dict[str, Any]:
    """Report which process works; die over whoever is called so."""
    if path.name.startswith("dies"):
        os._exit(9)
    return {"recording": path.name, "pid": os.getpid()}


def not_done(path: Path, reason: str) -> dict[str, Any]:
    """Say that it died."""
    return {"recording": path.name, "error": reason}
