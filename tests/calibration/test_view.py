"""The file of `kitchensync view --save`, read back with Rerun's own reader."""

from __future__ import annotations

import socket
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import cv2
import furnished as room
import near_room
import numpy as np
import pytest
from click.testing import CliRunner
from made_videos import numbered_planes, write_video
from small_recordings import (
    SEED,
    seal_stream,
    truth_ticks,
    write_constants,
    write_film,
    write_headset,
    write_manifest,
    write_true_alignment,
)

from kitchensync.calibration.commands.view import view
from kitchensync.recipe_app.exchange.adopt import adopt
from kitchensync.sensors.hololens.streams import pv
from kitchensync.storage.events import EventLog
from kitchensync.storage.recording import open_recording
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.world.room import off_surface_m

pytestmark = pytest.mark.slow

needs_rerun = pytest.mark.skipif(find_spec("rerun") is None, reason="needs the extra view (rerun-sdk)")
START_NS = 7_000_000_000_000
"""Host time of world time 0 in small takes."""


def front_packets(kitchen: Kitchen):
    """Yield two seconds of raw frames at 10 Hz."""
    metadata = np.zeros((), pv.METADATA)
    metadata["focal_length"], metadata["principal_point"] = (505, 505), (319.5, 179.5)
    metadata["width"], metadata["height"] = 640, 360
    picture = np.full((540, 640), 90, np.uint8).tobytes()
    for media_s in np.arange(3.0, 5.0, 0.1):
        yield int(truth_ticks(kitchen, np.array([media_s]))[0]), pv.encode(picture, metadata)


@pytest.fixture(scope="module")
def take(tmp_path_factory) -> Path:
    recording = tmp_path_factory.mktemp("data") / "take1"
    kitchen = write_film(recording / "gopro", SEED, 180)
    streams = write_headset(recording, kitchen, with_pv=False)
    del streams["hololens/depth_ahat"]
    poses = [np.eye(4, dtype="<f4").tobytes()] * 20
    seal_stream(recording, "hololens/pv", front_packets(kitchen), poses=poses)
    streams["hololens/pv"] = {"format": {"codec": "raw", "width": 640, "height": 360}}
    write_manifest(recording, streams, {"hololens": "hololens", "gopro": "gopro"})
    for stream in ("pv", "gyroscope"):
        write_constants(recording, stream)
    write_true_alignment(recording, kitchen, "GX010001.MP4", 6.0)
    EventLog(recording, "operator").append(
        "note", host_ns=START_NS + 4_000_000_000, uncertainty_ns=10**6, body={"text": "spilt"}
    )
    return recording


@pytest.mark.slow
@needs_rerun
def test_everything_is_shown_at_its_session_time(take, tmp_path):
    from rerun.chunk import RrdReader

    file = tmp_path / "take.rrd"
    done = CliRunner().invoke(view, [str(take), "--save", str(file), "--pictures-per-second", "2"])
    assert done.exit_code == 0, done.output + repr(done.exception)
    rows: Counter[str] = Counter()
    times: dict[str, list[int]] = {}
    for chunk in RrdReader(file).stream().to_chunks():
        batch, entity = chunk.to_record_batch(), str(chunk.entity_path)
        rows[entity] += chunk.num_rows
        if "session_ns" in batch.schema.names:
            at = batch.column(batch.schema.get_field_index("session_ns")).cast("int64").to_pylist()
            times.setdefault(entity, []).extend(at)
    assert set(times) >= {
        "/events",
        "/gopro",
        "/gopro/gyroscope",
        "/hololens/gyroscope",
        "/world/head",
        "/world/pv",
    }
    assert rows["/gopro"] == 12, "two frames per second for six seconds"
    assert rows["/hololens/gyroscope"] >= 2500, "means over 10 ms for 26 s"
    with open_recording(take) as recording:
        first = min(
            int(recording[name].index["device_ticks"][0])
            for name in ("hololens/gyroscope", "hololens/spatial_input")
        )
        pictures = (recording["hololens/pv"].index["device_ticks"].astype(np.int64) - first) * 100
    assert set(times["/world/pv"]) <= set(pictures.tolist())
    (event_ns,) = times["/events"]
    assert abs(event_ns - 4_000_000_000) < 5_000_000, (
        "world time 0 is about the time of the headset's first packet"
    )


@needs_rerun
def test_a_part_can_be_selected_and_a_bad_path_is_reported_in_one_line(take, tmp_path):
    from rerun.chunk import RrdReader

    file = tmp_path / "part.rrd"
    arguments = [str(take), "--save", str(file), "--from", "5", "--to", "7", "--pictures-per-second", "1"]
    assert CliRunner().invoke(view, arguments).exit_code == 0
    chunks = [c for c in RrdReader(file).stream().to_chunks() if str(c.entity_path) == "/gopro"]
    assert sum(chunk.num_rows for chunk in chunks) == 2
    (tmp_path / "in the way").write_text("")
    done = CliRunner().invoke(view, [str(take), "--save", str(tmp_path / "in the way" / "x.rrd")])
    assert done.exit_code == 1
    assert "cannot be written" in str(done.exception)


