"""Read and write SHA256SUMS of a data set, in the format of `sha256sum -c`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.names import is_path_inside
from kitchensync.storage.options.outputs import write_output
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.graph_files import read_text

SUMS = "SHA256SUMS"
MAX_SUMS_BYTES = 64 << 20  # download.py of a data set reads no larger list
LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def is_file_inside(folder: Path, name: str) -> bool:
    """Return whether a name is a file in a data set and not reached through a link."""
    file = folder / name
    return is_path_inside(name) and file.is_file() and file.resolve() == folder.resolve() / name


def hashes_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the hash of each file, by its path inside the folder."""
    return {name: file_sha256(folder / name) for name in names}


def sums_of(hashes: Mapping[str, str]) -> str:
    """Return the text of SHA256SUMS."""
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))


def refresh(folder: Path, names: Iterable[str]) -> None:
    """Update the lines of files that were written into a data set; do nothing without SHA256SUMS."""
    path = folder / SUMS
    if path.is_file():
        lines = (LINE.fullmatch(line) for line in read_text(path, most_bytes=MAX_SUMS_BYTES).splitlines())
        hashes = {match[2]: match[1] for match in lines if match}
        write_output(path, sums_of(hashes | hashes_of(folder, names)).encode(), force=True)


def read_sums(folder: Path) -> dict[str, str]:
    """Return path -> hash of every file, SHA256SUMS itself last. Raises BadGraph for a malformed line."""
    path = folder / SUMS
    if not path.is_file():
        raise BadGraph(str(folder), "", f"there is no {SUMS}; give the folder that `release` wrote")
    hashes = {}
    for number, line in enumerate(read_text(path, most_bytes=MAX_SUMS_BYTES).splitlines(), start=1):
        match = LINE.fullmatch(line)
        if match is None or not is_path_inside(match[2]):
            raise BadGraph(SUMS, f"line {number}", "is malformed; run `kitchensync release check`")
        if not is_file_inside(folder, match[2]):
            raise BadGraph(
                match[2], "", f"is not there, and {SUMS} names it; run `kitchensync release check`"
            )
        hashes[match[2]] = match[1]
    return hashes | hashes_of(folder, [SUMS])
