"""The narrations of a recording: read from its log, kept in versions, and listed for a release."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Required, TypedDict, cast

from pydantic import Field

from kitchensync.dataset.narration.sounds import narration_folder
from kitchensync.dataset.narration.spoken import FineNarration, parse
from kitchensync.operations.operation_kinds import Line, Strict
from kitchensync.operations.session_state import Op
from kitchensync.storage.recording_files.annotation_folder import editing, read_annotations, write_annotations

NARRATED, SUBMITTED = "narrate", "submit_narrations"
"""Kinds of log operations: a change of a narration; a person has finished."""
Frame = Annotated[int, Field(ge=0, le=10_000_000)]
Name = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]


class Narration(TypedDict, total=False):
    """A stored narration of a moment of the video; frames count from 0."""

    narration: Required[str]
    frame: Required[int]
    end_frame: int
    text: str
    node: int
    source: str
    sha256: str
    ending: str
    sound: str
    removed: bool


class NarratedVideo(TypedDict):
    """The narrated video: frame rate as numerator and denominator, frame count, hash."""

    fps: list[int]
    frames: int
    sha256: str | None


class KeptNarrations(TypedDict):
    """A version of one person's narrations."""

    schema: str
    author: str
    kept_utc_ns: int
    film: NarratedVideo
    narrations: list[Narration]


class NarrationChange(Strict):
    """A change of a narration; only fields that are set change. Frames count from 0."""

    narration: Name
    frame: Frame | None = None
    end_frame: Frame | None = None
    text: Line | None = None
    source: Annotated[str, Field(pattern="^(typed|pocketsphinx|server)$")] | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    ending: Annotated[str, Field(pattern=r"^\.[a-z0-9]{2,4}$")] | None = None
    removed: bool | None = None


def narrations_of(ops: Iterable[Op], actor: str) -> list[Narration]:
    """Return the narrations of one person in the order of the video."""
    narrations: dict[str, dict[str, object]] = {}
    for op in ops:
        if op["kind"] == NARRATED and op["actor"] == actor:
            change = {key: value for key, value in op["body"].items() if value is not None}
            narrations.setdefault(change["narration"], {}).update(change)
    kept = (cast(Narration, n) for n in narrations.values() if not n.get("removed") and "frame" in n)
    return sorted(kept, key=itemgetter("frame", "narration"))


def fine_grained(
    narrations: Sequence[Narration],
    spans: Sequence[tuple[int, float, float]],
    steps: Mapping[int, str],
    fps: Fraction,
) -> list[FineNarration]:
    """Return the narrations of one person with their times in seconds, verb, noun and step.

    `spans` are (node, from, to) of the steps. The step of a narration is the one its author named, else the one in
    progress at its start; of several, the one with most words in common. A narration without an end lasts until the
    next narration or the end of its step.
    """
    starts_s = [float(narration["frame"] / fps) for narration in narrations]
    rows: list[FineNarration] = []
    for narration, start_s, next_s in zip(narrations, starts_s, [*starts_s[1:], float("inf")], strict=True):
        text = narration.get("text", "")
        at_start = [span for span in spans if span[1] <= start_s < span[2]]
        nodes = [narration["node"]] if "node" in narration else [node for node, *_ in at_start]
        parsed = parse(text, [steps[node] for node in nodes if node in steps] or list(steps.values()))
        words = set(text.lower().split())
        node, _, end_s = max(
            at_start,
            key=lambda span: len(words & set(steps[span[0]].lower().split())),
            default=(None, 0.0, start_s),
        )
        end_frame = narration.get("end_frame")
        rows.append(
            {
                "start": round(start_s, 3),
                "end": round(min(end_s, next_s) if end_frame is None else float((end_frame + 1) / fps), 3),
                "text": text,
                "verb": parsed.verb,
                "noun": parsed.noun,
                "step": narration.get("node", node),
                "source": narration.get("source", "typed"),
            }
        )
    return rows


def draw_recordings(
    recordings: Mapping[str, str], seed: int, share: Fraction = Fraction(1, 5)
) -> frozenset[str]:
    """Draw recordings to narrate, name -> recipe: a share of each recipe, rounded up, the same for one seed.

    The rank of a recording depends only on its name: a new recording displaces at most one other.
    """

    def rank(name: str) -> bytes:
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    drawn: set[str] = set()
    for recipe in set(recordings.values()):
        names = sorted((name for name, of_name in recordings.items() if of_name == recipe), key=rank)
        drawn |= set(names[: ceil(len(names) * share)])
    return frozenset(drawn)


SCHEMA = "narrations/1"
_FILE = "narration/narrations-{}.json"


def keep_narrations(recording: Path, by: str, film: NarratedVideo, narrations: list[Narration]) -> int:
    """Keep a person's narrations as a new version unless nothing changed. Raises BadAnnotations, OSError."""
    with editing(recording):
        versions = _versions(recording)
        own = [number for number, version in versions.items() if version["author"] == by]
        if own and (versions[own[-1]]["narrations"], versions[own[-1]]["film"]) == (narrations, film):
            return own[-1]
        number = max(versions, default=0) + 1
        narration_folder(recording).mkdir(exist_ok=True)
        content = {"schema": SCHEMA, "author": by, "kept_utc_ns": time.time_ns(), "film": film}
        write_annotations(recording, _FILE.format(number), {**content, "narrations": narrations})
        return number


def released_narrations(
    recording: Path, frames: int, fps: Fraction, spans: list[tuple[int, float, float]], steps: dict[int, str]
) -> dict[str, list[FineNarration]]:
    """Return the newest narrations by author, in the form of a release; those of another video are left out.

    Raises BadAnnotations, OSError.
    """
    newest = {version["author"]: version for version in _versions(recording).values()}
    return {
        author: fine_grained(version["narrations"], spans, steps, fps)
        for author, version in newest.items()
        if (version["film"]["frames"], Fraction(*version["film"]["fps"])) == (frames, fps)
    }


def _versions(recording: Path) -> dict[int, KeptNarrations]:
    """Return the kept versions by number, in rising order."""
    versions: dict[int, KeptNarrations] = {}
    for path in narration_folder(recording).glob("narrations-*.json"):
        number = path.stem.removeprefix("narrations-")
        if number.isdecimal() and (content := read_annotations(recording, _FILE.format(number), SCHEMA)):
            versions[int(number)] = cast(KeptNarrations, content)
    return dict(sorted(versions.items()))
