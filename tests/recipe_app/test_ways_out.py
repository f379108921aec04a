"""Every command that writes what it read of a recording, and then a withdrawal: nothing of it is left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from command_tree import COMMANDS
from cooked_recording import write_cooked
from hand_shape import give_hands

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest, read_manifest
from kitchensync.storage.names import APP_FOLDER, MANIFEST

pytestmark = pytest.mark.slow
RELEASED = "release captaincook4d TAKE --out OUT/set --media 360p --numbering OUT/n.json"
ROWS = "--out OUT/rows.json"
WAYS_OUT = {
    "annotate export": ["annotate export TAKE --out OUT"],
    "batch": ["batch report DATA", "batch export DATA -- tables --out OUT"],
    "cut": ["cut TAKE --from 3 --to 9 --out OUT/part"],
    "export coherence": [f"export coherence TAKE {ROWS}"],
    "export features": ["export features TAKE --out OUT"],
    "export frames": ["export frames TAKE --out OUT"],
    "export keysteps": [f"export keysteps TAKE {ROWS}"],
    "export lerobot": ["export lerobot TAKE --out OUT/set"],
    "export mcap": ["export mcap TAKE --out OUT"],
    "export tables": ["export tables TAKE --out OUT"],
    "export localization": ["export localization TAKE --splits SPLITS --out OUT"],
    "export opinions": [f"export opinions TAKE {ROWS}"],
    "export promqa": [f"export promqa TAKE {ROWS}"],
    "export prompts": [f"export prompts TAKE {ROWS}"],
    "export seconds": ["export seconds TAKE --out OUT/rows.csv"],
    "export steps": ["export steps TAKE --out OUT/rows.csv"],
    "export windows": [f"export windows TAKE {ROWS}"],
    "gopro join": ["gopro join FILM --out OUT/film.mp4"],
    "release captaincook4d": [RELEASED],
    "release push": [RELEASED, "release push OUT/set --data DATA --numbering OUT/n.json --to OUT/there"],
    "report": ["report TAKE"],
    "side-by-side": ["side-by-side TAKE --out OUT/both.mp4"],
    "upload": ["upload TAKE file://OUT"],
    "view": ["view TAKE --save OUT/take.rrd"],
}
PUBLISHED = {"release push"}
"""What was sent stays, and the answer names where: its deletion has to be asked for."""
BOOKS = {".kitchensync-target", "copies.jsonl"}
"""Names and hashes of files, and whose store it is."""
TRIED_ELSEWHERE = {
    "annotate push": "tests/dataset/annotation/test_server.py",
    "cloud": "tests/calibration/test_space_commands.py",
    "mesh": "tests/calibration/test_space_commands.py",
    "overlay": "tests/calibration/test_space_commands.py",
}
OF_NOBODY = {
    "annotate pull": "writes into the recording",
    "annotations export": "published annotations, and what the desk corrected in them",
    "calibrate board": "a board to print",
    "export assembly": "graphs and lists of mistakes of a data set of others",
    "graph convert": "a task graph",
    "measure answers": "answers of models",
    "release split": "published ids",
    "release stats": "counts",
    "measure coherence": "answers of models",
    "measure spans": "answers of models",
    "sample": "a virtual kitchen",
    "simulate": "a virtual kitchen",
    "study coverage": "counts",
    "study plan": "sessions to come",
    "sync": "numbers of clocks; the next run writes the page anew",
}
WRITES = {"out", "to", "url", "save", "summary", "csv", "svg", "html"}
"""Parameters that name where a command writes."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ways")
    write_cooked(root)
    give_hands(root / "take1")
    with edit_manifest(root / "take1") as manifest:
        manifest["virtual"] = True
    return root / "take1"


def files(place: Path) -> set[Path]:
    """All files but the installation's own list."""
    return {path for path in place.rglob("*") if path.is_file() and APP_FOLDER not in path.parts}


def run(words: str, place: Path) -> Result:
    take = place / "data" / "take1"
    film = next(take.glob("gopro/*.MP4"))
    parts = {
        "TAKE": take,
        "FILM": film,
        "DATA": take.parent,
        "OUT": place / "out",
        "SPLITS": place / "splits",
    }
    for name, path in parts.items():
        words = words.replace(name, str(path))
    return CliRunner().invoke(main, words.split())


def is_tombstone(path: Path) -> bool:
    return path.name == MANIFEST and "files" in read_manifest(path.parent).get("withdrawn", {})


@pytest.mark.parametrize("command", WAYS_OUT)
def test_what_a_command_wrote_of_a_recording_goes_with_it(made: Path, tmp_path: Path, command: str) -> None:
    shutil.copytree(made, tmp_path / "data" / "take1")
    (tmp_path / "out").mkdir()
    (tmp_path / "splits").mkdir()
    split = {"train": ["take1"], "val": [], "test": []}
    (tmp_path / "splits" / "recordings_data_split_combined.json").write_text(json.dumps(split))
    before = files(tmp_path)
    for words in WAYS_OUT[command]:
        done = run(words, tmp_path)
        assert done.exit_code == 0, done.output
    written = files(tmp_path) - before
    assert written
    said = json.loads(run("withdraw TAKE --json", tmp_path).stdout)
    left = {path for path in files(tmp_path) & written if path.name not in BOOKS and not is_tombstone(path)}
    asked = {
        path
        for path in left
        if any(path.is_relative_to(one["place"]) for one in said["places"] if one["open"])
    }
    assert left == asked
    assert bool(left) == (command in PUBLISHED)


def test_every_command_that_writes_is_tried() -> None:
    known = {*WAYS_OUT, *TRIED_ELSEWHERE, *OF_NOBODY}
    assert {
        name for name, command in COMMANDS.items() if WRITES & {one.name for one in command.params}
    } - known == set()
    assert known - COMMANDS.keys() == set()
