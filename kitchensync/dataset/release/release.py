"""Write a data set from recording folders: videos first, then the texts, the checksums last."""

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
from kitchensync.dataset.source.own_members import LeftOut, nothing_releasable, read_member
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
    """The result of a release, by recording."""

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
    """Return splits to write, existing splits that stay, and kind -> why it has no split.

    A split made with `release split` stays as long as it divides exactly these recordings.
    """
    new: dict[str, str] = {}
    kept: list[str] = []
    missing: dict[str, str] = {}
    all_ids = sorted(recording.recording_id for recording in recordings)
    normal_ids = sorted(recording.recording_id for recording in recordings if not recording.is_error)
    for kind in KINDS:
        names = [PLACE.format(kind, which) for which in ("combined", "normal")]
        if _divides(out / names[0], all_ids) and _divides(out / names[1], normal_ids):
            kept += names
            continue
        try:
            divided = divide(kind, recordings, RULE)
        except NoSuchSplit as error:
            missing[kind] = str(error)
        else:
            new[names[0]] = json.dumps(divided.parts)
            new[names[1]] = json.dumps(normal_only(divided, recordings).parts)
    others = {f"data_splits/{path.name}" for path in (out / "data_splits").glob("*.json")}
    return new, kept + sorted(others - {*new, *kept}), missing


def _divides(path: Path, ids: list[str]) -> bool:
    try:
        split: Any = json.loads(path.read_text(encoding="utf-8"))
        return sorted(recording_id for part in PARTS for recording_id in split[part]) == ids
    except (OSError, ValueError, KeyError, TypeError):
        return False


Stated = Callable[[list[tuple[str, str]], list[str]], list[dict[str, Any]]]
"""Returns lines about recipes (name, title) and participants (pseudonyms)."""


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
    """Write the recordings that may be released into `order.out`; the result says why others are left out.

    `keep` is called when all ids are assigned, before the first video: an interrupted release continues with them. A
    worker of `crew` has one recording open at a time. With a reason in `order.without_consent`, recordings without
    consent are released too; it is kept in their manifests. Raises NotReleasable if none may be released,
    OutputRefused, MediaNotWritten, NoDask, NoWorkers.
    """
    result = Released()
    out, force, reason = order.out, order.force, order.without_consent
    read = [read_member(path, numbering, result.left_out, without_consent=reason) for path in paths]
    ready = [recording for recording in read if recording is not None]
    if not ready:
        raise nothing_releasable(result.left_out)
    result.not_agreed = [recording.path.name for recording in ready if recording.not_agreed]
    for recording in ready:
        note_override(recording.path, Purpose.RELEASE_RAW, reason)
    keep()
    written = write_media(ready, order, crew, tell)
    members = []
    for recording, row in zip(ready, written, strict=True):
        cooked = recording.member.cooked
        result.members.append({**row, "step_times": cooked.facts["step_times"]})
        facts = cooked.facts | {"lacking": row["lacking"], "coverage": row["coverage"]}
        members.append(replace(recording.member, cooked=replace(cooked, facts=facts)))
    links = {row["published_id"]: row["streams"] for row in result.members}
    splits, kept, result.no_splits = own_splits(out, [member.annotated for member in members])
    recipes = [(member.cooked.recipe, member.cooked.title) for member in members]
    lines = stated(recipes, [member.cooked.person for member in members])
    texts = text_files(members, numbering, lines) | {LINKS: json.dumps(links, indent=4)} | splits
    write_into(out, {path: text.encode() for path, text in texts.items()}, force=force)
    names = [*texts, *kept, *(path for kinds in links.values() for path in kinds.values())]
    is_virtual = any(recording.is_virtual for recording in ready)
    result.files, result.bytes = write_cards(
        out, about, result.members, names, is_virtual=is_virtual, force=force
    )
    return result


NOT_TAKEN = "films are not taken over; copy them, the checksums are of the files here"


def other_files(folder: Path) -> dict[str, bytes]:
    """Return the files that a new release copies, relative path -> content.

    These are all files of the text folders, the licences, and the facts and errors of a lab's own release.
    """
    paths = [path for name in TEXTS for path in sorted((folder / name).glob("*")) if path.is_file()]
    paths += [path for path in sorted(folder.glob("LICENSE*")) if path.is_file()]
    paths += [folder / name for name in (BESIDE, ERROR_ROWS) if (folder / name).is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def release_again(files: Mapping[str, bytes], out: Path, about: About, *, force: bool) -> Released:
    """Write files of the published form, their cards and checksums. Raises OutputRefused, BadGraph."""
    if missing := [name for name in (COMPLETE, ERRORS, STEP_TEXTS) if name not in files]:
        raise BadGraph(missing[0], "", "is missing; take all files from one release")
    needed = {name: files[name].decode() for name in (COMPLETE, ERRORS, STEP_TEXTS)}
    annotations = parse_annotations(needed)
    refuse_contradictions(annotations, COMPLETE)
    write_into(out, files, force=force)
    links = "" if LINKS in files else f"no {LINKS} came with it; "
    absent: list[AbsentKind] = [{"kind": "gopro", "why": links + NOT_TAKEN}]
    members: list[ReleasedMember] = [
        {"recording": name, "published_id": name, "streams": {}, "absent": absent}
        for name in (recording.recording_id for recording in annotations.recordings)
    ]
    count, size = write_cards(out, about, members, files, is_virtual=False, force=force)
    return Released(members=members, files=count, bytes=size)
