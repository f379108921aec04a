"""A disk whose inodes are used up is called that: it has free space, and takes no more files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.shell.files_on_disk import NO_INODES, lacks_inodes
from kitchensync.storage.disk.free_space import require_room
from kitchensync.storage.errors import words_of


def states(monkeypatch: pytest.MonkeyPatch, *, files: int, left: int) -> None:
    """Let every disk state so many inodes in all and so many that are left; its free space stays as it is."""
    real = os.statvfs

    def stated(path: Path | str | int) -> os.statvfs_result:
        facts = list(real(path))
        facts[5], facts[6], facts[7] = files, left, left
        return os.statvfs_result(facts)

    monkeypatch.setattr(os, "statvfs", stated)


@pytest.mark.parametrize(("files", "left", "lacks"), [(1000, 0, True), (1000, 1, False), (0, 0, False)])
def test_only_a_bound_that_is_reached_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, left: int, lacks: bool
) -> None:
    states(monkeypatch, files=files, left=left)
    assert lacks_inodes(tmp_path) is lacks


def test_a_full_disk_is_called_full_and_one_without_inodes_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "absent" / "file"))
    assert "no space left on device" in words_of(error)
    states(monkeypatch, files=1000, left=0)
    assert words_of(error) == f"{error.filename}: {NO_INODES}; check the disk, then run it again"
    assert NO_INODES not in words_of(OSError(errno.EIO, "Input/output error", str(tmp_path)))
    with pytest.raises(OSError, match="no inodes left"):
        require_room(tmp_path, 1, kept=0)


@pytest.mark.slow
def test_a_recording_and_the_doctor_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states(monkeypatch, files=1000, left=0)
    where = ["--data", str(tmp_path / "data")]
    refused = CliRunner().invoke(main, ["record", "take", *where, "--hololens", "127.0.0.9"])
    assert (refused.exit_code, "no inodes left" in refused.stderr, refused.stdout) == (1, True, "")
    assert not (tmp_path / "data" / "take").exists()
    assert "no inodes left" in CliRunner().invoke(main, ["doctor", *where]).output
