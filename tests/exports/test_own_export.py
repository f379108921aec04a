"""The export of the page *Add an export* runs as the page shows it."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from root_folders import ROOT

import kitchensync as ks
from kitchensync.storage.manifest import edit_manifest

PAGE = (ROOT / "docs" / "how-to" / "add-an-export.md").read_text(encoding="utf-8")


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    (line,) = (line.strip() for line in PAGE.splitlines() if line.startswith("    python "))
    _, script, *words = line.split()
    command = [sys.executable, str(ROOT / script), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def lab(cooked: Path, tmp_path: Path) -> Path:
    for name, scopes in (("take-1", ["release_raw"]), ("take-2", [])):
        take = shutil.copytree(cooked, tmp_path / "data" / name)
        with edit_manifest(take) as manifest:
            manifest["recording"], manifest["consent_scopes"] = name, scopes
    return tmp_path


def test_an_export_of_ones_own_writes_what_consent_allows(lab: Path) -> None:
    done = run(lab)
    assert done.returncode == 0, done.stderr
    assert "take-2 left out" in done.stderr
    rows = list(csv.DictReader((lab / "speeds.csv").read_text().splitlines()))
    with ks.open(lab / "data" / "take-1") as rec:
        done_steps = [step for step in rec.steps.itertuples() if step.start < step.end]
        assert [(row["node"], row["step"]) for row in rows] == [
            (str(step.node), step.step) for step in done_steps
        ]
        first = done_steps[0]
        inside = (rec.gyroscope.times >= first.start) & (rec.gyroscope.times < first.end)
        speeds = np.sqrt((rec.gyroscope.values[inside] ** 2).sum(axis=1))
    assert float(rows[0]["rad_per_s"]) == pytest.approx(float(np.median(speeds)))


def test_it_never_replaces_a_file(lab: Path) -> None:
    (lab / "speeds.csv").write_text("mine")
    assert run(lab).returncode != 0
    assert (lab / "speeds.csv").read_text() == "mine"
