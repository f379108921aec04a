"""`kitchensync list` and `info`: what they say of recordings, beside h5py and the folders themselves."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import h5py
import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from storage.manifest import edit_manifest
from storage.verify import keep_verdict, verify


def asked(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, [*words, "--json"])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer | {"exit": done.exit_code}


def size_of(folder: Path) -> int:
    return sum(os.stat(os.path.join(at, name)).st_size for at, _, names in os.walk(folder) for name in names)


@pytest.fixture
def data(finished: Path, tmp_path: Path) -> Path:
    """Recordings at three depths: complete, withdrawn, without manifest; beside them what is none."""
    root = tmp_path / "lab"
    shutil.copytree(finished, root / "take-1")
    keep_verdict(root / "take-1", verify(root / "take-1"))
    with edit_manifest(root / "take-1") as manifest:
        manifest |= {"pseudonym": "Basil", "recipe": {"name": "tea"}, "consent": "form-1"}
        manifest["started"] = {"host_ns": 10**9, "utc_ns": 1_750_000_000 * 10**9}
    shutil.copytree(finished, root / "north" / "2026" / "take-2")
    with edit_manifest(root / "north" / "2026" / "take-2") as manifest:
        manifest |= {"withdrawn": {"host_ns": 1}, "pseudonym": "Sage"}
    shutil.copytree(finished, root / "south" / "take-3")
    (root / "south" / "take-3" / "recording.json").unlink()
    shutil.copytree(finished, root / "_app" / "hidden")
    (root / "notes").mkdir()
    (root / "south" / "loop").symlink_to(root)
    return root


def test_every_recording_is_listed_once_whatever_its_life(data: Path) -> None:
    answer = asked("list", str(data))
    lines = {line["path"]: line for line in answer["recordings"]}
    assert (answer["schema"], answer["exit"]) == ("list/1", 0)
    assert {path: line["life"] for path, line in lines.items()} == {
        "take-1": "complete",
        "north/2026/take-2": "withdrawn",
        "south/take-3": "manifest_lost",
    }
    first = lines["take-1"]
    assert (first["recipe"], first["person"], first["verdict"]) == ("tea", "Basil", "PASS")
    assert first["started"] == "2025-06-15T15:06:40Z"
    assert first["bytes"] == size_of(data / "take-1")
    assert lines["south/take-3"]["verdict"] == "FAIL"
    assert "recover --rebuild" in lines["south/take-3"]["problem"]


def test_of_a_withdrawn_recording_only_that_is_said(data: Path) -> None:
    lines = asked("list", str(data))["recordings"]
    (line,) = (one for one in lines if one["life"] == "withdrawn")
    assert line.keys() == {"recording", "path", "life"}
    table = CliRunner().invoke(main, ["list", str(data)]).stdout
    assert "Sage" not in table
    refused = CliRunner().invoke(main, ["info", str(data / "north" / "2026" / "take-2")])
    assert (refused.exit_code != 0, "withdrew" in refused.stderr, refused.stdout) == (True, True, "")


def test_the_table_has_a_line_for_each_and_a_sum(data: Path) -> None:
    done = CliRunner().invoke(main, ["list", str(data)])
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["recording", "recipe", "person"]
    assert len(lines) == 5
    assert lines[-1].startswith("3 recordings, ")
    empty = CliRunner().invoke(main, ["list", str(data / "notes")])
    assert (empty.exit_code, empty.stdout, "holds no recording" in empty.stderr) == (0, "", True)


def test_info_says_of_a_stream_what_its_chunks_hold(data: Path) -> None:
    said = asked("info", str(data / "take-1"))
    stream, folder = said["streams"]["hololens/pv"], data / "take-1" / "hololens" / "pv"
    count = 0
    for path in folder.glob("*.h5"):
        with h5py.File(path) as chunk:
            count += len(chunk["index"])
    assert (said["schema"], said["exit"]) == ("info/1", 0)
    assert stream["packets"] == count == 60
    assert stream["bytes"] == sum(path.stat().st_size for path in folder.glob("*.h5"))
    assert said["verdict"] == "PASS"
    assert said["cameras"]["gopro"]["files"] == [{"name": "GX010001.MP4", "bytes": 9 << 20}]
    assert "problem" in said["cameras"]["gopro"], "no film, and it is said"
    assert said["calibration"] == ["hololens/calibration/pv.h5"]


def test_info_of_a_folder_of_recordings_names_the_other_command(data: Path) -> None:
    refused = CliRunner().invoke(main, ["info", str(data)])
    assert refused.exit_code == 2
    assert "kitchensync list" in refused.stderr
