"""The command `rehearse` where KitchenSync is installed without its clone."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kitchensync.capture.commands import rehearse
from kitchensync.cli import main


def test_without_a_clone_it_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearse, "BENCHMARKS", tmp_path / "benchmarks")
    done = CliRunner().invoke(main, ["rehearse", "--scenarios", "1"])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "rehearse needs a clone of KitchenSync" in done.stderr


def test_in_a_clone_it_finds_what_it_plays() -> None:
    assert (rehearse.BENCHMARKS / "rehearsal" / "run.py").is_file()
