"""A recording of videos that were filmed elsewhere: proven, joined from the tablet, and never by a name unchecked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from camera_films import FilmPlan, synthesize
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from made_videos import write_video

from kitchensync.cli import main
from kitchensync.recipe_app.exchange.adopt import adopt as make
from kitchensync.recipe_app.exchange.adopt import safe_names
from kitchensync.storage.events import EventLog
from kitchensync.storage.verify import verify
from kitchensync.virtual_kitchen.world.motion import simulated_motion

pytestmark = pytest.mark.slow


def film(path: Path, *, seconds: int = 2) -> Path:
    write_video(path, (np.full((48, 64, 3), n * 5 % 255, np.uint8) for n in range(10 * seconds)), 10, bf="2")
    return path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["adopt", *map(str, arguments), "--json"])


@pytest.fixture
def videos(tmp_path: Path) -> list[Path]:
    names = ("Küche 1.mp4", "elsewhere/Küche 1.MP4", "..hidden.mov")
    (tmp_path / "elsewhere").mkdir()
    return [film(tmp_path / name, seconds=number + 1) for number, name in enumerate(names)]


def test_videos_become_a_recording_that_verifies(tmp_path: Path, videos: list[Path]) -> None:
    data = tmp_path / "data"
    done = run("lab2-017", *videos, "--data", data, "--consent", "form-12", "--participant", "P3")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert [file["file"] for file in answer["files"]] == ["K_che_1.MP4", "K_che_1-2.MP4", "hidden.MP4"]
    for file, video in zip(answer["files"], videos, strict=True):
        copied = (data / "lab2-017" / "video" / file["file"]).read_bytes()
        assert copied == video.read_bytes()
        assert (file["sha256"], file["original"]) == (hashlib.sha256(copied).hexdigest(), video.name)
    listed = CliRunner().invoke(main, ["info", str(data / "lab2-017"), "--json"]).stdout
    assert listed.count('"pictures": ') == 3
    assert [file["video"]["duration_s"] for file in answer["files"]] == [1, 2, 3]
    found = verify(data / "lab2-017")
    assert (found["status"], found["reasons"]) == ("PASS", [])
    assert set(found["streams"]) == {f"video/{file['file']}" for file in answer["files"]}
    assert sorted(path.name for path in data.iterdir()) == ["_app", "lab2-017"]
    broken = data / "lab2-017" / "video" / "hidden.MP4"
    content = bytearray(broken.read_bytes())
    content[100] ^= 1
    broken.chmod(0o600)
    broken.write_bytes(content)
    assert verify(data / "lab2-017")["status"] == "FAIL"


def test_what_cannot_be_adopted_is_one_line_and_leaves_nothing(tmp_path: Path, videos: list[Path]) -> None:
    data = tmp_path / "data"
    text = tmp_path / "notes.mp4"
    text.write_text("no video")
    sound = tmp_path / "sound.wav"
    with av.open(str(sound), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
    matroska = tmp_path / "OBS.MKV"
    with av.open(str(videos[0])) as source, av.open(str(matroska), "w", format="matroska") as out:
        copied = out.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = copied
                out.mux(packet)
    tries = [
        (("take", matroska), "OBS.MKV: is a Matroska / WebM file; copy its streams into an MP4"),
        (("take", text), "notes.mp4: cannot be read as a video"),
        (("take", videos[0], sound), "sound.wav: holds no video"),
        (("../take", videos[0]), "../take"),
        ((".hidden", videos[0]), ".hidden"),
    ]
    for arguments, said in tries:
        done = run(*arguments, "--data", data)
        assert done.exit_code == 1, arguments
        assert said in json.loads(done.stdout)["reason"]
        assert len(done.stderr.strip().splitlines()) <= 2
        assert not data.exists() or list(data.iterdir()) == []
    assert run("take", videos[0], "--data", data).exit_code == 0
    before = (data / "take" / "recording.json").read_bytes()
    done = run("take", videos[1], "--data", data)
    assert done.exit_code == 1
    assert "take" in json.loads(done.stdout)["reason"]
    assert (data / "take" / "recording.json").read_bytes() == before


@given(
    st.lists(st.text(min_size=1, max_size=40).filter(lambda name: "\x00" not in name), min_size=1, max_size=5)
)
def test_no_name_from_elsewhere_is_a_path(names: list[str]) -> None:
    safe = safe_names([Path(name) for name in names])
    assert len({name.lower() for name in safe}) == len(names)
    for name in safe:
        assert Path(name).name == name
        assert name.isascii()
        assert name[0].isalnum() or name[0] == "_"


def test_errors_are_logged_on_it_from_the_tablet(kitchen: Any, tmp_path: Path) -> None:
    video = film(tmp_path / "kitchen.mp4")
    make(kitchen.data, "lab2-017", [video], consent="none", participant="", tell=lambda *_: None)
    places = kitchen.tablet.get("/api/v1/running").json()
    assert places == {"running": ["soup_1"], "free": ["soup_1"], "adopted": ["lab2-017"]}
    recording = kitchen.choose(folder="lab2-017")["recording"]
    node = kitchen.tools.records.frozen(recording)["order"][0]
    body = {"error_id": "01a0c450-6c00-7188-8fb2-049364c0c5b1", "fields": {"node": node, "categories": [3]}}
    (receipt,) = kitchen.post(kitchen.operation(recording, "error", body, tapped_ms_ago=5, round_trip_ms=1))
    events = kitchen.events(kitchen.data / "lab2-017", "tablet_late")
    assert [event["kind"] for event in events] == ["recipe", "error"]
    assert events[1]["op_id"] == receipt["op_id"]
    assert verify(kitchen.data / "lab2-017")["status"] == "PASS"


@pytest.fixture(scope="module")
def filmed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Films of two cameras on one head, the second begun two seconds later, and one of another head."""
    root, made = tmp_path_factory.mktemp("filmed"), {}
    for name, seed, motion, start_s in (("a", 71, 70, 0.0), ("b", 72, 70, 2.0), ("other", 73, 74, 0.0)):
        (root / name).mkdir()
        plan = FilmPlan(900, 320, 180, b"avc1", seed=seed, start_world_s=start_s)
        synthesize(root / name, plan, simulated_motion(motion))
        made[name] = next((root / name).glob("*.MP4"))
    return made


