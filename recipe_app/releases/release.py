"""Write a data set from recording folders: films first, then the texts, the checksums last."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from recipe_app.releases.cards.about import About
from recipe_app.releases.cards.write_cards import write_cards
from recipe_app.releases.data_set import LINKS, Member, text_files
from recipe_app.releases.media_of_all import IN_THIS_PROCESS, MediaOrder, write_media
from recipe_app.releases.numbering import Numbering
from recipe_app.releases.own_set import none_may, read_member
from recipe_app.releases.own_splits import own_splits
from recipe_app.releases.release_media import Tell
from recipe_app.releases.released import Released
from storage.batch.runner import Workforce
from storage.shell.outputs import write_into

Stated = Callable[[list[tuple[str, str]], list[str]], list[dict[str, Any]]]
"""Lines of what people say of recipes (name, title) and participants (pseudonyms)."""


def release(
    paths: Iterable[Path],
    order: MediaOrder,
    numbering: Numbering,
    about: About,
    *,
    tell: Tell,
    keep: Callable[[], None],
    stated: Stated = lambda *_: [],
    crew: Workforce = IN_THIS_PROCESS,
) -> Released:
    """Write the recordings that may be released into `order.out`; say of the others why they are left out.

    `keep` is called when all ids are given, before a film is written: an interrupted release goes on with them. A
    worker of `crew` has one recording open at a time. `order.without_consent` is why those are released too to which
    nobody agreed; it is kept in their manifests. Raises NotReleasable when none may, CannotWrite, MediaNotWritten,
    NoDask, NoWorkers.
    """
    result = Released()
    out, force, allowed = order.out, order.force, order.without_consent
    found = (read_member(path, numbering, result.left_out, without_consent=allowed) for path in paths)
    ready = [one for one in found if one is not None]
    if not ready:
        raise none_may(result.left_out)
    result.not_agreed = [one.path.name for one in ready if one.not_agreed]
    keep()
    times = {one.member.published_id: one.member.cooked.facts["step_times"] for one in ready}
    written = write_media(ready, order, crew, tell)
    result.members = [said | {"step_times": times[said["published_id"]]} for said in written]
    links = {said["published_id"]: said["streams"] for said in result.members}
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
