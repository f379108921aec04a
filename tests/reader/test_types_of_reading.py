"""The examples in README and the page on reading pass mypy, and mistakes in such lines are reported."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest
from root_folders import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
OPENED = 'import kitchensync as ks\nrec = ks.open("data/take-1")\n'
MISTAKES = (
    "rec.gyroscop.sample([20.0])",
    "rec.pv.points_at(20)",
    "rec.depth.point_at(20)",
    'rec.depth.points_at("20")',
    "rec.gyroscope.unit + 1",
    "rec.hands.joint",
    "rec.at(second=20)",
    'ks.opn("data/take-1")',
    "rec.duration.seconds",
    'rec.instants("10")',
    "rec.microphone.project(0, [0, 0, 1])",
    "rec.head.sample([20.0]).world",
)
TYPES = {
    "pv": "headset_streams.PictureStream",
    "depth": "headset_streams.DepthStream",
    "gyroscope": "motion_streams.HeadsetMotion",
    "microphone": "headset_streams.SoundStream",
    "head": "body_streams.HeadStream",
    "hands": "body_streams.HandStream",
    "gaze": "body_streams.GazeStream",
    "gopro": "film_streams.FilmStream",
}


def checked(folder: Path, code: str) -> list[str]:
    """Return what mypy reports of a program, as `line: message`."""
    (folder / "program.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    command += ["--cache-dir", str(folder / "cache"), "--config-file", str(ROOT / "setup.cfg")]
    command += ["--show-error-codes", "--hide-error-context", str(folder / "program.py")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line.partition(":")[2] for line in done.stdout.splitlines()]


def test_the_lines_of_the_documents_pass(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"\n\n((?:    .*\n|\n)*    rec = ks\.open.*\n(?:    .*\n)*)", readme)
    page = (ROOT / "docs" / "how-to" / "read-a-recording.md").read_text(encoding="utf-8")
    lines = [example.source for example in doctest.DocTestParser().get_examples(page)]
    assert len(lines) > 15
    code = "".join(line.removeprefix("    ") for line in block.splitlines(keepends=True))
    assert checked(tmp_path, f"{code}\ndef on_the_page() -> None:\n    " + "    ".join(lines)) == []


def test_mypy_reports_mistakes_and_types_of_streams(tmp_path: Path) -> None:
    shown = "".join(f"reveal_type(rec.{name})\n" for name in TYPES)
    lines = checked(tmp_path, OPENED + "\n".join(MISTAKES) + "\n" + shown)
    errors = {int(line.partition(":")[0]) for line in lines if " error: " in line}
    assert errors == set(range(3, 3 + len(MISTAKES)))
    revealed = [line.partition('"')[2].rstrip('"') for line in lines if "Revealed type" in line]
    assert revealed == [f"kitchensync.reader.{name}" for name in TYPES.values()]
