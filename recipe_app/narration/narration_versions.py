"""The narrations that people submitted, in the recording's folder: every version, and the newest of each person."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from recipe_app.narration.narrations import Narration, fine_grained
from recipe_app.narration.sounds import narration_folder
from storage.annotation_folder import editing, read_annotations, write_annotations

SCHEMA = "narrations/1"


def keep_narrations(recording: Path, by: str, film: dict[str, Any], narrations: list[Narration]) -> int:
    """Keep a person's narrations as the next version; the same again is none. Raises BadAnnotations, OSError."""
    with editing(recording):
        kept = _versions(recording)
        mine = [number for number, one in kept.items() if one["author"] == by]
        if mine and (kept[mine[-1]]["narrations"], kept[mine[-1]]["film"]) == (narrations, film):
            return mine[-1]
        number = max(kept, default=0) + 1
        narration_folder(recording).mkdir(exist_ok=True)
        content = {"schema": SCHEMA, "author": by, "kept_utc_ns": time.time_ns(), "film": film}
        write_annotations(recording, _name(number), {**content, "narrations": narrations})
        return number


def released_narrations(
    recording: Path, frames: int, fps: Fraction, spans: list[tuple[int, float, float]], steps: dict[int, str]
) -> dict[str, list[Narration]]:
    """Return the newest narrations by author, as a release holds them; those of another film are left out.

    Raises BadAnnotations, OSError.
    """
    newest = {one["author"]: one for _, one in sorted(_versions(recording).items())}
    return {
        author: fine_grained(one["narrations"], spans, steps, fps)
        for author, one in newest.items()
        if (one["film"]["frames"], Fraction(*one["film"]["fps"])) == (frames, fps)
    }


def _name(number: int) -> str:
    return f"narration/narrations-{number}.json"


def _versions(recording: Path) -> dict[int, dict[str, Any]]:
    found = {}
    for path in narration_folder(recording).glob("narrations-*.json"):
        number = int(path.stem.rpartition("-")[2])
        content = read_annotations(recording, _name(number), SCHEMA)
        assert content is not None, "it was listed a moment ago"
        found[number] = content
    return dict(sorted(found.items()))
