"""The recordings of a data folder, as the app finds them: manifests that say odd things end nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import paused_recording
import pytest
from folder_contents import contents

from kitchensync.recipe_app.exchange.folders import FolderEvent, Folders
from kitchensync.storage.manifest import write_json
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow

ODD = [None, "yesterday", 7, [], {}, {"utc_ns": None}, {"utc_ns": "late"}, {"utc_ns": 1.5}]


@pytest.mark.parametrize("started", ODD)
def test_a_recording_that_does_not_say_when_it_was_started_stands_last(kitchen: Any, started: Any) -> None:
    folder = kitchen.data / "odd_1"
    folder.mkdir()
    manifest = {"schema": "recording/1", "id": "odd_1", "state": "recording", "started": started}
    write_json(folder / "recording.json", manifest)
    kitchen.record("soup_1")
    assert kitchen.tools.folders.running() == ["soup_1", "odd_1"]
    assert kitchen.tablet.get("/api/v1/running").status_code == 200


def test_a_late_pause_takes_whole_chunks_with_it_where_the_lab_drops_them(tmp_path: Path) -> None:
    take = tmp_path / "data" / "take"
    truth = paused_recording.write_paused(take, [])
    folders = Folders(take.parent)
    pause, resume = (
        FolderEvent(kind, paused_recording.host_ns(at_s), 0, kind, {})
        for kind, at_s in (("pause", 4.3), ("resume", 6.7))
    )
    before = contents(take)
    assert folders.lab.pause == "mark"
    folders.append("take", [pause, resume])
    assert contents(take).items() >= before.items(), "it is marked, nothing else"
    (take / "events" / "tablet_late.jsonl").unlink()
    (tmp_path / "data" / "lab.toml").write_text('pause = "drop"\n')
    assert folders.lab.pause == "drop"
    folders.append("take", [pause])
    assert contents(take).items() >= before.items(), "its end may be on its way"
    folders.append("take", [resume])
    left = b"".join(contents(take).values())
    of_pause = [4.3 <= at_s <= 6.7 for at_s, _ in truth.packets["hololens/pv"]]
    there = [one in left for _, one in truth.packets["hololens/pv"]]
    assert not any(is_there for is_there, inside in zip(there, of_pause, strict=True) if inside)
    assert sum(there) == 8 * 30, "four of six chunks stay"
    assert verify(take)["status"] == "WARN"
