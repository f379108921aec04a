"""SHA256SUMS of a data set, as `sha256sum -c` reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from sensors.files_on_disk import file_sha256
from storage.shell.outputs import write_output

SUMS = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def hashes_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the hash of each file, by its path inside the folder."""
    return {name: file_sha256(folder / name) for name in names}


def sums_of(hashes: Mapping[str, str]) -> str:
    """Return the text of SHA256SUMS."""
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))


def refresh(folder: Path, names: Iterable[str]) -> None:
    """Write new lines for files that were written into a data set; a folder without SHA256SUMS is none."""
    path = folder / SUMS
    if path.is_file():
        lines = (LINE.fullmatch(line) for line in path.read_text(encoding="utf-8").splitlines())
        known = {match[2]: match[1] for match in lines if match}
        write_output(path, sums_of(known | hashes_of(folder, names)).encode(), force=True)
