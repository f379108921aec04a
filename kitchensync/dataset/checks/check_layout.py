"""Check which files a data set has, and their hashes."""

from __future__ import annotations

import re
from pathlib import Path

from kitchensync.dataset.checks.release_faults import ReleaseFaults
from kitchensync.dataset.data_set_cards.readme import READERS
from kitchensync.dataset.data_set_cards.verify_data_set import changed_files, read_sums, read_text
from kitchensync.dataset.source.data_set import BESIDE, ERROR_ROWS
from kitchensync.dataset.source.sums import SUMS, is_file_inside

TEXTS = ("annotation_json", "annotation_csv", "data_splits", "metadata", "task_graphs")
"""The folders of the published form."""
CARDS = ("README.md", "croissant.json", "index.html", "download.py", "previews")
MEDIA = ("captain_cook_4d", "calibration")
TOP = frozenset((*TEXTS, *CARDS, *READERS, *MEDIA, BESIDE, ERROR_ROWS, SUMS))
LICENCES = re.compile(r"LICENSE[A-Za-z0-9._-]*")


def media_files(folder: Path) -> list[Path]:
    """Return the files of recordings: videos, data of the headset, constants."""
    return sorted(path for part in MEDIA for path in (folder / part).rglob("*") if path.is_file())


def check_layout(folder: Path, faults: ReleaseFaults) -> dict[str, str]:
    """Compare the files with the lines of SHA256SUMS, and report files that belong to no data set.

    Returns path -> hash of SHA256SUMS.
    """
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    for name in sorted(files):
        top = name.partition("/")[0]
        if (folder / name).is_symlink():
            faults.differs(name, "", "a file", "a link")
        elif top not in TOP and not LICENCES.fullmatch(top):
            faults.differs(name, "", "a file of the published form", "another file")
    try:
        sums = read_sums(read_text(folder / SUMS))
    except (OSError, ValueError) as error:
        faults.differs(SUMS, "", "<sha256>  <file> in each line", str(error)[:120])
        return {}
    plain = {name: hash_ for name, hash_ in sums.items() if is_file_inside(folder, name)}
    for name in sorted(sums.keys() - plain.keys()):
        faults.differs(name, "", f"the file that {SUMS} names", "no file")
    for name, why in changed_files(folder, plain):
        faults.differs(name, "", f"the hash in {SUMS}", why)
    for name in sorted(files - sums.keys() - {SUMS}):
        faults.differs(SUMS, name, "a line for every file", "none")
    return sums