def test_films_are_put_on_the_time_of_the_first(tmp_path: Path, filmed: dict[str, Path]) -> None:
    done = run("pair", filmed["a"], filmed["b"], "--sync", "--data", tmp_path)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    [pair] = answer["sync"]["pairs"]
    assert (answer["sync"]["status"], pair["master"]) == ("aligned", "video/GH010001.MP4")
    assert pair["samples"][0] == pytest.approx([0.0, 2.0], abs=1e-3)
    assert answer["sync"]["index"]["streams"][pair["source"]]["matched"] > 800
    assert Path(answer["report"]).is_file()
    told = CliRunner().invoke(
        main, ["adopt", "again", str(filmed["a"]), str(filmed["b"]), "--sync", "--data", str(tmp_path)]
    )
    assert told.exit_code == 0
    assert "begins at second 2.000" in told.output


def test_a_film_without_motion_beside_them_is_named_and_fails_nothing(
    tmp_path: Path, filmed: dict[str, Path], videos: list[Path]
) -> None:
    done = run("three", videos[0], filmed["a"], filmed["b"], "--sync", "--data", tmp_path / "data")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)["sync"]
    assert [pair["source"] for pair in answer["pairs"]] == ["video/GH010001-2.MP4"]
    assert any("video/K_che_1.MP4 is a clip of its own" in reason for reason in answer["reasons"])
    assert any("no telemetry" in reason for reason in answer["reasons"])


def test_a_film_of_another_head_is_adopted_and_named(tmp_path: Path, filmed: dict[str, Path]) -> None:
    done = run("pair", filmed["a"], filmed["other"], "--sync", "--data", tmp_path)
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["status"], answer["sync"]["status"]) == (1, "PASS", "not_aligned")
    assert answer["sync"]["pairs"][0]["reasons"]


def test_films_without_motion_are_adopted_with_nothing_to_align(tmp_path: Path, videos: list[Path]) -> None:
    done = run("still", *videos, "--sync", "--data", tmp_path / "data")
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["sync"]["status"]) == (0, "nothing_to_align")


def test_a_pause_in_adopted_films_hides_them_side_by_side(tmp_path: Path, filmed: dict[str, Path]) -> None:
    """Nobody saw an adopted film begin: with a pause all of it may lie in one."""
    run("pair", filmed["a"], filmed["b"], "--sync", "--data", tmp_path)
    started_ns = json.loads((tmp_path / "pair" / "recording.json").read_text())["started"]["host_ns"]
    log = EventLog(tmp_path / "pair", "tablet")
    for number, kind in enumerate(("pause", "resume")):
        at_ns = started_ns + number * 10**9
        log.append(kind, host_ns=at_ns, uncertainty_ns=0, body={}, op_id=kind)
    out = tmp_path / "both.mp4"
    done = CliRunner().invoke(
        main, ["side-by-side", str(tmp_path / "pair"), "--out", str(out), "--from", "5", "--to", "5.2"]
    )
    assert done.exit_code == 0, done.output
    with av.open(str(out)) as film:
        picture = next(film.decode(video=0)).to_ndarray(format="rgb24")
    assert picture[24:160, :640].std() < 5
    assert picture[24:160, 640:].std() < 5
