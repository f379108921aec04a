"""A picture, a tone and a walk are planted in a privacy pause: no command that writes lets them out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cooked_recording import FROZEN
from paused_recording import FILM, host_ns, write_paused
from planted import MOTION, PICTURE, TONE, Planted

from kitchensync.cli import main
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
HIDDEN, SHOWN = Planted(1, 3217), Planted(2, 2459)
PAUSE_S = (5.0, 8.0)
TAKE = "data/take"
SHOWS: dict[str, tuple[list[str], set[str]]] = {
    "annotate export": ([TAKE, "--out", "out"], {PICTURE, TONE}),
    "report": ([TAKE], {PICTURE}),
    "batch report": (["data"], {PICTURE}),
    "export frames": ([TAKE, "--out", "out"], set()),
    "export features": ([TAKE, "--out", "out"], set()),
    "release captaincook4d": (["data", "--out", "out", "--media", "4k,360p,hololens"], {PICTURE, TONE}),
}
"""Commands that write pictures, sound or numbers of a recording, with the signs that they show outside the pause."""
REFUSED = {
    "gopro join": [f"{TAKE}/{FILM}", "--out", "out/film.mp4"],
    "upload": [TAKE, "file://PLACE/out"],
    "adopt": ["new", f"{TAKE}/{FILM}", "--data", "out"],
}
"""Raw copies wait until the pause is destroyed."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("signs")
    write_paused(root / TAKE, [], who=lambda at_s: HIDDEN if PAUSE_S[0] <= at_s < PAUSE_S[1] else SHOWN)
    with edit_manifest(root / TAKE) as manifest:
        manifest["virtual"] = True
    log = EventLog(root / TAKE, "tablet")
    log.append("recipe", host_ns=host_ns(0), uncertainty_ns=0, body=FROZEN, op_id="op0")
    for node, at_s in {1: 3.25, 2: 6.0, 3: 10.0}.items():
        body = {"node": node, "device": "t"}
        log.append("done", host_ns=host_ns(at_s), uncertainty_ns=0, body=body, op_id=f"op{node}")
    return root


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pause(place: Path) -> None:
    log = EventLog(place / TAKE, "tablet")
    for kind, at_s in zip(("pause", "resume"), PAUSE_S, strict=True):
        log.append(kind, host_ns=host_ns(at_s), uncertainty_ns=0, body={}, op_id=kind)


def type_in(command: str, words: list[str], place: Path) -> Result:
    return CliRunner().invoke(
        main, [*command.split(), *(word.replace("PLACE", str(place)) for word in words)]
    )


def signs(place: Path, who: Planted) -> set[str]:
    """What of somebody stands in everything that was written: outside the recording, and in what is made of it."""
    written = [*(place / "out").rglob("*"), *(place / TAKE / "sync").glob("report.html")]
    return {sign for path in written if path.is_file() for sign in who.signs_in(path.read_bytes())}


@pytest.mark.parametrize("command", SHOWS)
def test_nothing_of_a_pause_is_in_what_a_command_writes(place: Path, command: str) -> None:
    words, shown = SHOWS[command]
    assert type_in(command, words, place).exit_code == 0
    assert signs(place, HIDDEN) == signs(place, SHOWN) == shown, "without a pause it stands there"
    shutil.rmtree(place / "out")
    (place / "out").mkdir()
    shutil.rmtree(place / TAKE / "annotations", ignore_errors=True)
    pause(place)
    done = type_in(command, words, place)
    assert done.exit_code == 0, done.output
    assert signs(place, HIDDEN) == set()
    assert signs(place, SHOWN) == shown, "all else is shown"


@pytest.mark.parametrize("command", REFUSED)
def test_raw_copies_go_out_once_the_pause_is_destroyed(place: Path, command: str) -> None:
    pause(place)
    done = type_in(command, REFUSED[command], place)
    assert (done.exit_code, "kitchensync redact" in done.stderr) == (1, True)
    assert list((place / "out").iterdir()) == []
    assert type_in("redact", [TAKE, "--reason", "a visitor"], place).exit_code == 0
    assert type_in(command, REFUSED[command], place).exit_code == 0
    assert signs(place, HIDDEN) <= {MOTION}, "numbers of motion are kept: no picture and no word is in them"
    assert signs(place, SHOWN) >= {PICTURE, TONE}


def test_no_film_of_a_pause_is_replayed_or_shown_where_a_calibration_fails(place: Path) -> None:
    film = f"{TAKE}/{FILM}"
    calibrate = ("calibrate gopro", [film, "--data", "out"])
    simulate = ("simulate", ["--seed", "1", "--replay", film, "--out", "out/sim"])
    assert type_in(*calibrate, place).exit_code == 1, "there is no board in it"
    assert signs(place, SHOWN) == {PICTURE}
    shutil.rmtree(place / "out" / "calibrations")
    pause(place)
    for words in (calibrate, simulate):
        done = type_in(*words, place)
        assert (done.exit_code, "kitchensync redact" in done.stderr) == (1, True), words
    assert list((place / "out").iterdir()) == []


def test_a_store_of_the_laboratory_holds_it_sealed(place: Path) -> None:
    """With the policy `mark` safety copies are whole; what is read in them is hidden as here."""
    pause(place)
    (place / "data" / "lab.toml").write_text(f'stores = ["file://{place}/out"]\n')
    assert type_in("upload", REFUSED["upload"], place).exit_code == 0
    assert signs(place, HIDDEN) == {PICTURE, TONE, MOTION}
    copy = place / "out" / "take"
    assert type_in("report", [str(copy)], place).exit_code == 0
    assert HIDDEN.signs_in((copy / "sync" / "report.html").read_bytes()) == set()
    assert json.loads((copy / "recording.json").read_bytes())["recording"] == "take"
