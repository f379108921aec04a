"""Files below a folder are listed without links, special files and files of operating systems."""

from __future__ import annotations

import os
from pathlib import Path

from kitchensync.shell.files_on_disk import files_below


def test_only_files_are_listed_and_no_system_files(tmp_path: Path) -> None:
    for name in ("b/two", "a/one", "a/._one", ".Trashes/501/film", "@eaDir/one/thumbnail"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    os.mkfifo(tmp_path / "a" / "pipe")
    (tmp_path / "a" / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "a" / "elsewhere").symlink_to(tmp_path / "b")
    names = [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path)]
    assert names == ["a/one", "b/two"]
