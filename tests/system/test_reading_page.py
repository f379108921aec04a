"""What `docs/how-to/read-a-recording.md` shows, run on a recording as the commands make it, tablet and all."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import pytest
from processes import kitchensync
from touched_steps import touch_steps

from kitchensync.storage.manifest import edit_manifest

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "read-a-recording.md"


def test_the_page_shows_what_reading_gives(kitchen, runtime, tmp_path, monkeypatch):
    place = kitchen(seconds=14)
    wanted = "pv,depth_ahat,gyroscope,accelerometer,spatial_input"
    words = ["--hololens", place.host, "--streams", wanted, "--gopro", place.camera]
    done = kitchensync("record", "take-1", "--data", tmp_path / "data", *words)
    assert (tmp_path / "data" / "take-1" / "recording.json").exists(), done.stderr
    done_s = {"Chop-Chop an onion": 4.0, "Fry-Fry the onion": 8.0}
    touch_steps(tmp_path / "data" / "take-1", "onions", done_s, wrong="Fry-Fry the onion")
    assert kitchensync("sync", tmp_path / "data").returncode == 0
    shutil.copytree(tmp_path / "data" / "take-1", tmp_path / "data" / "take-2")
    with edit_manifest(tmp_path / "data" / "take-2") as manifest:
        manifest |= {"recording": "take-2", "withdrawn": {"utc_ns": 1}}
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (failed, tried > 15) == (0, True)
