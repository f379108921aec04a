"""CSV of the VGG Image Annotator (version 3): one row a span of a film, seconds, labels by attribute."""

from __future__ import annotations

import csv
import io
from decimal import Decimal, InvalidOperation
from pathlib import PurePosixPath
from typing import Any

from recipe_app.annotation.forms.timed_marks import NOBODY, Marked, TimedMark
from recipe_app.errors import BadGraph
from sensors.untrusted_json import BadJson, parse_json

COLUMNS = ["metadata_id", "file_list", "flags", "temporal_coordinates", "spatial_coordinates", "metadata"]
_ATTRIBUTES = ("# ATTRIBUTE = ", "# ATTRIBUTES = ")


def parse_via(content: bytes, name: str) -> list[Marked]:
    """Read the spans of every film; marks of one instant are no steps and are left out. Raises BadGraph."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise BadGraph(name, f"byte {error.start}", "not UTF-8") from error
    if not any(line.startswith(f"# CSV_HEADER = {','.join(COLUMNS)}") for line in lines):
        raise BadGraph(name, "", "is no CSV of the VGG Image Annotator 3")
    options = _options(lines, name)
    found: dict[str, list[TimedMark]] = {}
    try:
        for row in csv.reader(io.StringIO("\n".join(line for line in lines if not line.startswith("#")))):
            if row:
                film, mark = _row(row, options, name)
                found.setdefault(film, []).extend([mark] if mark else [])
    except csv.Error as error:
        raise BadGraph(name, "", f"is no CSV ({error})") from error
    return [Marked(PurePosixPath(film).stem, tuple(marks)) for film, marks in found.items()]


def _row(row: list[str], options: dict[str, Any], name: str) -> tuple[str, TimedMark | None]:
    place = f"row {row[0]}"
    if len(row) < len(COLUMNS):
        raise BadGraph(name, place, f"has {len(row)} columns, not {len(COLUMNS)}")
    films, values = _json(row[1], list, place, name), _json(row[5], dict, place, name)
    times = row[3].strip("[] ").split(",")
    if not films or len(times) != 2:
        return str(films[0]) if films else "", None
    label = next((_text(number, value, options) for number, value in values.items() if value), "")
    return str(films[0]), TimedMark(
        label, _ns(times[0], place, name), _ns(times[1], place, name), NOBODY, place
    )


def _text(number: str, value: Any, options: dict[str, Any]) -> str:
    """Return the text of a label: what was written, or the option that was chosen."""
    attribute = options.get(number)
    choices = attribute.get("options") if isinstance(attribute, dict) else None
    return str(choices.get(value, value) if isinstance(choices, dict) and choices else value).strip()


def _options(lines: list[str], name: str) -> dict[str, Any]:
    for line in lines:
        for start in _ATTRIBUTES:
            if line.startswith(start):
                found: dict[str, Any] = _json(line.removeprefix(start), dict, "ATTRIBUTE", name)
                return found
    return {}


def _json(text: str, kind: type, place: str, name: str) -> Any:
    try:
        found = parse_json(text)
    except BadJson as error:
        raise BadGraph(name, place, str(error)) from error
    if not isinstance(found, kind):
        raise BadGraph(name, place, f"{text[:40]!r} is not what the tool writes")
    return found


def _ns(text: str, place: str, name: str) -> int:
    try:
        at_s = Decimal(text.strip())
    except InvalidOperation:
        at_s = Decimal(-1)
    if not (at_s.is_finite() and 0 <= at_s < 10**7):
        raise BadGraph(name, place, f"{text.strip()[:20]!r} is no number of seconds")
    return int((at_s * 10**9).to_integral_value())
