"""Every path of every command is known as read or as written, and nothing recorded is ever written over."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from command_tree import COMMANDS
from processes import in_small_disk

from kitchensync.cli import main
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.manifest import write_json
from kitchensync.storage.move import mover_process
from kitchensync.storage.names import COPIES
from kitchensync.storage.options.given_path import GivenPath, GivenRecording
from kitchensync.storage.options.output_options import OutputPath

OUT = "OUT"
WRITES = {
    "rig init": [OUT],
    "sync": ["TAKE", "--summary", OUT],
    "side-by-side": ["TAKE", "--out", OUT],
    "graph convert": ["graph.json", "--out", OUT],
    "backup": [OUT, "--data", "recordings"],
    "annotations export": ["--out", OUT, "--data", "recordings"],
    "annotate export": ["TAKE", "--out", OUT],
    "study plan": ["graph.json", "--out", OUT],
    "study coverage": ["graph.json", "--data", "recordings", "--csv", OUT],
    "release captaincook4d": ["TAKE", "--out", OUT],
    "release split": ["TAKE", "--kind", "type", "--ratio", "1,0,0", "--seed", "1", "--out", OUT],
    "release stats": ["TAKE", "--html", OUT],
    "export localization": ["TAKE", "--splits", "published", "--out", OUT],
    "export seconds": ["TAKE", "--out", OUT],
    "export frames": ["TAKE", "--out", OUT],
    "export features": ["TAKE", "--out", OUT],
    "export steps": ["TAKE", "--out", OUT],
    "export opinions": ["TAKE", "--out", OUT],
    "export windows": ["TAKE", "--out", OUT],
    "export promqa": ["TAKE", "--out", OUT],
    "export assembly": ["graph.json", "published", "--out", OUT],
    "measure answers": ["cases.json", "--out", OUT],
    "export coherence": ["TAKE", "--out", OUT],
    "export prompts": ["TAKE", "--out", OUT],
    "export keysteps": ["TAKE", "--out", OUT],
    "export tables": ["TAKE", "--out", OUT],
    "export lerobot": ["TAKE", "--out", OUT],
    "export mcap": ["TAKE", "--out", OUT],
    "calibrate board": ["--out", OUT],
    "view": ["TAKE", "--save", OUT],
    "cloud": ["TAKE", "--out", OUT],
    "mesh": ["TAKE", "--out", OUT],
    "overlay": ["TAKE", "--out", OUT],
    "gopro join": ["TAKE/gopro/GX010001.MP4", "--out", OUT],
}
"""Commands that write where they are told, each with a call."""
INTO_FOLDERS = {
    "annotations export",
    "annotate export",
    "release captaincook4d",
    "release split",
    "export localization",
    "export frames",
    "export tables",
    "export mcap",
    "export lerobot",
    "export features",
}
"""Those that write several files into a folder."""
GROWS = {
    "record": ["new", "--hololens", "127.0.0.1", "--data", OUT],
    "move": ["TAKE", "--to", OUT],
    "cut": ["TAKE", "--to", "2", "--out", OUT],
    "sync-camera": ["film.mp4", "--data", OUT],
    "app": ["--data", OUT],
    "adopt": ["new", "film.mp4", "--data", OUT],
    "restore": ["some.backup", "--data", OUT],
    "take-dump": ["film.mp4", "--data", OUT],
    "annotations import": ["published", "--data", OUT],
    "calibrate gopro": ["film.mp4", "--data", OUT],
    "calibrate rig": ["TAKE", "--data", OUT],
    "rehearse": ["--keep", OUT],
    "sample": [OUT],
    "simulate": ["--seed", "1", "--out", OUT],
}
"""Commands that add files to a folder, each with a call."""


def test_every_path_of_every_command_is_read_or_guarded():
    """By its type: what is given is read (or is a recording that is worked on), what is put out is guarded."""
    for name, command in COMMANDS.items():
        paths = {p.name: p.type for p in command.params if isinstance(p.type, (click.Path, click.File))}
        guarded = {path for path, kind in paths.items() if isinstance(kind, OutputPath)}
        read = {path for path, kind in paths.items() if isinstance(kind, (GivenPath, GivenRecording))}
        if name == "simulate":  # it stands apart and is handed the guard
            guarded, read = guarded | {"out"}, read | {"ring_store"}
        assert set(paths) == guarded | read, f"{name}: read or written?"
        assert bool(guarded) == (name in WRITES or name in GROWS), name
        has_force = any("--force" in p.opts for p in command.params)
        assert has_force == (name in WRITES), f"{name}: --force"
    assert not (WRITES.keys() | GROWS.keys()) - COMMANDS.keys()


@pytest.fixture
def take(tmp_path, monkeypatch):
    """A recording and everything that the calls name; the current folder is around them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mover_process, "lower_priority", lambda: None)  # of this very process
    recording = tmp_path / "data" / "take"
    for folder in ("hololens/pv", "gopro", "sync", "ledger"):
        (recording / folder).mkdir(parents=True)
    seal(recording / "hololens" / "pv", 1, [Packet(0, 1, 1, 1, 1, b"picture", b"")], {})
    (recording / "gopro" / "GX010001.MP4").write_bytes(b"an original")
    (recording / "sync" / "index.parquet").write_bytes(b"an index")
    (recording / "rig.toml").write_text("[hololens]")
    streams, devices = {"hololens/pv": {}}, {"hololens": {"kind": "hololens"}}
    manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "files": {}}
    write_json(recording / "recording.json", manifest | {"streams": streams, "devices": devices})
    for name in ("film.mp4", "some.backup", "mine.txt"):
        Path(name).write_bytes(b"mine")
    Path("graph.json").write_text(json.dumps({"steps": {"0": "START", "1": "END"}, "edges": [[0, 1]]}))
    Path("cases.json").write_text("[]")
    for name in ("recordings", "published"):
        Path(name).mkdir()
    Path("link").symlink_to(recording)
    return recording


