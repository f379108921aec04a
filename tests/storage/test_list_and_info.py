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
from small_recordings import write_film

from kitchensync.cli import main
from kitchensync.storage.catalogue.kept_lines import catalogue_of, forget
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.verify import keep_verdict, verify


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
    (film,) = said["cameras"]["gopro"]["files"]
    assert (film["name"], film["bytes"]) == ("GX010001.MP4", 9 << 20)
    assert "GX010001.MP4" in said["cameras"]["gopro"]["problem"], "no film, and it is said"
    assert said["calibration"] == ["hololens/calibration/pv.h5"]


def test_info_of_a_folder_of_recordings_names_the_other_command(data: Path) -> None:
    refused = CliRunner().invoke(main, ["info", str(data)])
    assert refused.exit_code == 2
    assert "kitchensync list" in refused.stderr


def odd(recording: Path, **fields: object) -> None:
    """Change a manifest as a program does that writes other things into it."""
    with edit_manifest(recording) as manifest:
        manifest |= fields


BREAKS = {
    "of another program": lambda path: (path / "recording.json").write_text("{}"),
    "flipped": lambda path: (path / "recording.json").write_bytes(
        (path / "recording.json").read_bytes().replace(b'"complete"', b'"complexe"', 1)
    ),
    "without streams": lambda path: odd(path, streams=[]),
    "times as words": lambda path: odd(path, started={"host_ns": "noon", "utc_ns": []}, recipe="tea"),
    "times as a list": lambda path: odd(path, started=[1]),
    "no folder": lambda path: (shutil.rmtree(path), path.write_text("")),
    "a dangling link": lambda path: (shutil.rmtree(path), path.symlink_to("nowhere")),
    "bad answers": lambda path: [
        (path / "sync" / "alignment").mkdir(parents=True),
        (path / "sync" / "alignment" / "a.json").write_text('{"schema": "alignment/1", "status": 5}'),
        (path / "sync" / "verify.json").write_text('{"status": "PASS", "streams": 3}'),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BREAKS))
def test_one_that_is_broken_is_named_and_ends_no_listing(name: str, data: Path, finished: Path) -> None:
    broken = data / "mid" / "broken"
    shutil.copytree(finished, broken)
    BREAKS[name](broken)
    done = CliRunner().invoke(main, ["list", str(data)])
    lines = {line["path"]: line for line in asked("list", str(data))["recordings"]}
    assert (done.exit_code, done.exception) == (0, None)
    assert {"take-1", "north/2026/take-2", "south/take-3"} <= lines.keys()
    if name in ("of another program", "flipped", "without streams", "times as words", "times as a list"):
        assert lines["mid/broken"]["problem"]
        assert f"kitchensync: {lines['mid/broken']['problem']}" in done.stderr.splitlines()
    elif name == "bad answers":
        assert lines["mid/broken"]["life"] == "complete"
    else:
        assert "mid/broken" not in lines


def test_a_folder_that_cannot_be_read_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.scandir

    def refusing(path: Any) -> Any:
        if Path(path).name == "notes":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(os, "scandir", refusing)  # tests may run as root, whom nothing is forbidden
    done = CliRunner().invoke(main, ["list", str(data)])
    assert done.exit_code == 0
    (line,) = (line for line in done.stderr.splitlines() if "notes" in line)
    assert "permission denied" in line
    assert "take-1" in done.stdout


def test_a_recording_itself_is_listed_by_its_name(data: Path) -> None:
    (line,) = asked("list", str(data / "take-1"))["recordings"]
    assert (line["recording"], line["path"]) == ("take-1", "take-1")


def test_info_tells_what_opens_beside_a_damaged_chunk(data: Path) -> None:
    chunk = data / "take-1" / "hololens" / "pv" / "000002.h5"
    chunk.write_bytes(chunk.read_bytes()[:300])
    said = asked("info", str(data / "take-1"))
    stream = said["streams"]["hololens/pv"]
    assert stream["packets"] == 40
    assert "hololens/pv/000002.h5" in stream["problem"]
    assert said["exit"] == 0


def test_info_measures_every_film_of_a_camera(data: Path) -> None:
    folder = data / "take-1" / "gopro"
    for name, frames in (("GX010001.MP4", 60), ("GX010002.MP4", 90)):
        made = folder.parent.parent / "film" / name
        write_film(made.parent, 3, frames)
        shutil.move(made.parent / "GX010001.MP4", folder / name)
        shutil.rmtree(made.parent)
    camera = asked("info", str(data / "take-1"))["cameras"]["gopro"]
    assert [file["name"] for file in camera["files"]] == ["GX010001.MP4", "GX010002.MP4"]
    assert [file["seconds"] for file in camera["files"]] == pytest.approx([2.002, 3.003], abs=0.002)
    assert camera["seconds"] == pytest.approx(5.005, abs=0.003)
    assert "problem" not in camera


