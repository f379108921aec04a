"""Two processes that synchronize one recording: the second waits, and neither removes the files of the other."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

from kitchensync.sync.result.new_set import new_set


def write_set(recording: Path, content: str, begun: Event, go_on: Event) -> None:
    """Begin a set, wait in the middle of it, and put it in place."""
    with new_set(recording) as folder:
        begun.set()
        assert go_on.wait(60)
        (folder / "index.parquet").write_text(content)


def test_the_second_synchronization_waits_for_the_first(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    events = [context.Event() for _ in range(4)]
    first = context.Process(target=write_set, args=(tmp_path, "first", *events[:2]))
    second = context.Process(target=write_set, args=(tmp_path, "second", *events[2:]))
    try:
        first.start()
        assert events[0].wait(60)
        second.start()
        assert not events[2].wait(1), "it does not begin while the first is at work"
        events[1].set()
        first.join(60)
        assert (first.exitcode, (tmp_path / "sync" / "index.parquet").read_text()) == (0, "first")
        assert events[2].wait(60)
        events[3].set()
        second.join(60)
        assert (second.exitcode, (tmp_path / "sync" / "index.parquet").read_text()) == (0, "second")
    finally:
        for process in (first, second):
            if process.is_alive():
                process.kill()
    assert [path.name for path in (tmp_path / "sync").iterdir()] == ["index.parquet"]
