"""The table of docs/reference/lives.md, played: every command on a recording in every stage of its life."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from small_recordings import HOST0_NS

from kitchensync.capture.camera.fetch import pending_in
from kitchensync.cli import main
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.chunks.chunk_reader import chunk_paths
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.life import life_of
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.move import mover_process
from kitchensync.storage.move.archive import archive
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.names import MANIFEST
from kitchensync.storage.recording import open_recording
from kitchensync.sync.memory_cards.match import recordings_below

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "lives.md"
FREE = FreeRule(copies_before_free=1, keep_days=0.0)


def table() -> dict[str, dict[str, tuple[int, str]]]:
    """Map life -> command -> (exit code, words) as the page says it."""
    rows = [line.strip("| \n").split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    start = next(n for n, row in enumerate(rows) if row[0].strip() == "command")
    lives = [cell.strip() for cell in rows[start][1:]]
    found: dict[str, dict[str, tuple[int, str]]] = {life: {} for life in lives}
    for row in rows[start + 1 :]:
        for life, cell in zip(lives, row[1:], strict=True):
            code, words = re.fullmatch(r"\s*(\d)(?: `(.*)`)?\s*", cell).groups()
            found[life][row[0].strip(" `")] = (int(code), words or "")
    return found


TABLE = table()


def words_of(command: str, recording: Path) -> list[str]:
    """Return the command line."""
    room = recording.parent.parent
    more = {"move": ["--to", f"{room}/third", "--keep"], "upload": [f"file://{room}/cloud"]}
    return [*command.split(), str(recording), *more.get(command, [])]


def run(words: list[str]) -> Result:
    return CliRunner().invoke(main, words)


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def usual(made, tmp_path_factory) -> Path:
    """A closed recording with its hashes, synchronized, with its page, and a mount that was checked."""
    take = tmp_path_factory.mktemp("usual") / "take1"
    shutil.copytree(made[0] / "take1", take)
    _close(take)
    paths = [path for folder in take.glob("*/*") for path in chunk_paths(folder)]
    files = {str(p.relative_to(take)): {"bytes": p.stat().st_size, "sha256": file_sha256(p)} for p in paths}
    with edit_manifest(take) as manifest:
        manifest["files"] = files
        manifest |= {"consent": "form-1", "consent_scopes": ["release_raw"]}
        manifest["streams"] = {name: {} for name in manifest["streams"] if (take / name).is_dir()}
    for command in ("sync", "report", "calibrate check"):
        assert run(words_of(command, take)).exit_code == 0, command
    return take


def _close(take: Path) -> None:
    """Write the end of every stream into a ledger, and what the camera's file must be into `media.json`."""
    with open_recording(take) as opened:
        counts = {name: len(opened[name]) for name in opened.streams if (take / name).is_dir()}
    told = [{"note": "end", "stream": s, "reason": "stopped", "received": n} for s, n in counts.items()]
    end_ns = HOST0_NS + 10**6
    rows = [
        Packet(n, 1, 0, 0, 1, json.dumps(one | {"host_ns": end_ns}).encode(), b"")
        for n, one in enumerate(told)
    ]
    (take / "ledger" / "hololens").mkdir(parents=True)
    seal(take / "ledger" / "hololens", 1, rows, {})
    media = take / "gopro" / "media.json"
    film = take / "gopro" / "GX010001.MP4"
    entry = {"file": film.name, "bytes": film.stat().st_size, "sha256": file_sha256(film)}
    write_json(media, json.loads(media.read_text()) | {"files": [entry]})


def as_it_is(take: Path, life: str) -> None:
    """Bring a recording into a stage of its life."""
    if life == "archived":
        archive(take)
    if life in ("elsewhere", "away"):
        store = take.parent.parent / "store"
        store.mkdir()
        (state,) = run_mover([take], [store], rule=FREE)
        assert state.freed > 0
        if life == "away":
            store.rename(store.with_name("unmounted"))
    if life in ("recording", "aborted"):
        with edit_manifest(take) as manifest:
            manifest["state"] = life
    if life == "withdrawn":
        with edit_manifest(take) as manifest:
            manifest["withdrawn"] = {"host_ns": 1}
    if life == "damaged":
        content = (take / MANIFEST).read_bytes()
        (take / MANIFEST).write_bytes(content.replace(b'"take1"', b'"tale1"', 1))
    if life == "manifest_lost":
        (take / MANIFEST).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("life", list(TABLE))
def test_commands_do_what_the_page_says(life, usual, tmp_path, monkeypatch):
    monkeypatch.setattr(mover_process, "lower_priority", lambda: None)  # of this very process
    (tmp_path / "third").mkdir()
    take = tmp_path / "data" / "take1"
    for command, (code, words) in TABLE[life].items():
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        shutil.rmtree(tmp_path / "unmounted", ignore_errors=True)
        shutil.copytree(usual, take)
        as_it_is(take, life)
        assert life_of(take) == life.replace("away", "elsewhere")
        before = contents(take)
        done = run(words_of(command, take))
        assert (done.exit_code, command) == (code, command), done.output
        assert words in " ".join(done.output.split()), command
        assert done.exception is None or isinstance(done.exception, SystemExit), command
        after = contents(take)
        if code == 1:
            after.pop("copies.jsonl", None)
            assert after == {name: sha for name, sha in before.items() if name != "copies.jsonl"}, command
        if command == "upload":
            assert (tmp_path / "cloud").exists() == (code == 0)
            shutil.rmtree(tmp_path / "cloud", ignore_errors=True)


@pytest.mark.slow
def test_a_folder_names_a_lost_manifest_and_goes_on(usual, tmp_path, monkeypatch):
    monkeypatch.setattr(mover_process, "lower_priority", lambda: None)
    (tmp_path / "third").mkdir()
    for name in ("take1", "lost"):
        shutil.copytree(usual, tmp_path / "data" / name)
    (tmp_path / "data" / "lost" / MANIFEST).unlink()
    for command in ("verify", "sync", "report", "move", "calibrate check"):
        more = ["--to", str(tmp_path / "third"), "--keep"] if command == "move" else []
        done = run([*command.split(), str(tmp_path / "data"), *more])
        assert done.exit_code == 1, command
        assert "recover --rebuild" in done.output, command
        assert "take1" in done.output, command
    assert (tmp_path / "third" / "take1" / MANIFEST).exists()


def test_camera_commands_over_a_folder_see_a_lost_manifest_too(usual, tmp_path):
    shutil.copytree(usual, tmp_path / "data" / "lost")
    (tmp_path / "data" / "lost" / MANIFEST).unlink()
    assert [take.recording.name for take in pending_in(tmp_path / "data")] == ["lost"], (
        "its films are fetched"
    )
    readable, problems = recordings_below(tmp_path / "data")
    assert readable == []
    (line,) = problems
    assert f"`kitchensync recover --rebuild {tmp_path / 'data' / 'lost'}`" in line
    compared = run(["sync", str(usual), "--compare", str(tmp_path / "data"), "--json"])
    rows = json.loads(compared.stdout)["pairs"]
    assert {row["recording"] for row in rows} == {"take1", "lost"}
