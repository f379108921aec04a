"""The repository, the package in it, and the files of the product."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "kitchensync"


def product_files() -> Iterator[Path]:
    """Yield the modules of the product. The virtual kitchen is not part of it."""
    yield from (path for path in sorted(PACKAGE.rglob("*.py")) if "virtual_kitchen" not in path.parts)
