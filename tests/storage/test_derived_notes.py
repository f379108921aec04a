"""What commands note of their outputs, played without commands: side by side, killed, away, running."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from derived_places import read_derived

from kitchensync.storage.copies.derived import asked, before_of, may_write, noting, stamps_of, will_write
from kitchensync.storage.copies.derived_files import destroy_derived
from kitchensync.storage.installation.own_list import LineKind, OwnList, uuid_of
from kitchensync.storage.manifest import write_json
from kitchensync.storage.options.outputs import write_into, written

Running = Iterator[None]


@pytest.fixture
def takes(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("a", "b"):
        (tmp_path / "data" / name).mkdir(parents=True)
        write_json(tmp_path / "data" / name / "recording.json", {"schema": "recording/1"})
    return tmp_path / "data" / "a", tmp_path / "data" / "b"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    place = tmp_path / "out"
    place.mkdir()
    return place


def begin(stack: ExitStack, root: Path, *recordings: Path) -> None:
    """Begin a command that asks for recordings and was told a folder."""
    stack.enter_context(noting("kitchensync export", print))
    may_write(root)
    for recording in recordings:
        asked(recording)


def write(path: Path, text: str) -> None:
    with written(path) as part:
        part.write_text(text)


def killed(root: Path, recording: Path, *names: str, part: str = "") -> None:
    """Let a process that asks for a recording write files and die before it notes its end."""
    script = f"""
import os
from pathlib import Path
from kitchensync.storage.copies.derived import asked, may_write, noting, will_write
with noting("kitchensync export", print):
    may_write(Path({str(root)!r}))
    asked(Path({str(recording)!r}))
    for name in {names!r}:
        will_write(Path({str(root)!r}) / name)
        (Path({str(root)!r}) / name).write_text("of it")
    if {part!r}:
        will_write(Path({str(root)!r}) / {part!r})
        (Path({str(root)!r}) / ({part!r} + ".kitchensync-part")).write_text("half of it")
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 9


def destroyed(recording: Path) -> list[tuple[int, str]]:
    return [destroy_derived(line, recording) for line in read_derived(recording)]


def test_commands_side_by_side_note_their_own_files_alone(takes: tuple[Path, Path], out: Path) -> None:
    one, other = takes
    with ExitStack() as stack:
        begin(stack, out, other)
        write(out / "b.csv", "b")
        killed(out, one, "a.csv")
    (line,) = read_derived(other)
    assert list(line["files"]) == ["b.csv"]
    assert destroyed(other) == [(1, "")]
    assert (out / "a.csv").exists()
    ((found, left),) = destroyed(one)
    assert (found, "1 files may be of" in left) == (0, True)


def test_files_written_into_a_folder_are_the_only_ones_noted_of_it(
    takes: tuple[Path, Path], out: Path
) -> None:
    one, other = takes
    with ExitStack() as stack:
        stack.enter_context(noting("kitchensync export", print))
        asked(other)
        write_into(out, {"b.csv": b"b"})
        killed(out, one, "a.csv")
        write_into(out, {"c.csv": b"c"})
    (line,) = read_derived(other)
    assert sorted(line["files"]) == ["b.csv", "c.csv"]
    assert destroyed(other) == [(2, "")]
    assert (out / "a.csv").exists()


def test_the_end_that_only_one_of_its_recordings_noted_is_no_newer_file(
    takes: tuple[Path, Path], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = takes
    add = OwnList.add

    def full_for_one(own: OwnList, kind: LineKind, uuid: str, **facts: Any) -> None:
        if uuid == uuid_of(one):
            raise OSError(errno.ENOSPC, "no space left on device")
        add(own, kind, uuid, **facts)

    with ExitStack() as stack:
        begin(stack, out, one, other)
        write(out / "x.csv", "a and b")
        monkeypatch.setattr(OwnList, "add", full_for_one)
    ((_, left),) = destroyed(one)
    assert "1 files may be of" in left


def test_a_drive_that_was_away_at_the_end_is_not_taken_for_an_empty_one(
    takes: tuple[Path, Path], out: Path
) -> None:
    with ExitStack() as stack:
        begin(stack, out / "frames", takes[0])
        will_write(out / "frames" / "a.jpg")
        (out / "frames").mkdir()
        (out / "frames" / "a.jpg").write_text("a picture")
        shutil.move(out, out.with_name("away"))
    assert destroyed(takes[0]) == [(0, "it is away")]
    shutil.move(out.with_name("away"), out)
    ((_, left),) = destroyed(takes[0])
    assert "1 files may be of" in left


def test_a_command_that_still_runs_is_named(takes: tuple[Path, Path], out: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from kitchensync.storage.copies.derived import asked, noting, will_write
with noting("kitchensync export", print):
    asked(Path({str(takes[0])!r}))
    will_write(Path({str(out / "late.csv")!r}))
    print("begun", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        ((found, left),) = destroyed(takes[0])
        assert (found, left) == (0, f"`kitchensync export` still runs (process {process.pid}): end it")
        assert process.stdin is not None
        process.stdin.close()
    assert destroyed(takes[0]) == []


def test_a_folder_that_was_being_replaced_is_open_and_stays(takes: tuple[Path, Path], out: Path) -> None:
    one, other = takes
    with ExitStack() as stack:
        begin(stack, out / "set", other)
        will_write(out / "set")
        (out / "set").mkdir()
        (out / "set" / "rows.csv").write_text("b")
    (out / "set").rename(before_of(out / "set"))  # killed between two renames
    ((_, left),) = destroyed(other)
    assert "was being replaced" in left
    killed(out, one, part="mine.csv")
    assert destroyed(one)[0][0] == 1
    assert not (out / "mine.csv.kitchensync-part").exists()
    assert before_of(out / "set").is_dir(), "it is of another command"


def test_what_lay_there_without_a_name_long_before_is_nobodys_of_these(
    takes: tuple[Path, Path], out: Path
) -> None:
    old = out / "theirs.csv.kitchensync-part"
    old.write_text("of somebody else")
    long_ago = old.stat().st_mtime - 3 * 86_400
    os.utime(old, (long_ago, long_ago))
    killed(out, takes[0], part="mine.csv")
    assert destroyed(takes[0]) == [(1, "")]
    assert old.exists()


def test_a_folder_that_another_command_renames_meanwhile_is_passed_over(out, monkeypatch):
    for name in ("part", "whole"):
        (out / name).mkdir()
        (out / name / "file").write_text(name)
    scandir = os.scandir

    def late(folder="."):
        if Path(folder).name == "part":
            (out / "part").rename(out.with_name("elsewhere"))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", late)
    assert list(stamps_of(out)) == ["whole/file"]
