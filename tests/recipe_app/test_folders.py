"""The recordings of a data folder, as the app finds them: manifests that say odd things end nothing."""

from __future__ import annotations

from typing import Any

import pytest

from storage.manifest import write_json

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
