"""Read a data set folder: annotations, video lengths, and the lines of kitchensync.jsonl."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat

from kitchensync.dataset.source.data_set import BESIDE
from kitchensync.shell.files_on_disk import check_plain
from kitchensync.shell.untrusted_json import parse_object
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import COMPLETE, VIDEOS, Annotations
from kitchensync.task_graphs.formats.graph_files import MAX_ANNOTATION_BYTES, read_annotations, read_text


@dataclass(frozen=True)
class DataSet:
    """A data set; `lengths_s` and `facts` by recording id, `facts` only in a lab's own release."""

    annotations: Annotations
    lengths_s: dict[str, float]
    is_own: bool = False
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    stated: list[dict[str, Any]] = field(default_factory=list)
    "Lines about recipes and participants, for the statistics."


def is_published(folder: Path) -> bool:
    """Return whether a folder is in the published form."""
    return (folder / COMPLETE).is_file()


def read_data_set(folder: Path) -> DataSet:
    """Read a folder in the published form. Raises BadGraph."""
    annotations = read_annotations(folder)
    refuse_contradictions(annotations, folder.name)
    beside = folder / BESIDE
    text = read_text(beside, most_bytes=MAX_ANNOTATION_BYTES) if beside.exists() else ""
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            lines.append(parse_fact(line))
        except ValueError as error:
            raise BadGraph(BESIDE, f"line {number}", "not a line that `release` writes") from error
    facts = {line["recording_id"]: line for line in lines if line["kind"] == "recording"}
    stated = [line for line in lines if line["kind"] in ("recipe", "participants")]
    return DataSet(annotations, _lengths(annotations), beside.exists(), facts, stated)


def lacking_in(facts: Mapping[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return, for each recording with gaps during an entry, a line for each stream with gaps."""
    lines = {
        name: [row["said"] for row in line.get("lacking", []) if row["entries"]]
        for name, line in facts.items()
    }
    return {name: listed for name, listed in lines.items() if listed}


def refuse_links(folder: Path) -> None:
    """Refuse a folder with links, pipes or devices in it: their targets would be copied. Raises BadGraph."""
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            try:
                check_plain(path)
            except OSError as error:
                where = path.relative_to(folder).as_posix()
                raise BadGraph(where, "", f"is {error.strerror}") from error


def refuse_contradictions(annotations: Annotations, name: str) -> None:
    """Refuse annotations whose files contradict each other. Raises BadGraph."""
    if contrary := annotations.contradictions:
        raise BadGraph(name, contrary[0], "two files disagree on its steps; take both from one release")


def _lengths(annotations: Annotations) -> dict[str, float]:
    """Return the length of each video in seconds, from the last column of the table."""
    lengths = {}
    for number, row in enumerate(annotations.videos[1:], start=2):
        try:
            int(row[1]), int(row[2])
            lengths[row[0]] = float(row[4])
            if not math.isfinite(lengths[row[0]]):
                raise ValueError("no number")
        except (ValueError, IndexError) as error:
            why = "no kitchen, person and length in seconds in columns 2, 3 and 5"
            raise BadGraph(VIDEOS, f"line {number}", why) from error
    return lengths


class _Facts(BaseModel):
    model_config = ConfigDict(strict=True)


class LackingFact(_Facts):
    """Gaps of a stream as a sentence, and the entries they overlap."""

    said: str
    entries: list[int]


class AlignedFilm(_Facts):
    """Alignment errors of a video file, milliseconds; None if not known."""

    said: str = ""
    gyroscopes_within_ms: FiniteFloat | None
    pictures_within_ms: FiniteFloat | None


class FactLine(_Facts):
    """A line about a recording, an entry, a recipe or the participants; other keys are allowed."""

    kind: str
    recording_id: str = ""
    entry: int = -1
    lacking: list[LackingFact] = []
    alignment: list[AlignedFilm] = []
    hidden_s: list[tuple[FiniteFloat, FiniteFloat]] = []
    heating: list[str] = []
    skills: list[str] = []
    tools: list[str] = []
    age: dict[str, int] = {}
    cooks: dict[str, int] = {}
    gender: dict[str, int] = {}
    hand: dict[str, int] = {}


def parse_fact(line: str) -> dict[str, Any]:
    """Parse a line of kitchensync.jsonl. Raises ValueError if `release` would not write it."""
    fact = parse_object(line)
    FactLine.model_validate_json(line)
    if fact["kind"] in ("recording", "entry") and "recording_id" not in fact:
        raise ValueError("names no recording")
    return fact
