"""`annotations/` of a recording: all versions of the marks in its film, and the accepted one.

Each file has its own checksum. Times are frames of the camera's film from 1; both ends belong to a step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from kitchensync.shell.files_on_disk import read_plain
from kitchensync.shell.untrusted_json import MOST_BYTES, BadJson, parse_object
from kitchensync.storage.disk.durable import write_whole
from kitchensync.storage.disk.folder_lock import locked_folder
from kitchensync.storage.disk.self_check import CHECK, checked_json, is_sound
from kitchensync.storage.errors import BadAnnotations
from kitchensync.storage.manifest import note_change
from kitchensync.storage.names import PART_SUFFIX
from kitchensync.storage.recording_files.annotation_forms import misfit

FOLDER = "annotations"
ACCEPTED = "accepted.json"
FILMS = "films.json"
"""Small films of annotators: their hashes, rates and lengths."""
PUSHED = "pushed.json"
"""Servers and projects with tasks of the recording."""
ACCEPTED_SCHEMA, VERSION_SCHEMA, FILMS_SCHEMA = "accepted-steps/1", "marked-steps/1", "annotated-films/1"
PUSHED_SCHEMA = "pushed-tasks/1"
JUDGED = {
    "errors": "judged-errors/1",
    "questions": "verified-questions/1",
    "evidence": "marked-evidence/1",
    "decisions": "decisions-of-people/1",
    "ratings": "ratings-of-people/1",
}
"""Kind of judgement -> schema of its file."""

Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AcceptedStep:
    """One execution of a step: first and last frame of the film."""

    node: int
    start_frame: int
    end_frame: int


@dataclass(frozen=True, slots=True)
class MarkedVideo:
    """The rate and length of a video that people marked."""

    fps: Fraction
    frames: int


@dataclass(frozen=True, slots=True)
class AcceptedSteps(MarkedVideo):
    """The accepted step times of a video, and their version."""

    version: int
    author: str
    steps: tuple[AcceptedStep, ...]

    def spans_s(self, node: int) -> list[tuple[float, float]]:
        """Return [from, to) of a step in seconds of the film, in time order."""
        frames = sorted((step.start_frame, step.end_frame) for step in self.steps if step.node == node)
        return [(float((start - 1) / self.fps), float(end / self.fps)) for start, end in frames]


def accepted_steps(recording: Path) -> AcceptedSteps | None:
    """Return the accepted step times, or None. Raises BadAnnotations."""
    content = read_annotations(recording, ACCEPTED, ACCEPTED_SCHEMA)
    if content is None:
        return None
    steps = tuple(
        AcceptedStep(step["node"], step["start_frame"], step["end_frame"]) for step in content["steps"]
    )
    fps = Fraction(content["fps"])
    return AcceptedSteps(fps, content["frames"], content["version"], content["author"], steps)


def read_annotations(recording: Path, name: str, schema: str) -> Content | None:
    """Read a file of `annotations/`; None if it is missing. Raises BadAnnotations, OSError."""
    path = recording / FOLDER / name
    try:
        text = read_plain(path, MOST_BYTES)
    except FileNotFoundError:
        return None
    if is_sound(text) is not True:
        raise BadAnnotations(path, "is not what was written")
    try:
        content = parse_object(text)
    except BadJson as error:
        raise BadAnnotations(path, str(error)) from error
    if content.get("schema") != schema:
        raise BadAnnotations(path, f"has not the schema {schema}")
    if why := misfit(text, schema):
        raise BadAnnotations(path, why)
    return {key: value for key, value in content.items() if key != CHECK}


def films_of(recording: Path) -> list[Content]:
    """Return the videos exported for annotators, the newest last. Raises BadAnnotations, OSError."""
    return list((read_annotations(recording, FILMS, FILMS_SCHEMA) or {"films": []})["films"])


def write_annotations(recording: Path, name: str, content: Content) -> None:
    """Write a file of `annotations/` atomically and synced. Raises OSError."""
    write_whole(recording / FOLDER / name, [checked_json(content, indent=1)], PART_SUFFIX)
    note_change(recording)


@contextmanager
def editing(recording: Path) -> Iterator[None]:
    """Create the folder, and lock it against writes of other processes. Raises OSError."""
    folder = recording / FOLDER
    folder.mkdir(exist_ok=True)
    with locked_folder(folder):
        yield


def versions(recording: Path) -> dict[int, Content]:
    """Return every version of the marked steps by its number, rising. Raises BadAnnotations."""
    contents = {}
    for path in (recording / FOLDER).glob("steps-*.json"):
        number = path.stem.removeprefix("steps-")
        if number.isdecimal() and (content := read_annotations(recording, path.name, VERSION_SCHEMA)):
            contents[int(number)] = content
    return dict(sorted(contents.items()))


def add_version(recording: Path, content: Content) -> tuple[int, bool]:
    """Store new marked steps; return their number, and whether they are new. Raises BadAnnotations, OSError."""
    with editing(recording):
        kept = versions(recording)
        same = [number for number, version in kept.items() if _marked(version) == _marked(content)]
        own = [n for n, version in kept.items() if version["annotation"] == content["annotation"]]
        if same and same[-1] == max(own, default=0):
            return same[-1], False
        number = max(kept, default=0) + 1
        write_annotations(recording, f"steps-{number}.json", {"schema": VERSION_SCHEMA, **content})
        return number, True


def add_judged(recording: Path, kind: str, content: Content) -> int:
    """Store judgements of a kind of `JUDGED` under the next number; return it. Raises OSError."""
    with editing(recording):
        number = max(_numbers(recording, kind), default=0) + 1
        write_annotations(recording, f"{kind}-{number}.json", {"schema": JUDGED[kind], **content})
        return number


def newest_judged(recording: Path, kind: str) -> Content | None:
    """Return the newest judgements of a kind, or None. Raises BadAnnotations, OSError."""
    newest = max(_numbers(recording, kind), default=0)
    return read_annotations(recording, f"{kind}-{newest}.json", JUDGED[kind])


def _numbers(recording: Path, kind: str) -> list[int]:
    numbers = (path.stem.removeprefix(f"{kind}-") for path in (recording / FOLDER).glob(f"{kind}-*.json"))
    return [int(number) for number in numbers if number.isdecimal()]


def _marked(content: Content) -> str:
    """Return the identity of a version: source, film and marks."""
    return json.dumps([content[key] for key in ("source", "film", "raw")], sort_keys=True)
