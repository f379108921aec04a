"""Every command that writes recordings somewhere asks whether it may: a new command needs a row here."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from command_tree import COMMANDS
from folder_contents import contents

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest

TAKE, OUT = "data/take", "out"
OWN_STORE, STRANGERS = "file://PLACE/out/own", "file://PLACE/out/strange"

LOOKS: dict[str, list[str]] = {
    "side-by-side": [TAKE, "--out", f"{OUT}/film.mp4"],
    "overlay": [TAKE, "--out", f"{OUT}/film.mp4"],
    "cloud": [TAKE, "--out", f"{OUT}/cloud.ply"],
    "mesh": [TAKE, "--out", f"{OUT}/mesh.ply"],
    "view": [TAKE, "--save", f"{OUT}/take.rrd"],
    "report": [TAKE],
    "cut": [TAKE, "--to", "2", "--out", f"{OUT}/part"],
    "gopro join": [f"{TAKE}/gopro/GX010001.MP4", "--out", f"{OUT}/film.mp4"],
    "info": [TAKE],
    "batch": ["report", "data"],
    "annotate accept": [TAKE, "--annotation", "1"],
    "sync-camera": [f"{TAKE}/gopro/GX010001.MP4", "--data", OUT],
    "gopro inspect": [f"{TAKE}/gopro/GX010001.MP4"],
    "calibrate gopro": [f"{TAKE}/gopro/GX010001.MP4", "--data", OUT],
    "adopt": ["new", f"{TAKE}/gopro/GX010001.MP4", "--data", OUT],
}
"""Commands that show a recording to those who made it: no scope is needed."""
COPIES: dict[str, list[str]] = {"move": [TAKE, "--to", f"{OUT}/nas"], "upload": [TAKE, OWN_STORE]}
"""Commands that copy to the laboratory's own stores; `record --nas` uses what `move` does."""
GIVES_AWAY: dict[str, list[str]] = {
    "upload": [TAKE, STRANGERS],
    "release captaincook4d": ["data", "--out", f"{OUT}/set"],
    "export localization": ["data", "--splits", "splits", "--out", f"{OUT}/set"],
    "export seconds": ["data", "--out", f"{OUT}/made"],
    "export steps": ["data", "--out", f"{OUT}/made"],
    "export frames": ["data", "--out", f"{OUT}/set"],
    "export features": ["data", "--out", f"{OUT}/set"],
    "export opinions": ["data", "--out", f"{OUT}/made"],
    "export windows": ["data", "--out", f"{OUT}/made"],
    "export prompts": ["data", "--out", f"{OUT}/made"],
    "export coherence": ["data", "--out", f"{OUT}/made"],
    "export promqa": ["data", "--out", f"{OUT}/made"],
    "export keysteps": ["data", "--out", f"{OUT}/made"],
    "export tables": [TAKE, "--out", f"{OUT}/set"],
    "batch": ["export", "data", "--", "tables", "--out", f"{OUT}/set"],
    "export lerobot": [TAKE, "--out", f"{OUT}/set"],
    "export mcap": [TAKE, "--out", f"{OUT}/set"],
}
"""Commands whose output others get: the participant agreed to `release_raw`."""
ANNOTATES: dict[str, list[str]] = {
    "annotate export": [TAKE, "--out", f"{OUT}/set"],
    "annotate push": [TAKE, "--url", "http://127.0.0.1:9", "--token-file", "token"],
}
"""Commands with which others mark steps: the participant agreed to `annotate`."""
ELSEWHERE = {
    "release push": "asks for each recording of the data set again: tests/dataset/releases/test_push.py",
    "annotations export": "gives back a published folder; a withdrawn one is refused: test_published.py",
    "measure answers": "asks for third_party_processing where the list lies in a recording: test_model_answers.py",
    "take-dump": "takes in; what it takes is refused on the way out",
    "backup": "keeps the app's own memory for the app's own folder",
}
WRITES_NO_RECORDING = {
    *("record", "stop", "recover", "rig check", "rig init", "doctor", "list", "verify", "archive", "consent"),
    *("sync", "align", "app", "restore", "annotations import", "mark", "card", "pause", "resume"),
    *("graph agree", "graph check", "graph convert", "graph hints", "graph orders"),
    *("graph score", "graph script", "annotate read", "annotate agree", "measure coherence", "measure spans"),
    *("release check", "release split", "release stats", "export assembly"),
    *("calibrate board", "calibrate check", "calibrate imu", "calibrate rig"),
    *("gopro discover", "gopro remember", "gopro fetch", "gopro import"),
    *(
        "gopro free",
        "study plan",
        "study coverage",
        "top",
        "rehearse",
        "replay",
        "sample",
        "simulate",
        "annotate pull",
        "withdraw",
        "redact",
    ),
}
"""Commands that write nothing, into the recording itself, or what was published before."""


