"""Which files there are, and whether they are what SHA256SUMS says."""

from __future__ import annotations

import re
from pathlib import Path

from kitchensync.dataset.checks.release_faults import ReleaseFaults
from kitchensync.dataset.data_set_cards.readme import READERS
from kitchensync.dataset.source.data_set import BESIDE
from kitchensync.dataset.source.sums import LINE, MAX_SUMS_BYTES, SUMS, is_file_inside
from kitchensync.sensors.files_on_disk import file_sha256
from kitchensync.storage.names import is_path_inside
from kitchensync.task_graphs.formats.graph_files import read_bytes

TEXTS = ("annotation_json", "annotation_csv", "data_splits", "metadata", "task_graphs")
"""The folders of the published form."""
CARDS = ("README.md", "croissant.json", "index.html", "download.py", "previews")
MEDIA = ("captain_cook_4d", "calibration")
TOP = frozenset((*TEXTS, *CARDS, *READERS, *MEDIA, BESIDE, SUMS))
LICENCES = re.compile(r"LICENSE[A-Za-z0-9._-]*")


def media_files(folder: Path) -> list[Path]:
    """Return the files of recordings: films, data of the headset, constants."""
    return sorted(path for part in MEDIA for path in (folder / part).rglob("*") if path.is_file())


def check_layout(folder: Path, found: ReleaseFaults) -> None:
    """Compare every file with its line, and every line with its file; name what is of no data set."""
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    for name in sorted(there):
        top = name.partition("/")[0]
        if (folder / name).is_symlink():
            found.differs(name, "", "a file", "a link")
        elif top not in TOP and not LICENCES.fullmatch(top):
            found.differs(name, "", "a file of the published form", "another file")
    _sums(folder, there - {SUMS}, found)


def _sums(folder: Path, there: set[str], found: ReleaseFaults) -> None:
    path = folder / SUMS
    if not path.is_file():
        found.differs(SUMS, "", "the file", "no file")
        return
    named = set()
    lines = read_bytes(path, most_bytes=MAX_SUMS_BYTES).decode(errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        match = LINE.fullmatch(line)
        if match is None or not is_path_inside(match[2]):
            found.differs(SUMS, f"line {number}", "<sha256>  <file>", line[:80])
            continue
        if match[2] in named:
            found.differs(SUMS, f"line {number}", "one line for a file", f"another for {match[2]}")
        named.add(match[2])
        got = file_sha256(folder / match[2]) if is_file_inside(folder, match[2]) else "no file"
        if got != match[1]:
            found.differs(match[2], "", match[1], got)
    for name in sorted(there - named):
        found.differs(SUMS, name, "a line for every file", "none")
