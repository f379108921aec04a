"""A folder in the published form released again: every file as it is, but for what was corrected at the desk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipe_app.errors import BadGraph
from recipe_app.graphs.formats.annotations import COMPLETE, ERRORS, STEP_TEXTS, parse_annotations
from recipe_app.releases.cards.about import About
from recipe_app.releases.cards.write_cards import write_cards
from recipe_app.releases.checks.check_layout import TEXTS
from recipe_app.releases.data_set import BESIDE, LINKS
from recipe_app.releases.data_set_folder import refuse_contradictions
from recipe_app.releases.released import Released
from storage.shell.outputs import write_into

NOT_TAKEN = "films are not taken over; copy them, the checksums are of the files here"


def other_files(folder: Path) -> dict[str, bytes]:
    """Return what stands beside the annotations and is taken over too, relative path -> content.

    These are all other files of the folders of the form, the licences, and what a lab's release says beside them.
    """
    paths = [path for name in TEXTS for path in sorted((folder / name).glob("*")) if path.is_file()]
    paths += [path for path in sorted(folder.glob("LICENSE*")) if path.is_file()]
    paths += [folder / BESIDE] if (folder / BESIDE).is_file() else []
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def release_again(files: Mapping[str, bytes], out: Path, about: About, *, force: bool) -> Released:
    """Write files of the published form, their cards and checksums; say which recordings they hold.

    Raises CannotWrite.
    """
    if missing := [name for name in (COMPLETE, ERRORS, STEP_TEXTS) if name not in files]:
        raise BadGraph(missing[0], "", "is not there; take all files from one release")
    needed = {name: files[name].decode() for name in (COMPLETE, ERRORS, STEP_TEXTS)}
    annotations = parse_annotations(needed)
    refuse_contradictions(annotations, COMPLETE)
    recordings = [one.recording_id for one in annotations.recordings]
    write_into(out, files, force=force)
    links = "" if LINKS in files else f"no {LINKS} came with it; "
    absent: list[dict[str, Any]] = [{"kind": "gopro", "why": links + NOT_TAKEN}]
    members = [
        {"recording": name, "published_id": name, "streams": {}, "absent": absent} for name in recordings
    ]
    count, size = write_cards(out, about, members, files, is_virtual=False, force=force)
    return Released(members=members, files=count, bytes=size)