def test_without_a_screen_the_alternative_is_named(take, monkeypatch):
    pytest.importorskip("rerun", reason="needs the extra view (rerun-sdk)")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(view, [str(take)])
    assert done.exit_code == 1
    assert "no screen here; give --save" in str(done.exception)


@pytest.mark.slow
@needs_rerun
def test_the_viewer_paints_pictures_and_lines(take, tmp_path):
    """Show the middle of the recording in Rerun's own viewer without a window, and check its screenshot."""
    from rerun.experimental import ViewerClient

    file, shot = tmp_path / "take.rrd", tmp_path / "shot.png"
    assert CliRunner().invoke(view, [str(take), "--save", str(file)]).exit_code == 0
    program = Path(find_spec("rerun_cli").origin).with_name("rerun")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        viewer = ViewerClient.spawn(headless=True, port=port, executable_path=str(program))
        viewer.save_screenshot(str(shot))  # of nothing yet: the viewer exits if it cannot draw
    except (RuntimeError, ConnectionError) as error:
        pytest.skip(f"the viewer does not draw here, `make system`: {str(error).splitlines()[0]}")
    try:
        viewer.open(str(file))
        until_s = time.monotonic() + 90
        while not is_painted(viewer, shot) and time.monotonic() < until_s:
            time.sleep(1)
        assert is_painted(viewer, shot)
    finally:
        viewer.quit()


def is_painted(viewer, shot: Path) -> bool:
    """Return whether the right half shows the camera's frame, and the strip below lines in three colours."""
    viewer.set_time("session_ns", duration=4.0, play_state="paused")
    viewer.save_screenshot(str(shot))
    picture = cv2.imread(str(shot)).astype(int)
    height, width = picture.shape[:2]
    pictures, plots = picture[: height * 2 // 3, width // 2 :], picture[height * 3 // 4 :]
    is_strong = [
        (plots[:, :, channel] - plots[:, :, [c for c in range(3) if c != channel]].max(axis=2) > 60).sum()
        for channel in range(3)
    ]
    greys = np.unique(pictures[np.ptp(pictures, axis=2) == 0])
    return len(greys) > 60 and min(is_strong) > 100


@pytest.mark.slow
@needs_rerun
def test_depth_is_placed_in_the_room_and_missing_constants_affect_nothing_else(tmp_path):
    from rerun.chunk import RrdReader

    kitchen = near_room.write_near(recording := tmp_path / "near")
    file = tmp_path / "near.rrd"
    arguments = [str(recording), "--save", str(file), "--pictures-per-second", "50"]
    done = CliRunner().invoke(view, arguments)
    assert done.exit_code == 0, done.output + repr(done.exception)
    chunks = [c for c in RrdReader(file).stream().to_chunks() if str(c.entity_path) == "/world/depth"]
    assert sum(chunk.num_rows for chunk in chunks) == len(near_room.TIMES_S)
    batch = chunks[0].to_record_batch()
    (column,) = (i for i, name in enumerate(batch.schema.names) if name.endswith(":positions"))
    points = np.array(batch.column(column)[0].as_py(), float)
    assert len(points) > 10_000
    assert np.mean(off_surface_m(points - room.VIEWING_POINT, room.THINGS) < 0.015) > 0.99
    eye = near_room.near_pose(kitchen, near_room.TIMES_S[0])[:3, 3]
    assert np.linalg.norm(points - eye, axis=1).max() < 1.07, "wrapped depth is not shown"
    (recording / "hololens" / "calibration" / "depth_ahat.h5").unlink()
    done = CliRunner().invoke(view, [*arguments, "--force"])
    assert done.exit_code == 0
    assert "has no readable constants of hololens/depth_ahat" in done.output


@pytest.mark.skipif(find_spec("rerun") is not None, reason="Rerun is installed here")
def test_a_missing_extra_is_named(take, tmp_path):
    done = CliRunner().invoke(view, [str(take), "--save", str(tmp_path / "x.rrd")])
    assert done.exit_code == 1
    assert "kitchensync[view]" in str(done.exception)


@needs_rerun
def test_a_video_without_motion_is_shown_and_the_missing_parts_are_named(tmp_path):
    from rerun.chunk import RrdReader

    write_video(tmp_path / "kitchen.mp4", (numbered_planes(number) for number in range(60)), 30)
    film, file = [tmp_path / "kitchen.mp4"], tmp_path / "lab.rrd"
    made = adopt(tmp_path, "lab-1", film, consent="none", participant="", tell=lambda *_: None)
    done = CliRunner().invoke(view, [made["path"], "--save", str(file)])
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert "left out: video/gyroscope: " in done.output
    chunks = [c for c in RrdReader(file).stream().to_chunks() if str(c.entity_path) == "/video"]
    assert sum(chunk.num_rows for chunk in chunks) > 1