def state_of(root: Path) -> dict[str, str]:
    """Every name below a folder, files with the hash of what they hold; a list of no copies is none."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in root.rglob("*")
        if path.name != COPIES or path.stat().st_size
    }


def refused(name: str, call: list[str], out: str, *more: str) -> str:
    arguments = [
        {OUT: out, "TAKE": "data/take"}.get(word, word.replace("TAKE", "data/take")) for word in call
    ]
    before = state_of(Path())
    done = CliRunner().invoke(main, [*name.split(), *arguments, *more])
    said = (name, out, done.output, done.exception)
    assert done.exit_code in (1, 2), said
    assert isinstance(done.exception, SystemExit), said
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, said
    assert lines[0].startswith("kitchensync: "), said
    assert state_of(Path()) == before, said
    return lines[0]


SEALED = ("data/take/hololens/pv/000001.h5", "data/take/gopro/GX010001.MP4", "data/take/rig.toml")
NEW = ("data/take/new", "data/take/hololens/pv/new", "link/gopro/new", "data/none/../take/new/er", "link")


@pytest.mark.parametrize("name", WRITES)
def test_no_command_writes_over_what_was_recorded(take, name):
    for out in (*SEALED, *NEW):
        for force in ((), ("--force",)):
            assert "data/take" in refused(name, WRITES[name], out, *force)


@pytest.mark.parametrize("name", GROWS)
def test_no_command_adds_to_a_recording(take, name):
    for out in NEW[:-1]:
        (take.parent / "none").mkdir(exist_ok=True)
        refused(name, GROWS[name], out)


@pytest.mark.parametrize("name", sorted(WRITES.keys() - INTO_FOLDERS))
def test_no_command_writes_over_a_file_unless_told_to(take, name):
    for out in ("mine.txt", "data/take/sync/index.parquet"):
        assert "--force" in refused(name, WRITES[name], out)


@pytest.mark.parametrize("name", sorted(GROWS.keys() | INTO_FOLDERS))
def test_a_file_where_a_folder_is_wanted_is_refused(take, name):
    for out in ("mine.txt", "mine.txt/below"):
        refused(name, (WRITES | GROWS)[name], out)


READ_ONLY = """
mount -t tmpfs -o ro tmpfs DISK || exit 77
{python} -c "
import json, sys
from click.testing import CliRunner
from kitchensync.cli import main
for call in json.load(open('calls.json')):
    done = CliRunner().invoke(main, call)
    known = done.exception is None or isinstance(done.exception, SystemExit)
    print(json.dumps([call[0], done.exit_code, known, done.stderr.strip().splitlines()]))
"
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_read_only_disk_is_refused_by_every_command(take, tmp_path):
    place = str(tmp_path / "disk" / "new")
    words = {OUT: place, "TAKE": "data/take"}
    calls = [
        [*name.split(), *(words.get(word, word.replace("TAKE", "data/take")) for word in call)]
        for name, call in (WRITES | GROWS).items()
    ]
    Path("calls.json").write_text(json.dumps(calls))
    before = {name: content for name, content in state_of(take).items() if not name.startswith("sync")}
    done = in_small_disk(tmp_path, READ_ONLY.format(python=sys.executable), limit_s=580)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(calls), done.stderr
    for call, (_, code, is_known, lines) in zip(calls, answers, strict=True):
        assert (code in (1, 2), is_known, len(lines)) == (True, True, 1), (call, lines)
    assert before.items() <= state_of(take).items()


@pytest.mark.parametrize("name", ["Take", "TAKE", "take."])
@pytest.mark.parametrize("call", [["record", "--hololens", "127.0.0.1"], ["adopt", "film.mp4"]], ids=str)
def test_a_name_that_a_store_may_take_for_another_is_refused(take, name, call):
    words = [call[0], name, *call[1:], "--data", "data"]
    before = state_of(Path())
    done = CliRunner().invoke(main, words)
    assert done.exit_code in (1, 2)
    assert len(done.stderr.strip().splitlines()) == 1
    assert name in done.stderr
    assert state_of(Path()) == before
