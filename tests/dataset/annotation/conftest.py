"""A cooked recording whose film was handed to annotators, made once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from cooked_recording import write_cooked

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.names import APP_FOLDER
from kitchensync.virtual_kitchen.kitchen import Kitchen


@pytest.fixture(scope="session")
def cooked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kitchen, Path]:
    """The kitchen, and a folder: `data` has the recording, `films` what was exported of it."""
    root = tmp_path_factory.mktemp("cooked")
    (root / "data").mkdir()
    kitchen = write_cooked(root / "data")
    with edit_manifest(root / "data" / "take1") as manifest:
        manifest["consent"] = "form-1"
        manifest["consent_scopes"] = ["annotate", "release_raw"]
    words = ["annotate", "export", str(root / "data"), "--out", str(root / "films"), "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert [one["recording"] for one in json.loads(done.stdout)["tasks"]] == ["take1"]
    return kitchen, root


@pytest.fixture
def data(cooked: tuple[Kitchen, Path], tmp_path: Path) -> Path:
    """A copy of the data folder that a test may change; nothing tells it what was exported of the original."""
    shutil.copytree(cooked[1] / "data", tmp_path / "data", ignore=shutil.ignore_patterns(APP_FOLDER))
    return tmp_path / "data"
