"""Write a data set from recording folders: films first, then the texts, the checksums last."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from kitchensync.dataset.checks.check_layout import TEXTS
from kitchensync.dataset.data_set_cards.about import About
from kitchensync.dataset.data_set_cards.write_cards import write_cards
from kitchensync.dataset.release.media_of_all import IN_THIS_PROCESS, MediaOrder, write_media
from kitchensync.dataset.release.release_media import Tell
from kitchensync.dataset.source.data_set import (
    BESIDE,
    ERROR_ROWS,
    LINKS,
    AbsentKind,
    ReleasedMember,
    text_files,
)
from kitchensync.dataset.source.data_set_folder import refuse_contradictions
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.dataset.source.own_members import LeftOut, none_may, read_member
from kitchensync.dataset.splits.rule import Rule, divide, normal_only
from kitchensync.dataset.splits.split_kinds import PARTS, NoSuchSplit
from kitchensync.storage.batch.runner import Workforce
from kitchensync.storage.consent import Purpose, note_override
from kitchensync.storage.options.outputs import write_into
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import (
    COMPLETE,
    ERRORS,
    STEP_TEXTS,
    AnnotatedRecording,
    parse_annotations,
)


@dataclass
class Released:
    """What came of it, recording by recording."""

    members: list[ReleasedMember] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    not_agreed: list[str] = field(default_factory=list)
    "Recordings that were released without consent."
    no_splits: dict[str, str] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0


KINDS = ("environment", "person", "recipes", "recordings")
RULE = Rule("ratio", ratio=(Fraction(6, 10), Fraction(2, 10), Fraction(2, 10)), seed=0)
PLACE = "data_splits/{}_data_split_{}.json"


def own_splits(
    out: Path, recordings: list[AnnotatedRecording]
) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Return files to write, files that are there and stay, and why a kind has none.

    What somebody made with `release split` stays as long as it divides exactly these recordings.
    """
    made: dict[str, str] = {}
    kept: list[str] = []
    lacking: dict[str, str] = {}
    all_ids = sorted(one.recording_id for one in recordings)
    normal_ids = sorted(one.recording_id for one in recordings if not one.is_error)
    for kind in KINDS:
        names = [PLACE.format(kind, which) for which in ("combined", "normal")]
        if _divides(out / names[0], all_ids) and _divides(out / names[1], normal_ids):
            kept += names
            continue
        try:
            divided = divide(kind, recordings, RULE)
        except NoSuchSplit as error:
            lacking[kind] = str(error)
        else:
            both = (divided, normal_only(divided, recordings))
            made |= {name: json.dumps(one.parts) for name, one in zip(names, both, strict=True)}
    named = {*made, *kept}
    kept += [
        name
        for path in sorted((out / "data_splits").glob("*.json"))
        if (name := f"data_splits/{path.name}") not in named
    ]
    return made, kept, lacking


def _divides(path: Path, ids: list[str]) -> bool:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        lists: Mapping[str, list[str]] = {part: found[part] for part in PARTS}
        return sorted(one for part in PARTS for one in lists[part]) == ids
    except (OSError, ValueError, KeyError, TypeError):
        return False


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
    nobody agreed; it is kept in their manifests. Raises NotReleasable when none may, OutputRefused, MediaNotWritten,
    NoDask, NoWorkers.
    """
    result = Released()
    out, force, allowed = order.out, order.force, order.without_consent
    found = (read_member(path, numbering, result.left_out, without_consent=allowed) for path in paths)
    ready = [one for one in found if one is not None]
    if not ready:
        raise none_may(result.left_out)
    result.not_agreed = [one.path.name for one in ready if one.not_agreed]
    for one in ready:
        note_override(one.path, Purpose.RELEASE_RAW, allowed)
    keep()
    times = {one.member.published_id: one.member.cooked.facts["step_times"] for one in ready}
    written = write_media(ready, order, crew, tell)
    result.members = [{**said, "step_times": times[said["published_id"]]} for said in written]
    links = {said["published_id"]: said["streams"] for said in result.members}
    members = []
    for one, said in zip(ready, written, strict=True):
        facts = one.member.cooked.facts | {"lacking": said["lacking"], "coverage": said["coverage"]}
        members.append(replace(one.member, cooked=replace(one.member.cooked, facts=facts)))
    splits, kept, result.no_splits = own_splits(out, [member.annotated for member in members])
    recipes = [(member.cooked.recipe, member.cooked.title) for member in members]
    lines = stated(recipes, [member.cooked.person for member in members])
    texts = text_files(members, numbering, lines) | {LINKS: json.dumps(links, indent=4)} | splits
    write_into(out, {path: text.encode() for path, text in texts.items()}, force=force)
    names = [*texts, *kept, *(path for kinds in links.values() for path in kinds.values())]
    is_virtual = any(one.is_virtual for one in ready)
    result.files, result.bytes = write_cards(
        out, about, result.members, names, is_virtual=is_virtual, force=force
    )
    return result


NOT_TAKEN = "films are not taken over; copy them, the checksums are of the files here"


def other_files(folder: Path) -> dict[str, bytes]:
    """Return what stands beside the annotations and is taken over too, relative path -> content.

    These are all other files of the folders of the form, the licences, and what a lab's release says beside them.
    """
    paths = [path for name in TEXTS for path in sorted((folder / name).glob("*")) if path.is_file()]
    paths += [path for path in sorted(folder.glob("LICENSE*")) if path.is_file()]
    paths += [folder / name for name in (BESIDE, ERROR_ROWS) if (folder / name).is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def release_again(files: Mapping[str, bytes], out: Path, about: About, *, force: bool) -> Released:
    """Write files of the published form, their cards and checksums; say which recordings they hold.

    Raises OutputRefused.
    """
    if missing := [name for name in (COMPLETE, ERRORS, STEP_TEXTS) if name not in files]:
        raise BadGraph(missing[0], "", "is not there; take all files from one release")
    needed = {name: files[name].decode() for name in (COMPLETE, ERRORS, STEP_TEXTS)}
    annotations = parse_annotations(needed)
    refuse_contradictions(annotations, COMPLETE)
    recordings = [one.recording_id for one in annotations.recordings]
    write_into(out, files, force=force)
    links = "" if LINKS in files else f"no {LINKS} came with it; "
    absent: list[AbsentKind] = [{"kind": "gopro", "why": links + NOT_TAKEN}]
    members: list[ReleasedMember] = [
        {"recording": name, "published_id": name, "streams": {}, "absent": absent} for name in recordings
    ]
    count, size = write_cards(out, about, members, files, is_virtual=False, force=force)
    return Released(members=members, files=count, bytes=size)
