"""What macOS, Windows and network storage leave in folders changes no answer, and nothing deleted is offered."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cooked_recording import write_cooked

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow

APPLE_DOUBLE = bytes.fromhex("0005160700020000") + b"Mac OS X        " + bytes(40)
IN_A_RECORDING = (
    *(
        "gopro/._GX010001.MP4",
        "gopro/._media.json",
        "events/._tablet.jsonl",
        "hololens/gyroscope/._000001.h5",
    ),
    *("annotations/._accepted.json", "annotations/._steps-1.json", "sync/alignment/._GX010001.json"),
    *("._recording.json", ".DS_Store", "gopro/.DS_Store", "events/.DS_Store", "clock/.DS_Store"),
    *("gopro/@eaDir/GX010001.MP4/SYNOVIDEO_VIDEO_SCREENSHOT.jpg", "Thumbs.db", "events/desktop.ini"),
)
ON_A_CARD = (
    *("._.Trashes", "DCIM/100GOPRO/._GX010001.MP4", ".DS_Store", "DCIM/.DS_Store"),
    *(".Spotlight-V100/Store-V2/1/store.db", ".fseventsd/fseventsd-uuid"),
)
DELETED = (".Trashes/501/GX010002.MP4", ".Trash-1000/files/GX010003.MP4", "$RECYCLE.BIN/S-1/GX010004.MP4")
LATE = {"made_in_s", "again", "computed", "seconds"}
"""Keys whose value is how long a command took."""


def leave(root: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(APPLE_DOUBLE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    write_cooked(root / "data")
    with edit_manifest(root / "data" / "take1") as manifest:
        manifest["virtual"] = True
    return root


def said(root: Path, words: str) -> Any:
    """What a command answers about `root`, without the name of the folder and without times."""
    done = CliRunner().invoke(main, words.replace("ROOT", str(root)).split())
    return done.exit_code, without_times(json.loads(done.stdout.replace(str(root), "ROOT")))


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key not in LATE}
    return [without_times(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "words",
    [
        "verify ROOT/data/take1 --json",
        "sync ROOT/data/take1 --json --again",
        "info ROOT/data/take1 --json",
        "list ROOT/data --json",
        "card ROOT/data/take1 --json",
        "annotate export ROOT/data/take1 --out ROOT/out --json",
        "export steps ROOT/data/take1 --out ROOT/steps.csv --json",
        "upload ROOT/data/take1 file://ROOT/store --json",
    ],
)
def test_a_command_says_the_same_as_without(made: Path, tmp_path: Path, words: str) -> None:
    answers, files = [], []
    for name in ("clean", "littered"):
        root = tmp_path / name
        shutil.copytree(made, root)
        if name == "littered":
            leave(root / "data" / "take1", IN_A_RECORDING)
            leave(root / "data", (".DS_Store", "._take1"))
        answers.append(said(root, words))
        files.append({str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()})
    assert answers[1] == answers[0]
    litter = {f"data/take1/{name}" for name in IN_A_RECORDING} | {"data/.DS_Store", "data/._take1"}
    assert files[1] - litter == files[0], "none of it was copied or made anew"


def test_nothing_deleted_is_imported_from_a_card(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "made")
    take, card = tmp_path / "made" / "data" / "take1", tmp_path / "card"
    (film,) = (take / "gopro").glob("GX*.MP4")
    (card / "DCIM" / "100GOPRO").mkdir(parents=True)
    shutil.copy(film, card / "DCIM" / "100GOPRO" / film.name)
    leave(card, ON_A_CARD)
    for name in DELETED:
        (card / name).parent.mkdir(parents=True)
        shutil.copy(film, card / name)
    done = CliRunner().invoke(main, ["gopro", "import", str(card), "--recording", str(take), "--json"])
    answer = json.loads(done.stdout)
    named = json.dumps(answer)
    assert str(card / "DCIM" / "100GOPRO" / film.name) in named
    assert [name for name in (*DELETED, *ON_A_CARD) if name.rpartition("/")[2] in named] == []
