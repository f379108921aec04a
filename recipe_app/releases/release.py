"""Write a data set from recording folders: films first, then the texts, the checksums last."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from recipe_app.releases.cards.about import About
from recipe_app.releases.cards.write_cards import write_cards
from recipe_app.releases.data_set import LINKS, Member, text_files
from recipe_app.releases.numbering import Numbering
from recipe_app.releases.own import OwnRecording
from recipe_app.releases.own_set import none_may, read_member
from recipe_app.releases.own_splits import own_splits
from recipe_app.releases.release_media import Media, MediaWriter, Tell, Work, work_of
from recipe_app.releases.released import Released
from storage.shell.outputs import write_into

Stated = Callable[[list[tuple[str, str]], list[str]], list[dict[str, Any]]]
"""Lines of what people say of recipes (name, title) and participants (pseudonyms)."""


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
    stated: Stated = lambda *_: [],
    without_consent: str = "",
) -> Released:
    """Write the recordings that may be released into `out`; say of the others why they are left out.

    `keep` is called when all ids are given, before a film is written: an interrupted release goes on with them. One
    recording is open at a time. `without_consent` is why those are released too to which nobody agreed; it is kept in
    their manifests. Raises NotReleasable when none may, CannotWrite.
    """
    result = Released()
    found = (read_member(path, numbering, result.left_out, without_consent=without_consent) for path in paths)
    ready = [one for one in found if one is not None]
    if not ready:
        raise none_may(result.left_out)
    result.not_agreed = [one.path.name for one in ready if one.not_agreed]
    keep()
    links: dict[str, dict[str, str]] = {}
    work = Work(tell, sum(work_of(media, one.pictures) for one in ready))
    for one in ready:
        with OwnRecording.open(one.path, without_consent=without_consent) as own:
            made = MediaWriter(own, one.member.published_id, out, force, work).write(media)
            result.members.append(_said(own, one.member, made))
        links[one.member.published_id] = made.links
    members = [one.member for one in ready]
    splits, kept, result.no_splits = own_splits(out, [member.annotated for member in members])
    texts = (
        text_files(members, numbering, _stated(members, stated))
        | {LINKS: json.dumps(links, indent=4)}
        | splits
    )
    write_into(out, {path: text.encode() for path, text in texts.items()}, force=force)
    names = [*texts, *kept, *(path for kinds in links.values() for path in kinds.values())]
    is_virtual = any(one.is_virtual for one in ready)
    result.files, result.bytes = write_cards(
        out, about, result.members, names, is_virtual=is_virtual, force=force
    )
    return result


def _stated(members: list[Member], stated: Stated) -> list[dict[str, Any]]:
    cooked = [member.cooked for member in members]
    return stated([(one.recipe, one.title) for one in cooked], [one.person for one in cooked])


def _said(own: OwnRecording, member: Member, media: Media) -> dict[str, Any]:
    """Say of a recording what of it is in the data set; `holes`: frames that have none of a kind."""
    return {
        "recording": own.recording.id,
        "published_id": member.published_id,
        "streams": media.links,
        "absent": media.absent,
        "holes": media.holes,
    }