def there_are(table: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows of commands that there are."""
    return {command: words for command, words in table.items() if command in COMMANDS}


def run(command: str, words: list[str], place: Path) -> Result:
    """Type a command in the folder around the data."""
    given = [word.replace("PLACE", str(place)) for word in words]
    return CliRunner().invoke(main, [*command.split(), *given])


@pytest.fixture
def place(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder around the data, which is the working directory; one of its stores is the laboratory's own."""
    around = finished.parent.parent
    (around / OUT / "nas").mkdir(parents=True)
    monkeypatch.setattr(
        "kitchensync.storage.move.mover_process.lower_priority", lambda: None
    )  # of this very process
    (around / "splits").mkdir()
    (around / "token").write_text("secret")
    (finished.parent / "lab.toml").write_text(f'stores = ["file://{around}/out/own"]')
    monkeypatch.chdir(around)
    return around


def folders_below(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


def test_every_command_has_a_row_here() -> None:
    tables = (LOOKS, COPIES, GIVES_AWAY, ANNOTATES, ELSEWHERE)
    rows = WRITES_NO_RECORDING.union(*tables)
    assert COMMANDS.keys() <= rows, "say which purpose a new command asks for, and test that it does"


@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize(
    "table", [LOOKS, COPIES, GIVES_AWAY, ANNOTATES], ids=["look", "copy", "give", "annotate"]
)
def test_nothing_leaves_a_withdrawn_recording(
    finished: Path, place: Path, table: dict[str, list[str]], virtual: bool
) -> None:
    with edit_manifest(finished) as manifest:
        manifest |= {"withdrawn": {"host_ns": 1}, "virtual": virtual}
    before = contents(place)
    for command, words in there_are(table).items():
        done = run(command, words, place)
        assert done.exit_code == 1, (command, done.output, done.exception)
        refused = [line for line in done.stderr.splitlines() if line.startswith("kitchensync: ")]
        assert any("withdrawn" in line or "withdrew" in line for line in refused), (command, done.stderr)
        assert contents(place) == before, command
        assert folders_below(place / OUT) == ["nas"], command


def test_nothing_is_given_away_that_nobody_agreed_to(finished: Path, place: Path) -> None:
    _scopes_are_asked_for(GIVES_AWAY, "release_raw", "annotate", finished, place)


def test_nobody_annotates_what_was_not_agreed_to(finished: Path, place: Path) -> None:
    _scopes_are_asked_for(ANNOTATES, "annotate", "release_raw", finished, place)


def _scopes_are_asked_for(
    table: dict[str, list[str]], scope: str, other: str, finished: Path, place: Path
) -> None:
    with edit_manifest(finished) as manifest:
        manifest |= {"consent": "form-1", "consent_scopes": [other]}
    before = contents(place)
    for command, words in there_are(table).items():
        done = run(command, words, place)
        assert done.exit_code == 1, (command, done.output)
        assert done.stderr.count("\n") == 1, command
        assert f"`{scope}`" in done.stderr, command
        assert contents(place) == before, command
        assert folders_below(place / OUT) == ["nas"], command


def test_own_stores_get_their_copies_without_consent(finished: Path, place: Path) -> None:
    with edit_manifest(finished) as manifest:
        manifest |= {"consent": "none", "consent_scopes": []}
    for command, words in COPIES.items():
        done = run(command, words, place)
        assert done.exit_code == 0, (command, done.output)
    for copy in ("nas", "own"):
        assert (place / OUT / copy / "take" / "recording.json").is_file()
