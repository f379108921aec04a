"""`annotations/` of a recording: what people marked in its film, every version of it, and the one that was accepted.

Each file carries its own checksum. Times are frames of the camera's film, counted from 1, both ends belong to a step.
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
"""Small films that were handed to annotators: their hashes, rates and lengths."""
PUSHED = "pushed.json"
"""Where tasks of the recording are: servers and projects."""
ACCEPTED_SCHEMA, VERSION_SCHEMA, FILMS_SCHEMA = "accepted-steps/1", "marked-steps/1", "annotated-films/1"
PUSHED_SCHEMA = "pushed-tasks/1"
JUDGED = {
    "errors": "judged-errors/1",
    "questions": "verified-questions/1",
    "evidence": "marked-evidence/1",
    "decisions": "decisions-of-people/1",
    "ratings": "ratings-of-people/1",
}
"""What people judge -> the schema of what is kept of it."""

Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AcceptedStep:
    """One time that a step was done: first and last frame of the film."""

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
    """The accepted step times of a video, and which version they are."""

    version: int
    author: str
    steps: tuple[AcceptedStep, ...]

    def spans_s(self, node: int) -> list[tuple[float, float]]:
        """Return [from, to) of a step in seconds of the film, in time order."""
        mine = sorted((one.start_frame, one.end_frame) for one in self.steps if one.node == node)
        return [(float((start - 1) / self.fps), float(end / self.fps)) for start, end in mine]


def accepted_steps(recording: Path) -> AcceptedSteps | None:
    """Return the accepted step times; None where none were accepted. Raises BadAnnotations."""
    content = read_annotations(recording, ACCEPTED, ACCEPTED_SCHEMA)
    if content is None:
        return None
    steps = tuple(
        AcceptedStep(step["node"], step["start_frame"], step["end_frame"]) for step in content["steps"]
    )
    fps = Fraction(content["fps"])
    return AcceptedSteps(fps, content["frames"], content["version"], content["author"], steps)


def read_annotations(recording: Path, name: str, schema: str) -> Content | None:
    """Read a file of `annotations/`; None where it is not there. Raises BadAnnotations, OSError."""
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
    """Write a file of `annotations/`, whole and synced. Raises OSError."""
    write_whole(recording / FOLDER / name, [checked_json(content, indent=1)], PART_SUFFIX)
    note_change(recording)


@contextmanager
def editing(recording: Path) -> Iterator[None]:
    """Make the folder, and keep other processes from writing into it meanwhile. Raises OSError."""
    folder = recording / FOLDER
    folder.mkdir(exist_ok=True)
    with locked_folder(folder):
        yield


def versions(recording: Path) -> dict[int, Content]:
    """Return every version of the marked steps by its number, rising. Raises BadAnnotations."""
    found = {}
    for path in (recording / FOLDER).glob("steps-*.json"):
        number = path.stem.removeprefix("steps-")
        if number.isdecimal() and (content := read_annotations(recording, path.name, VERSION_SCHEMA)):
            found[int(number)] = content
    return dict(sorted(found.items()))


def add_version(recording: Path, content: Content) -> tuple[int, bool]:
    """Keep marked steps unless they are kept; return the number, and if it is new. Raises BadAnnotations, OSError."""
    with editing(recording):
        kept = versions(recording)
        same = [number for number, one in kept.items() if _marked(one) == _marked(content)]
        mine = [n for n, one in kept.items() if one["annotation"] == content["annotation"]]
        if same and same[-1] == max(mine, default=0):
            return same[-1], False
        number = max(kept, default=0) + 1
        write_annotations(recording, f"steps-{number}.json", {"schema": VERSION_SCHEMA, **content})
        return number, True


def add_judged(recording: Path, kind: str, content: Content) -> int:
    """Keep what people judged, of a kind of `JUDGED`, under the next number; return it. Raises OSError."""
    with editing(recording):
        number = max(_numbers(recording, kind), default=0) + 1
        write_annotations(recording, f"{kind}-{number}.json", {"schema": JUDGED[kind], **content})
        return number


def newest_judged(recording: Path, kind: str) -> Content | None:
    """Return the newest that was kept of a kind; None where there is none. Raises BadAnnotations, OSError."""
    newest = max(_numbers(recording, kind), default=0)
    return read_annotations(recording, f"{kind}-{newest}.json", JUDGED[kind])


def _numbers(recording: Path, kind: str) -> list[int]:
    numbers = (path.stem.removeprefix(f"{kind}-") for path in (recording / FOLDER).glob(f"{kind}-*.json"))
    return [int(number) for number in numbers if number.isdecimal()]


def _marked(content: Content) -> str:
    """Return what makes a version: where it comes from, in which film, and what was marked."""
    return json.dumps([content[key] for key in ("source", "film", "raw")], sort_keys=True)
