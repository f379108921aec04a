"""Where payload bytes lie: in the recording, and while it is open in private work files; nowhere else, ever."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import children, kitchensync, recording_all

from kitchensync.storage.recording import open_recording

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]

FRAGMENT = 48
SHARED = (Path("/dev/shm"), Path("/var/tmp"))


def fragments_of(recording: Path, each: int = 6) -> list[bytes]:
    """Pieces of payloads that occur nowhere by chance, some of every stream."""
    source, found = random.Random(1), []
    with open_recording(recording) as opened:
        for name in opened.streams:
            whole = [payload for _, payload in opened[name].packets() if len(payload) >= FRAGMENT]
            pieces = []
            for payload in source.sample(whole, min(len(whole), 4 * each)):
                start = source.randrange(len(payload) - FRAGMENT + 1)
                pieces.append(payload[start : start + FRAGMENT])
            found += [piece for piece in pieces if len(set(piece)) > 12][:each]
    assert len(found) > 20
    return found


def files_below(*roots: Path) -> Iterator[Path]:
    return (path for root in roots for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def holding(fragments: list[bytes], files: Iterator[Path]) -> list[Path]:
    """Return the files in which a piece of a payload lies."""
    found = []
    for path in files:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue  # a work file of another test
        if any(fragment in content for fragment in fragments):
            found.append(path)
    return found


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """Where our processes put what they think is temporary."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def outside(data: Path, runtime: Path, temporary: Path) -> Iterator[Path]:
    """Everything that our processes could have written, but for the recording itself."""
    everywhere = files_below(data, runtime, temporary, *SHARED)
    return (path for path in everywhere if data / "take" not in path.parents)


def test_after_a_take_nothing_of_it_lies_outside_the_recording(kitchen, runtime, temporary, tmp_path):
    place = kitchen(seconds=4, seed=random.randrange(10**6))
    data = tmp_path / "data"
    devices = ["--hololens", place.host, "--gopro", place.camera]
    done = kitchensync("record", "take", "--data", data, *devices, "--json")
    assert json.loads(done.stdout)["ended"] == "ended_by_device", (
        done.stderr
    )  # a busy computer may lose packets
    fragments = fragments_of(data / "take")
    assert holding(fragments, files_below(data / "take")), "the search finds what is there"
    assert holding(fragments, outside(data, runtime, temporary)) == []
    assert sorted(path.name for path in data.iterdir()) == ["_app", "take"]


def private(path: Path) -> bool:
    return stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_after_killing_everything_it_lies_in_private_files_and_after_recover_nowhere(
    kitchen, runtime, temporary, tmp_path
):
    place = kitchen(seconds=30, seed=random.randrange(10**6))
    data = tmp_path / "data"
    with recording_all(place.host, runtime, data) as recorder:
        pids = [recorder.pid, *children(recorder.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        recorder.communicate()
    work = data / ".kitchensync"
    assert [str(path) for path in [work, *work.rglob("*")] if not private(path)] == [], "0700 and 0600"
    assert [str(path) for path in runtime.rglob("*") if path.is_file() and not private(path)] == [], "0600"
    assert kitchensync("recover", "--data", data).returncode == 0
    fragments = fragments_of(data / "take")
    assert holding(fragments, files_below(data / "take")), "the search finds what is there"
    assert holding(fragments, outside(data, runtime, temporary)) == []
    assert not work.exists()
