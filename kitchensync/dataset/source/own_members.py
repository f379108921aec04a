"""Read a lab's own recordings as members of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypedDict, cast

from kitchensync.dataset.narration.narrations import released_narrations
from kitchensync.dataset.source.data_set import Cooked, Member, SpokenNarration, numbered
from kitchensync.dataset.source.numbering import Numbering, number_of
from kitchensync.dataset.source.own_recording import NotReleasable, OwnRecording
from kitchensync.operations.entries import entries_of
from kitchensync.operations.error_rows import error_rows
from kitchensync.sensors.errors import SensorError
from kitchensync.storage.consent import Purpose, why_not
from kitchensync.storage.errors import StorageError, pass_on_trouble, words_of


class LeftOut(TypedDict):
    """A recording that is not released, and the reason."""

    recording: str
    why: str


@dataclass(frozen=True)
class Ready:
    """A recording that may be released, with its published id; its video has `pictures` frames, `fps` a second.

    `not_agreed` is why it lacks consent, if it is used without.
    """

    path: Path
    member: Member
    pictures: int
    fps: Fraction
    is_virtual: bool
    not_agreed: str = ""


def read_member(
    path: Path, numbering: Numbering, left_out: list[LeftOut], *, without_consent: str = ""
) -> Ready | None:
    """Read a recording for release; if it cannot be released, append the reason to `left_out` and return None."""
    try:
        with OwnRecording.open(path, without_consent=without_consent) as own:
            own.check_filmed()
            own.check_placed()
            member = numbered(read_cooked(own, numbering), numbering)
            is_virtual = bool(own.manifest.get("virtual"))
            not_agreed = why_not(own.manifest, Purpose.RELEASE_RAW)
            return Ready(path, member, len(own.frames), own.frames.fps, is_virtual, not_agreed)
    except (StorageError, SensorError, NotReleasable) as error:
        pass_on_trouble(error)
        left_out.append({"recording": path.name, "why": words_of(error).removeprefix(f"{path}: ")})
        return None


def nothing_releasable(left_out: list[LeftOut]) -> NotReleasable:
    """Return the error for recordings that may all not be released."""
    return NotReleasable("; ".join(f"{row['recording']}: {row['why']}" for row in left_out))


def read_cooked(own: OwnRecording, numbering: Numbering) -> Cooked:
    """Read the annotations, errors and narrations of a recording."""
    frozen, manifest = own.state["recording"], own.manifest
    entries = entries_of(own.state, own.place, numbering.step, own.accepted)
    spans = [(n.node, n.entry.start_s, n.entry.end_s) for n in entries if n.entry.start_s >= 0]
    steps = {int(node): step["text"] for node, step in frozen["steps"].items()}
    by_author = released_narrations(own.recording.path, len(own.frames), own.frames.fps, spans, steps)
    narrated: list[SpokenNarration] = [  # speakers and participants share one numbering
        {**row, "speaker": number_of(numbering.persons, author)}
        for author, rows in by_author.items()
        for row in rows
    ]
    return Cooked(
        uuid=cast(str, manifest["uuid"]),
        recipe=frozen["name"],
        title=frozen["title"],
        person=str(manifest.get("pseudonym") or "unknown"),
        kitchen=str(manifest.get("place") or "unknown"),
        errors_planned=own.errors_planned,
        steps=frozen["steps"],
        edges=frozen["edges"],
        entries=entries,
        film_s=own.film_s,
        errors=error_rows(own.recording.path.name, own.state, own.operations, own.place, own.marked_place),
        facts={
            **{name: frozen[name] for name in ("strategy", "display", "seed")},
            "step_times": "touches" if own.accepted is None else f"annotation {own.accepted.version}",
            "alignment": own.alignment,
            "hidden_s": [[own.frames.place(at).film_s for at in pause] for pause in own.pauses],
        },
        narrated=sorted(narrated, key=lambda row: (row["start"], row["end"])),
    )
