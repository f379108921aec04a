"""Files of `view --save`, `overlay`, `cloud` and `mesh` contain nothing from a privacy pause."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import av
import furnished as room
import numpy as np
import pytest
from click.testing import CliRunner
from small_recordings import START_WORLD_S, probe_packets, seal_stream

from kitchensync.cli import main
from kitchensync.reader.cameras.depth_views import DepthSource
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import open_recording

needs_rerun = pytest.mark.skipif(find_spec("rerun") is None, reason="needs the extra view (rerun-sdk)")
BEGIN_S, END_S = START_WORLD_S + 0.32, START_WORLD_S + 0.72
BOUND_S = 0.02


@pytest.fixture(scope="module")
def take(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """Return a recording with a pause, and for each stream the capture times in s since the headset began."""
    path = tmp_path_factory.mktemp("data") / "furnished"
    kitchen = room.write_furnished(path)
    seal_stream(path, "clock/hololens", list(probe_packets(kitchen)))
    aligned = path / "sync" / "alignment" / "GX010042.MP4.json"
    write_json(aligned, json.loads(aligned.read_text()) | {"sigma": {"total_ms": 2.0}})
    with open_recording(path) as recording:
        clock = recording.device_clock("hololens")
        assert clock is not None
        zero_ns = int(clock.to_host_ns(kitchen.headset_clock.ticks_at(0.0)))
        taken_s = {
            name: (clock.to_host_ns(recording[name].index["device_ticks"].astype(np.int64)) - zero_ns) / 1e9
            for name in recording.streams
            if len(recording[name])
        }
    log = EventLog(path, "tablet")
    for kind, at_s in (("pause", BEGIN_S), ("resume", END_S)):
        log.append(kind, host_ns=zero_ns + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)
    return path, taken_s


def outside(taken_s: np.ndarray, bound_s: float = 0.0) -> np.ndarray:
    return (taken_s < BEGIN_S - bound_s) | (taken_s > END_S + bound_s)


def run(*arguments: object) -> dict:
    done = CliRunner().invoke(main, [*(str(argument) for argument in arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("camera", ["pv", "gopro"])
def test_the_overlay_video_has_no_frame_of_the_pause(
    take: tuple[Path, dict], tmp_path: Path, camera: str
) -> None:
    path, taken_s = take
    out = tmp_path / "film.mp4"
    run("overlay", path, "--out", out, "--camera", camera)
    with av.open(str(out)) as film:
        shown_s = np.array([picture.time for picture in film.decode(video=0)])
    if camera == "pv":
        assert len(shown_s) == outside(taken_s["hololens/pv"]).sum()
        shown_s += taken_s["hololens/pv"][0]
    else:
        shown_s += START_WORLD_S
        assert room.FRAMES - 18 < len(shown_s) < room.FRAMES - 8
    assert outside(shown_s, -BOUND_S).all()


@pytest.mark.slow
def test_a_cloud_uses_only_depth_outside_the_pause(take: tuple[Path, dict], tmp_path: Path) -> None:
    path, taken_s = take
    depth_s = taken_s["hololens/depth_longthrow"]
    answer = run("cloud", path, "--out", tmp_path / "room.ply")
    assert 0 < answer["pictures"] == outside(depth_s).sum() < len(depth_s)
    with OpenedRecording(path) as recording:
        rows = [view.row for view in DepthSource(recording, answer["stream"]).views(0, len(depth_s))]
    assert rows == np.flatnonzero(outside(depth_s)).tolist()


@pytest.mark.slow
def test_a_mesh_uses_only_depth_outside_the_pause(take: tuple[Path, dict], tmp_path: Path) -> None:
    pytest.importorskip("open3d", reason="needs the extra mesh (open3d)")
    answer = run("mesh", take[0], "--out", tmp_path / "room.ply")
    assert answer["pictures"] == outside(take[1]["hololens/depth_longthrow"]).sum()


@pytest.mark.slow
@needs_rerun
def test_the_viewer_s_file_holds_nothing_of_the_pause(take: tuple[Path, dict], tmp_path: Path) -> None:
    from rerun.chunk import RrdReader

    path, taken_s = take
    file = tmp_path / "take.rrd"
    done = CliRunner().invoke(main, ["view", str(path), "--save", str(file), "--pictures-per-second", "60"])
    assert done.exit_code == 0, done.output
    zero_s = min(float(at[0]) for at in taken_s.values())
    entities = set()
    for chunk in RrdReader(file).stream().to_chunks():
        batch, entity = chunk.to_record_batch(), str(chunk.entity_path)
        if "session_ns" in batch.schema.names:
            column = batch.column(batch.schema.get_field_index("session_ns")).cast("int64")
            at_s = np.array(column.to_pylist()) / 1e9 + zero_s
            assert outside(at_s, -BOUND_S).all(), entity
            entities |= {entity} if outside(at_s, BOUND_S).any() else set()
    assert entities >= {"/world/pv", "/world/head", "/world/depth", "/gopro", "/gopro/gyroscope"}
