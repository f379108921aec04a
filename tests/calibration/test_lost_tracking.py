"""Tracking lost twice, in `overlay`, `cloud` and `view --save`: nothing is placed without tracking."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import av
import furnished as room
import numpy as np
import pytest
from click.testing import CliRunner
from headset_faults import add_faults
from small_recordings import START_WORLD_S

from kitchensync.calibration.space.overlay import caption, draw
from kitchensync.calibration.space.sightings import Sighting, SightingFinder
from kitchensync.cli import main
from kitchensync.reader.cameras.depth_views import DepthSource
from kitchensync.reader.cameras.eyes import NO_POSE, TRACKING_LOST, Shot, eye_of, lost_at
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.storage.recording import open_recording
from kitchensync.storage.timeline.pose_track import PoseTrack
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow

needs_rerun = pytest.mark.skipif(find_spec("rerun") is None, reason="needs the extra view (rerun-sdk)")
DEPTH = "hololens/depth_longthrow"
PV_HZ = 10.0
SPANS_S = ((0.35, 0.45), (0.68, 0.95))
"""Spans without tracking, seconds of the video. They contain one and three frames of the front camera.

In the first span the neighbouring poses are close enough for an interpolation.
"""


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Kitchen]:
    """Return a recording of the furnished room, the same with tracking lost, and its kitchen."""
    whole = tmp_path_factory.mktemp("data") / "furnished"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "PV_HZ", PV_HZ)
        kitchen = room.write_furnished(whole)
    lost = whole.parent / "lost"
    shutil.copytree(whole, lost)
    faults = [f"lost_tracking:@{START_WORLD_S + a:.2f}+{b - a:.2f}" for a, b in SPANS_S]
    add_faults(lost, kitchen, *faults)
    return whole, lost, kitchen


def is_lost(at_s: float) -> bool:
    return any(first <= at_s < last for first, last in SPANS_S)


def sightings(path: Path, camera: str, kitchen: Kitchen) -> list[tuple[float, Shot, Sighting]]:
    with OpenedRecording(path) as recording, eye_of(recording, camera) as eye:
        sightings = SightingFinder(recording, eye.headset, DepthSource(recording, DEPTH))
        return [
            (kitchen.headset_clock.world_s_at(shot.ticks) - START_WORLD_S, shot, sightings.at(shot))
            for shot in eye.shots(range(len(eye.ticks)), 320)
        ]


def run(*arguments: object) -> dict:
    done = CliRunner().invoke(main, [*(str(argument) for argument in arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("camera", ["pv", "gopro"])
def test_nothing_is_drawn_without_tracking_and_the_rest_is_unchanged(
    takes: tuple[Path, Path, Kitchen], camera: str
) -> None:
    whole, lost, kitchen = takes
    left_out = placed = 0
    before = sightings(whole, camera, kitchen)
    for (at_s, shot, sighting), (_, was, had) in zip(sightings(lost, camera, kitchen), before, strict=True):
        assert was.view is not None
        if shot.view is None:
            left_out += 1
            assert sighting.unplaced == shot.unplaced == TRACKING_LOST
            assert not sighting.hands
            assert sighting.gaze is None
            assert not len(sighting.edges)
            assert TRACKING_LOST in caption(at_s, sighting)
            assert (draw(shot.rgb.copy(), sighting, "")[40:] == was.rgb[40:]).all()
            continue
        placed += 1
        assert not is_lost(at_s)
        assert sighting.unplaced == ""
        assert TRACKING_LOST not in caption(at_s, sighting)
        assert (shot.view.camera_from_world == was.view.camera_from_world).all()
        assert sighting.hands.keys() == had.hands.keys()
    # The video is placed by the front camera's poses: without any from 0.3 to 0.5 s and from 0.6 to 1.0 s.
    assert (left_out, placed) == {"pv": (4, 8), "gopro": (18, 12)}[camera]


def test_a_pose_between_tracked_ones_is_interpolated_and_after_the_last_one_is_not_called_lost() -> None:
    poses = np.tile(np.eye(4), (5, 1, 1))
    poses[3] = 0
    track = PoseTrack.of_wire(10 * np.arange(5), poses, np.zeros(5, np.int32))
    at = np.array([-5, 0, 15, 20, 21, 30, 39, 40, 99])
    assert lost_at(track, at).tolist() == [False, False, False, False, True, True, True, False, False]


def test_frames_before_the_headset_s_first_pose_are_not_called_lost(
    takes: tuple[Path, Path, Kitchen],
) -> None:
    path = takes[1]
    with OpenedRecording(path) as recording, eye_of(recording, "gopro") as eye:
        eye.ticks = eye.ticks - 50_000_000
        (shot,) = eye.shots([0], 320)
    assert (shot.view, shot.unplaced) == (None, NO_POSE)


def test_an_overlay_that_begins_without_tracking_has_the_requested_width(
    takes: tuple[Path, Path, Kitchen], tmp_path: Path
) -> None:
    out = tmp_path / "film.mp4"
    answer = run("overlay", takes[1], "--out", out, "--width", 320, "--from", 0.65)
    assert answer["drawn_now"]["lost"] == answer["drawn_now"]["unplaced"] == 3
    with av.open(str(out)) as film:
        assert {(frame.width, frame.height) for frame in film.decode(video=0)} == {(320, 180)}


def test_a_cloud_leaves_out_and_counts_what_was_taken_while_tracking_was_lost(
    takes: tuple[Path, Path, Kitchen], tmp_path: Path
) -> None:
    whole, lost, _ = takes
    before = run("cloud", whole, "--out", tmp_path / "whole.ply")
    answer = run("cloud", lost, "--out", tmp_path / "lost.ply")
    assert before["left_out"]["untracked"] == 0
    assert answer["left_out"]["untracked"] == 2
    assert answer["pictures"] == before["pictures"] - 2
    with OpenedRecording(lost) as recording:
        source = DepthSource(recording, DEPTH)
        rows = [view.row for view in source.views(0, len(source.ticks))]
    taken_s = 0.03 + 0.2 * np.arange(before["pictures"])
    assert rows == [row for row, at_s in enumerate(taken_s) if not is_lost(at_s)]


@needs_rerun
def test_the_viewer_shows_nothing_of_the_head_while_tracking_is_lost(
    takes: tuple[Path, Path, Kitchen], tmp_path: Path
) -> None:
    shown, messages = viewed(takes[1], tmp_path)
    with open_recording(takes[1]) as recording:
        streams = [recording[name] for name in recording.streams if name.startswith("hololens/")]
        zero_ticks = min(int(stream.index["device_ticks"][0]) for stream in streams)
    zero_s = takes[2].headset_clock.world_s_at(zero_ticks) - START_WORLD_S
    for entity in ("/world/head", "/world/gaze", "/world/left_hand", "/world/depth", "/world/pv"):
        rows = sorted((ns / 1e9 + zero_s, is_there) for ns, is_there in shown[entity])
        assert not any(is_there for at_s, is_there in rows if is_lost(at_s)), entity
        for _, end_s in SPANS_S:
            assert not [is_there for at_s, is_there in rows if at_s < end_s][-1], (entity, end_s)
        assert rows[-1][1], f"{entity} is shown again"
    for stream in ("pv", "spatial_input"):
        assert messages[f"/events/hololens/{stream}"] == [TRACKING_LOST, "tracking found again"] * 2
    unspoilt, messages = viewed(takes[0], tmp_path)
    assert all(
        is_there
        for entity in ("/world/head", "/world/depth", "/world/pv")
        for _, is_there in unspoilt[entity]
    )
    assert not messages


def viewed(path: Path, tmp_path: Path) -> tuple[dict[str, list[tuple[int, bool]]], dict[str, list[str]]]:
    """Return when each entity of the room is shown or hidden in the viewer's file, and the event messages."""
    from rerun.chunk import RrdReader

    file = tmp_path / f"{path.name}.rrd"
    arguments = ["view", str(path), "--save", str(file), "--pictures-per-second", "300"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    shown: dict[str, list[tuple[int, bool]]] = {}
    messages: dict[str, list[tuple[int, str]]] = {}
    for chunk in RrdReader(file).stream().to_chunks():
        batch, entity = chunk.to_record_batch(), str(chunk.entity_path)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if "session_ns" not in columns:
            continue
        at_ns = columns["session_ns"].cast("int64").to_pylist()
        for name, column in columns.items():
            values = column.to_pylist()
            if name.endswith("TextLog:text"):
                messages.setdefault(entity, []).extend(
                    (ns, value[0]) for ns, value in zip(at_ns, values, strict=True)
                )
            elif name.endswith("Clear:is_recursive"):
                shown.setdefault(entity, []).extend((ns, False) for ns in at_ns)
            elif name.endswith(("Arrows3D:vectors", "Points3D:positions", "Transform3D:mat3x3")):
                there = [value is not None and bool(np.isfinite(value).all()) for value in values]
                shown.setdefault(entity, []).extend(zip(at_ns, there, strict=True))
    return shown, {entity: [text for _, text in sorted(lines)] for entity, lines in messages.items()}
