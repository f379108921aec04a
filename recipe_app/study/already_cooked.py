"""What of a study really happened: recordings that count, and the orders that they used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recipe_app.study.wanted import CookedSession
from storage.errors import StorageError
from storage.life import Life, life_of, usable_manifest
from storage.listing import recordings_below
from storage.verify import FAIL, kept_verdict


@dataclass(frozen=True, slots=True)
class CookedRecording:
    """A recording that counts, and the order that its recipe was given in."""

    session: CookedSession
    order: tuple[int, ...]
    path: Path


def cooked_below(root: Path) -> tuple[list[CookedRecording], dict[str, str]]:
    """Return the recordings below a folder that count, and of the others why they do not, path -> reason."""
    counted: list[CookedRecording] = []
    left_out: dict[str, str] = {}
    for path in recordings_below(root):
        try:
            reason = _why_not(path)
            if not reason:
                counted.append(_cooked(usable_manifest(path), path))
        except (StorageError, OSError, KeyError, TypeError) as error:
            reason = (
                str(error) if isinstance(error, StorageError) else "its manifest does not say what was cooked"
            )
        if reason:
            left_out[str(path.relative_to(root))] = reason
    return counted, left_out


def _why_not(path: Path) -> str:
    life = life_of(path)
    if life not in (Life.COMPLETE, Life.ARCHIVED, Life.ELSEWHERE):
        return str(life)
    kept = kept_verdict(path)
    return "verify says FAIL" if kept and kept["status"] == FAIL else ""


def _cooked(manifest: dict[str, Any], path: Path) -> CookedRecording:
    recipe, script = manifest["recipe"], manifest["script"]
    start = datetime.fromtimestamp(manifest["started"]["utc_ns"] / 1e9, UTC)
    session = CookedSession(
        recipe["name"], script["strategy"], script["display"], manifest["pseudonym"], manifest["place"], start
    )
    return CookedRecording(session, tuple(recipe["order"]), path)
