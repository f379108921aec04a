"""Where commands that are not told keep recordings: the variable, else lab.toml, else `data`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from films import film

from kitchensync.cli import main
from kitchensync.storage.errors import BadLabFile
from kitchensync.storage.options.data_folder import default_data


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("KITCHENSYNC_DATA", "KITCHENSYNC_LAB"):
        monkeypatch.delenv(name, raising=False)


def test_the_variable_counts_before_the_lab_file_and_that_before_the_usual_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_data() == Path("data")
    (tmp_path / "lab.toml").write_text('data = "kitchen/recordings"\n')
    assert default_data() == tmp_path / "kitchen" / "recordings"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "ours.toml").write_text('data = "/srv/films"\n')
    monkeypatch.setenv("KITCHENSYNC_LAB", str(tmp_path / "elsewhere" / "ours.toml"))
    assert default_data() == Path("/srv/films")
    monkeypatch.setenv("KITCHENSYNC_DATA", "mine")
    assert default_data() == Path("mine")


def test_a_broken_lab_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text("data = 5\n")
    with pytest.raises(BadLabFile, match="data"):
        default_data()


@pytest.mark.slow
def test_commands_meet_in_the_folder_without_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KITCHENSYNC_DATA", str(tmp_path / "ours"))
    made = film(tmp_path / "card", 30, 30, seed=3)
    done = CliRunner().invoke(main, ["adopt", "found", str(made.chapters[0].path)])
    assert done.exit_code == 0, done.output
    listed = CliRunner().invoke(main, ["list", "--json"])
    assert [one["recording"] for one in json.loads(listed.stdout)["recordings"]] == ["found"]
