"""Write a data set from recording folders: films first, then the texts, the checksums last."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recipe_app.releases.cards.about import About
from recipe_app.releases.cards.write_cards import write_cards
from recipe_app.releases.data_set import LINKS, Cooked, Member, numbered, text_files
from recipe_app.releases.entries import entries_of
from recipe_app.releases.numbering import Numbering
from recipe_app.releases.own import NotReleasable, OwnRecording
from recipe_app.releases.own_splits import own_splits
from recipe_app.releases.release_media import Media, MediaWriter, Tell, Work, work_of
from sensors.errors import SensorError
from storage.errors import StorageError, words_of
from storage.shell.outputs import write_into
from storage.trouble import pass_on_trouble


@dataclass
class Released:
    """What came of it, recording by recording."""

    members: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    no_splits: dict[str, str] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class _Ready:
    """A recording that may be released, with its published id and the pictures of its film."""

    path: Path
    member: Member
    pictures: int
    is_virtual: bool


def release(
    paths: Iterable[Path],
    out: Path,
    numbering: Numbering,
    about: About,
    *,
    media: tuple[str, ...],
    force: bool,
    tell: Tell,
    keep: Callable[[], None],
) -> Released:
    """Write the recordings that may be released into `out`; say of the others why they are left out.

    `keep` is called when all ids are given, before a film is written: an interrupted release goes on with them. One
    recording is open at a time. Raises NotReleasable when none may, CannotWrite.
    """
    result = Released()
    ready = [one for path in paths if (one := _ready(path, numbering, result)) is not None]
    if not ready:
        raise NotReleasable("; ".join(f"{one['recording']}: {one['why']}" for one in result.left_out))
    keep()
    links: dict[str, dict[str, str]] = {}
    work = Work(tell, sum(work_of(media, one.pictures) for one in ready))
    for one in ready:
        with OwnRecording.open(one.path) as own:
            made = MediaWriter(own, one.member.published_id, out, force, work).write(media)
            result.members.append(_said(own, one.member, made))
        links[one.member.published_id] = made.links
    members = [one.member for one in ready]
    splits, kept, result.no_splits = own_splits(out, [member.annotated for member in members])
    texts = text_files(members, numbering) | {LINKS: json.dumps(links, indent=4)} | splits
    write_into(out, {path: text.encode() for path, text in texts.items()}, force=force)
    names = [*texts, *kept, *(path for kinds in links.values() for path in kinds.values())]
    is_virtual = any(one.is_virtual for one in ready)
    result.files, result.bytes = write_cards(
        out, about, result.members, names, is_virtual=is_virtual, force=force
    )
    return result


def _ready(path: Path, numbering: Numbering, result: Released) -> _Ready | None:
    """Read what was cooked in a recording; None, and why, where it may or can not be released."""
    try:
        with OwnRecording.open(path) as own:
            if not own.camera:
                raise NotReleasable("no camera filmed it: its times have no film to count in")
            own.check_placed()
            member = numbered(_cooked(own, numbering), numbering)
            return _Ready(path, member, len(own.frames), bool(own.manifest.get("virtual")))
    except (StorageError, SensorError, NotReleasable) as error:
        pass_on_trouble(error)
        result.left_out.append({"recording": path.name, "why": words_of(error).removeprefix(f"{path}: ")})
        return None


def _cooked(own: OwnRecording, numbering: Numbering) -> Cooked:
    frozen, manifest = own.state["recording"], own.manifest
    return Cooked(
        uuid=manifest["uuid"],
        recipe=frozen["name"],
        title=frozen["title"],
        person=str(manifest.get("pseudonym") or "unknown"),
        kitchen=str(manifest.get("place") or "unknown"),
        errors_planned=own.errors_planned,
        steps=frozen["steps"],
        edges=frozen["edges"],
        told=entries_of(own.state, own.place, numbering.step),
        film_s=own.film_s,
        facts={
            **{name: frozen[name] for name in ("strategy", "display", "seed")},
            "hidden_s": [[own.frames.place(at).film_s for at in pause] for pause in own.pauses],
        },
    )


def _said(own: OwnRecording, member: Member, media: Media) -> dict[str, Any]:
    """Say of a recording what of it is in the data set; `holes`: frames that have none of a kind."""
    return {
        "recording": own.recording.id,
        "published_id": member.published_id,
        "streams": media.links,
        "absent": media.absent,
        "holes": media.holes,
    }
