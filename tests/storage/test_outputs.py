"""Where files may be written, and what is left when writing fails: judged by the bytes on the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kitchensync.storage.options.outputs import (
    PART,
    OutputRefused,
    check_output,
    write_into,
    write_output,
    written,
)


@pytest.fixture
def take(tmp_path):
    """A recording with a chunk, a camera file, a rig file, an index and something that people made of it."""
    files = {
        "recording.json": b"{}",
        "rig.toml": b"rig",
        "hololens/pv/000001.h5": b"chunk",
        "gopro/GX010001.MP4": b"film",
        "sync/index.parquet": b"index",
    }
    for name, content in files.items():
        path = tmp_path / "data" / "take" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "data" / "take"


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["hololens/pv/000001.h5", "gopro/GX010001.MP4", "new.mp4", "a/b/new", "rig.toml"]
)
@pytest.mark.parametrize("way", ["straight", "link to the folder", "dots", "link to the file"])
@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_written_into_a_recording(take, tmp_path, name, way, force):
    path = take / name
    if way == "link to the folder":
        (tmp_path / "elsewhere").symlink_to(take)
        path = tmp_path / "elsewhere" / name
    elif way == "dots":
        path = take.parent / "other" / ".." / "take" / name
    elif way == "link to the file":  # may dangle
        (tmp_path / "film.mp4").symlink_to(path)
        path = tmp_path / "film.mp4"
    before = bytes_below(tmp_path)
    with pytest.raises(OutputRefused, match="inside the recording take|sealed"):
        write_output(path, b"new", force=force)
    assert bytes_below(tmp_path) == before


def test_a_lost_manifest_opens_no_way_into_a_recording(take):
    (take / "ledger" / "hololens").mkdir(parents=True)
    (take / "ledger" / "hololens" / "000001.h5").write_bytes(b"ledger")
    (take / "recording.json").unlink()
    for name in ("new.mp4", "gopro/new.mp4", "hololens/pv/new"):
        with pytest.raises(OutputRefused, match="inside the recording|among sealed"):
            check_output(take / name)


def test_what_can_be_computed_anew_is_replaced_with_force_alone(take):
    index = take / "sync" / "index.parquet"
    with pytest.raises(OutputRefused, match="--force"):
        write_output(index, b"new")
    assert index.read_bytes() == b"index"
    write_output(index, b"new", force=True)
    assert index.read_bytes() == b"new"
    if not (take / "SYNC").exists():  # on a disk that tells them apart they are two folders
        with pytest.raises(OutputRefused, match="inside the recording"):
            check_output(take / "SYNC" / "x")


def test_another_name_of_a_sealed_file_is_given_away_and_the_file_stays(take, tmp_path):
    film = take / "gopro" / "GX010001.MP4"
    (tmp_path / "copy.mp4").hardlink_to(film)
    (tmp_path / f"look.mp4{PART}").symlink_to(film)
    with pytest.raises(OutputRefused, match="--force"):
        write_output(tmp_path / "copy.mp4", b"new")
    write_output(tmp_path / "copy.mp4", b"new", force=True)
    write_output(tmp_path / "look.mp4", b"look")
    assert (tmp_path / "copy.mp4").read_bytes() == b"new"
    assert (tmp_path / "look.mp4").read_bytes() == b"look"
    assert film.read_bytes() == b"film"


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), ValueError("x"), OSError(errno.ENOSPC, "No space left")]
)
def test_what_is_cut_off_leaves_the_old_file_and_nothing_else(tmp_path, error):
    (tmp_path / "out").write_bytes(b"old")

    def write():
        with written(tmp_path / "out", force=True) as part:
            part.write_bytes(b"half")
            raise error

    with pytest.raises((type(error), OutputRefused)):
        write()
    assert bytes_below(tmp_path) == {str(tmp_path / "out"): b"old"}


def test_a_file_that_came_while_another_was_written_stays(tmp_path):
    def write():
        with written(tmp_path / "out") as part:
            part.write_bytes(b"mine")
            (tmp_path / "out").write_bytes(b"somebody's")

    with pytest.raises(OutputRefused, match="--force"):
        write()
    assert bytes_below(tmp_path) == {str(tmp_path / "out"): b"somebody's"}


def test_folders_pipes_and_circles_are_no_files_to_write(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in (".", "pipe", "circle", "circle/x"):
        with pytest.raises(OutputRefused):
            write_output(tmp_path / name, b"", force=True)


def test_a_folder_of_files_is_filled_on_and_nothing_in_it_replaced(tmp_path):
    out = tmp_path / "out"
    files = {"a.json": b"a", "deep/b.json": b"b"}
    write_into(out, {"a.json": b"a"})  # an earlier run got so far
    (out / "other").write_bytes(b"other")
    write_into(out, files)
    assert bytes_below(out) == {
        str(out / name): content for name, content in (files | {"other": b"other"}).items()
    }
    (out / "deep" / "b.json").write_bytes(b"mine")
    with pytest.raises(OutputRefused, match="b.json"):
        write_into(out, files | {"c.json": b"c"})
    assert not (out / "c.json").exists()
    write_into(out, files, force=True)
    assert (out / "deep" / "b.json").read_bytes() == b"b"
