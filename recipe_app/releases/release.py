"""Write a data set from recording folders: films first, then the texts, the checksums last."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recipe_app.releases.data_set import LINKS, Cooked, Member, numbered, text_files
from recipe_app.releases.entries import entries_of
from recipe_app.releases.numbering import Numbering
from recipe_app.releases.own import NotReleasable, OwnRecording
from recipe_app.releases.release_media import Media, MediaWriter, Tell
from sensors.files_on_disk import file_sha256
from storage.errors import StorageError, words_of
from storage.shell.outputs import write_into

SUMS = "SHA256SUMS"


@dataclass
class Released:
    """What came of it, recording by recording."""

    members: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    files: int = 0
    bytes: int = 0


def release(
    paths: Iterable[Path], out: Path, numbering: Numbering, *, media: tuple[str, ...], force: bool, tell: Tell
) -> Released:
    """Write the recordings that may be released into `out`; say of the others why they are left out.

    Raises NotReleasable when none may, CannotWrite.
    """
    result = Released()
    own = list(_opened(paths, result))
    if not own:
        raise NotReleasable("; ".join(f"{one['recording']}: {one['why']}" for one in result.left_out))
    members = [numbered(_cooked(recording, numbering), numbering) for recording in own]
    links: dict[str, dict[str, str]] = {}
    for recording, member in zip(own, members, strict=True):
        made = MediaWriter(recording, member.published_id, out, force, tell).write(media)
        links[member.published_id] = made.links
        result.members.append(_said(recording, member, made))
    texts = text_files(members, numbering) | {LINKS: json.dumps(links, indent=4)}
    write_into(out, {path: text.encode() for path, text in texts.items()}, force=force)
    sums = checksums(out, [*texts, *(path for kinds in links.values() for path in kinds.values())])
    write_into(out, {SUMS: sums.encode()}, force=force)
    names = [line.partition("  ")[2] for line in sums.splitlines()]
    result.files, result.bytes = len(names) + 1, sum((out / name).stat().st_size for name in [*names, SUMS])
    return result


def checksums(out: Path, names: Iterable[str]) -> str:
    """Return the lines of `SHA256SUMS`, as `sha256sum -c` reads them."""
    return "".join(f"{file_sha256(out / name)}  {name}\n" for name in sorted(names))


def _opened(paths: Iterable[Path], result: Released) -> Iterator[OwnRecording]:
    for path in paths:
        try:
            own = OwnRecording.open(path)
            if not own.camera:
                raise NotReleasable("no camera filmed it: its times have no film to count in")
            own.check_placed()
        except (StorageError, NotReleasable) as error:
            result.left_out.append({"recording": path.name, "why": words_of(error).removeprefix(f"{path}: ")})
        else:
            yield own


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
        film_s=float(own.take.duration_s),
        facts={"strategy": frozen["strategy"], "display": frozen["display"], "seed": frozen["seed"]},
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