def test_info_shows_the_film_of_an_adopted_recording(data: Path) -> None:
    with edit_manifest(data / "take-1") as manifest:
        manifest["devices"]["gopro"] = {"kind": "video"}
    assert asked("info", str(data / "take-1"))["cameras"]["gopro"]["bytes"] == 9 << 20


def test_info_says_how_good_an_alignment_is(data: Path) -> None:
    folder = data / "take-1" / "sync" / "alignment"
    folder.mkdir(parents=True)
    latency = {"part": "camera_gyro_to_frame", "value": 0.0, "sigma": 15.0, "source": "default"}
    sigma = {"bound95_ms": [0.05, 0.061, 0.04], "total_ms": 15.1, "systematic_ms": [latency]}
    body = {"schema": "alignment/1", "source": "gopro/GX010001.MP4", "status": "check", "sigma": sigma}
    (folder / "GX010001.MP4.json").write_text(json.dumps(body))
    (one,) = asked("info", str(data / "take-1"))["alignments"]
    assert (one["status"], one["bound95_ms"], one["total_ms"]) == ("check", 0.061, 15.1)
    said = CliRunner().invoke(main, ["info", str(data / "take-1")]).stdout
    assert "gyroscopes within 0.06 ms; pictures within 30 ms (95 %, camera latency assumed" in said
    (folder / "GX010001.MP4.json").write_text(json.dumps(body | {"status": "not_aligned"}))
    (one,) = asked("info", str(data / "take-1"))["alignments"]
    assert (one["bound95_ms"], one["total_ms"], one["bounds"]) == (None, None, "")


def test_info_places_a_plugin_stream_by_its_arrivals_without_a_headset(data: Path) -> None:
    folder = data / "take-1" / "scale" / "weight"
    folder.mkdir(parents=True)
    seal(folder, 1, [Packet(n, 1, 7 * n, 2 * 10**9 + n * 10**8, 1, b"5 g", b"") for n in range(31)], {})
    with edit_manifest(data / "take-1") as manifest:
        manifest["streams"]["scale/weight"] = {"device": "scale", "nominal_hz": 12.5}
    stream = asked("info", str(data / "take-1"))["streams"]["scale/weight"]
    assert (stream["packets"], stream["nominal_hz"], stream["rate_hz"]) == (31, 12.5, 10.0)
    assert (stream["from_s"], stream["to_s"]) == (1.0, 4.0)
    assert (stream["from_utc"], stream["to_utc"]) == ("2025-06-15T15:06:41Z", "2025-06-15T15:06:44Z")


def test_many_kinds_of_events_are_broken_into_lines_between_them(data: Path) -> None:
    log = EventLog(data / "take-1", "tablet")
    for number in range(30):
        log.append(f"question_{number}", host_ns=10**9, uncertainty_ns=0, body={}, op_id=f"op{number}")
    done = CliRunner().invoke(main, ["info", str(data / "take-1")])
    lines = done.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("events: "))
    events = [lines[first], *(line for line in lines[first + 1 :] if line.startswith("        "))]
    assert len(events) > 1
    assert max(map(len, events)) <= 100
    assert all(f"1 question_{number}" in "\n".join(events) for number in range(30))


def test_names_that_are_not_utf8_are_shown_as_escapes(finished: Path, tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"lab\xff")
    shutil.copytree(finished, root / os.fsdecode(b"take\xe9"))
    (line,) = asked("list", str(root))["recordings"]
    assert (line["path"], line["verdict"]) == ("take\udce9", None)
    for _ in range(2):  # the second time what was kept is read
        with catalogue_of(root, fewest=1) as catalogue:
            assert [one["path"] for one in catalogue.lines()] == ["take\udce9"]
    forget(root / os.fsdecode(b"take\xe9"))
    for command in ("list", "verify"):
        done = CliRunner().invoke(main, [command, str(root)])
        assert (done.exit_code, "take" in done.stdout) == (0, True)
    assert "take\\udce9" in CliRunner().invoke(main, ["info", str(root / os.fsdecode(b"take\xe9"))]).stdout
    refused = CliRunner().invoke(main, ["list", str(root), "--where", os.fsdecode(b"path=\xe9")])
    assert (refused.exit_code, "not UTF-8" in refused.stderr, refused.stdout) == (1, True, "")
