"""Notebooks and tutorial run on a recording as `make demo` leaves one, and show what the committed ones show."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from processes import kitchensync
from touched_steps import touch_steps

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(600)]
REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((REPOSITORY / "examples" / "notebooks").glob("*.ipynb"))
STEPS = {f"Do-Do thing {n}": 1.5 + 1.6 * n for n in range(1, 7)}


def shown(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """Return what kinds of output every cell of code has: `image/jpeg`, `text/html` .."""
    return [
        sorted(kind for output in cell.outputs for kind in output.get("data", {output.output_type: ""}))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_notebooks_and_tutorial_run_and_show_what_they_showed(kitchen, runtime, tmp_path, monkeypatch):
    place, data = kitchen(seconds=14), tmp_path / "demo" / "last" / "data"
    done = kitchensync("record", "demo", "--data", data, "--hololens", place.host, "--gopro", place.camera)
    assert (data / "demo" / "recording.json").exists(), done.stderr
    touch_steps(data / "demo", "things", STEPS, wrong="Do-Do thing 5")
    assert kitchensync("sync", data).returncode == 0
    home = tmp_path / "examples" / "notebooks"
    shutil.copytree(NOTEBOOKS[0].parent, home)
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        committed = nbformat.read(path, as_version=4)
        run = nbformat.read(home / path.name, as_version=4)
        NotebookClient(run, timeout=120, resources={"metadata": {"path": str(home)}}).execute()
        assert shown(run) == shown(committed), path.name
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    page = REPOSITORY / "docs" / "tutorial.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (failed, tried > 10) == (0, True)
    assert (tmp_path / "plot.png").stat().st_size > 10_000
