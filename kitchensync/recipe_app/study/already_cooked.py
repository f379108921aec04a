"""Recordings that count for a study, and the orders they used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kitchensync.recipe_app.study.error_scripts import hash_of_order
from kitchensync.recipe_app.study.wanted import DISORDERED, CookedSession
from kitchensync.storage.catalogue.kept_lines import catalogue_of
from kitchensync.storage.life import Life
from kitchensync.storage.verify import FAIL, PASS, WARN

ALIGNED = "aligned"
NEEDED = ("recipe", "strategy", "display", "person", "place", "started")


@dataclass(frozen=True, slots=True)
class CookedRecording:
    """A recording that counts, with the order of its steps as shown and the stages it has reached."""

    session: CookedSession
    order: tuple[int, ...]
    path: str
    stages: tuple[str, ...]
    seconds: float | None = None
    categories: tuple[int, ...] = ()
    "Numbers of the planned kinds of errors, set by `as_cooked`."
    script: str = ""
    "Hash of the error script: of the wrong order that was shown, or of planned errors, set by `as_cooked`."


def cooked_below(root: Path) -> tuple[list[CookedRecording], dict[str, str]]:
    """Return the recordings below a folder that count, and the others, path -> reason."""
    with catalogue_of(root) as catalogue:
        return cooked_of(catalogue.lines())


def cooked_of(lines: Iterable[Mapping[str, Any]]) -> tuple[list[CookedRecording], dict[str, str]]:
    """Return the same from the lines of a catalogue."""
    counted: list[CookedRecording] = []
    left_out: dict[str, str] = {}
    for line in lines:
        if reason := _why_not(line):
            left_out[line["path"]] = reason
        else:
            start = datetime.fromisoformat(line["started"])
            session = CookedSession(
                line["recipe"], line["strategy"], line["display"], line["person"], line["place"], start
            )
            reached = {
                "verified": line["verdict"] in (PASS, WARN),
                "aligned": line["alignment"] == ALIGNED,
                "annotated": line["annotated"],
                "consented": line["consented"],
                "releasable": line["releasable"],
            }
            stages = ("recorded", *(stage for stage, is_so in reached.items() if is_so))
            script = hash_of_order(line["order"]) if session.strategy == DISORDERED else ""
            counted.append(
                CookedRecording(
                    session, tuple(line["order"]), line["path"], stages, line["seconds"], script=script
                )
            )
    return counted, left_out


def _why_not(line: Mapping[str, Any]) -> str:
    if "problem" in line:
        return str(line["problem"])
    if line["life"] not in (Life.COMPLETE, Life.ARCHIVED, Life.ELSEWHERE):
        return str(line["life"])
    if line.get("aborted"):
        return f"aborted: {line['aborted']}"
    if line["verdict"] == FAIL:
        return "verify says FAIL"
    known = all(isinstance(line[key], str) for key in NEEDED) and isinstance(line["order"], list)
    return "" if known else "its manifest does not say what was cooked"
