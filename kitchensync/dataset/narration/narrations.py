"""The narrations of a recording, as its log tells them, and the list of them that a release holds."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Required, TypedDict, cast

from pydantic import Field

from kitchensync.dataset.narration.sounds import narration_folder
from kitchensync.dataset.narration.spoken import FineNarration, parse
from kitchensync.operations.operation_kinds import Line, Strict
from kitchensync.operations.session_state import Op
from kitchensync.storage.recording_files.annotation_folder import editing, read_annotations, write_annotations

NARRATED, SUBMITTED = "narrate", "submit_narrations"
"""Kinds of the log: what one action says of a narration; that somebody is done."""
Frame = Annotated[int, Field(ge=0, le=10_000_000)]
Name = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]


class Narration(TypedDict, total=False):
    """What somebody said about a moment of the film, as it is kept; frames count from 0."""

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
    """The film that was narrated: pictures a second as numerator and denominator, how many, its hash."""

    fps: list[int]
    frames: int
    sha256: str | None


class KeptNarrations(TypedDict):
    """A version of what one person said."""

    schema: str
    author: str
    kept_utc_ns: int
    film: NarratedVideo
    narrations: list[Narration]


class NarrationChange(Strict):
    """What one action says of a narration; only what is given is changed. Frames count from 0."""

    narration: Name
    frame: Frame | None = None
    end_frame: Frame | None = None
    text: Line | None = None
    source: Annotated[str, Field(pattern="^(typed|pocketsphinx|server)$")] | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    ending: Annotated[str, Field(pattern=r"^\.[a-z0-9]{2,4}$")] | None = None
    removed: bool | None = None


def narrations_of(ops: Iterable[Op], actor: str) -> list[Narration]:
    """Return the narrations of one person in the order of the film."""
    found: dict[str, dict[str, Any]] = {}
    for op in ops:
        if op["kind"] == NARRATED and op["actor"] == actor:
            said = {key: value for key, value in op["body"].items() if value is not None}
            found[said["narration"]] = found.get(said["narration"], {}) | said
    kept = (cast(Narration, one) for one in found.values() if not one.get("removed") and "frame" in one)
    return sorted(kept, key=lambda one: (one["frame"], one["narration"]))


def fine_grained(
    narrations: Sequence[Narration],
    spans: Sequence[tuple[int, float, float]],
    steps: Mapping[int, str],
    fps: Fraction,
) -> list[FineNarration]:
    """Return the narrations of one person with their times in seconds, verb, noun and step.

    `spans` are (node, from, to) of the steps. A narration lies in the step that was done when it was begun; where
    several were, in the one whose words it has most of; where somebody named its step, in that one. Without an end it
    lasts to the next one, or to the end of its step.
    """
    begun_s = [float(one["frame"] / fps) for one in narrations]
    found: list[FineNarration] = []
    for one, start_s, later_s in zip(narrations, begun_s, [*begun_s[1:], float("inf")], strict=True):
        at = [span for span in spans if span[1] <= start_s < span[2]]
        named = [one["node"]] if "node" in one else [node for node, *_ in at]
        said = parse(
            one.get("text", ""), [steps[node] for node in named if node in steps] or list(steps.values())
        )
        words = set(one.get("text", "").lower().split())
        node, _, end_s = max(
            at,
            key=lambda span: len(words & set(steps[span[0]].lower().split())),
            default=(None, 0.0, start_s),
        )
        stated = one.get("end_frame")
        found.append(
            {
                "start": round(start_s, 3),
                "end": round(min(end_s, later_s) if stated is None else float((stated + 1) / fps), 3),
                "text": one.get("text", ""),
                "verb": said.verb,
                "noun": said.noun,
                "step": one.get("node", node),
                "source": one.get("source", "typed"),
            }
        )
    return found


def drawn(recordings: Mapping[str, str], seed: int, share: Fraction = Fraction(1, 5)) -> frozenset[str]:
    """Draw the recordings to narrate, name -> recipe: a share of each recipe's, rounded up, the same for one seed.

    Each recording has a place of its own in the draw: another one that arrives displaces one at most.
    """
    found: set[str] = set()
    for recipe in set(recordings.values()):
        names = sorted((name for name, its in recordings.items() if its == recipe), key=partial(_lot, seed))
        found |= set(names[: ceil(len(names) * share)])
    return frozenset(found)


def _lot(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


SCHEMA = "narrations/1"
_FILE = "narration/narrations-{}.json"


def keep_narrations(recording: Path, by: str, film: NarratedVideo, narrations: list[Narration]) -> int:
    """Keep a person's narrations as the next version; the same again is none. Raises BadAnnotations, OSError."""
    with editing(recording):
        kept = _versions(recording)
        mine = [number for number, one in kept.items() if one["author"] == by]
        if mine and (kept[mine[-1]]["narrations"], kept[mine[-1]]["film"]) == (narrations, film):
            return mine[-1]
        number = max(kept, default=0) + 1
        narration_folder(recording).mkdir(exist_ok=True)
        content = {"schema": SCHEMA, "author": by, "kept_utc_ns": time.time_ns(), "film": film}
        write_annotations(recording, _FILE.format(number), {**content, "narrations": narrations})
        return number


def released_narrations(
    recording: Path, frames: int, fps: Fraction, spans: list[tuple[int, float, float]], steps: dict[int, str]
) -> dict[str, list[FineNarration]]:
    """Return the newest narrations by author, as a release holds them; those of another film are left out.

    Raises BadAnnotations, OSError.
    """
    newest = {one["author"]: one for _, one in sorted(_versions(recording).items())}
    return {
        author: fine_grained(one["narrations"], spans, steps, fps)
        for author, one in newest.items()
        if (one["film"]["frames"], Fraction(*one["film"]["fps"])) == (frames, fps)
    }


def _versions(recording: Path) -> dict[int, KeptNarrations]:
    found: dict[int, KeptNarrations] = {}
    for path in narration_folder(recording).glob("narrations-*.json"):
        number = path.stem.removeprefix("narrations-")
        if number.isdecimal() and (content := read_annotations(recording, _FILE.format(number), SCHEMA)):
            found[int(number)] = cast(KeptNarrations, content)
    return dict(sorted(found.items()))
