"""The commands `cloud`, `mesh` and `overlay` with a furnished room of known distances and colours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import av
import furnished as room
import numpy as np
import pytest
from click.testing import CliRunner
from derived_places import read_derived

import kitchensync as ks
from kitchensync.calibration.commands.space import cloud, mesh, overlay
from kitchensync.calibration.space import cloud as cloud_job
from kitchensync.calibration.space import overlay as overlay_job
from kitchensync.calibration.space import partial
from kitchensync.calibration.space.body import Body
from kitchensync.calibration.space.mesh import open3d_or_refuse
from kitchensync.calibration.space.sightings import SightingFinder
from kitchensync.cli import main
from kitchensync.reader.cameras.depth_views import DepthSource
from kitchensync.reader.cameras.eyes import eye_of
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.storage.geometry.clouds import STEP, STEP_MM
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.geometry.voxels import Voxels
from kitchensync.virtual_kitchen.world.optics import Optics
from kitchensync.virtual_kitchen.world.room import off_surface_m

pytestmark = pytest.mark.slow

DEPTH = "hololens/depth_longthrow"
REACH_PX = 8.0


@pytest.fixture(scope="module")
def take(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "furnished"
    return path, room.write_furnished(path)


def run(command, *arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [command.name, *(str(argument) for argument in arguments)])
    return result.exit_code, result.output + (str(result.exception) if result.exit_code else "")


def true_pose(kitchen, camera: str, ticks: int) -> np.ndarray:
    world_s = kitchen.headset_clock.world_s_at(ticks)
    return room.pv_pose(kitchen, world_s) if camera == "pv" else room.gopro_pose(kitchen, world_s)


def off_edge_px(edges: np.ndarray, optics: Optics, pose: np.ndarray) -> np.ndarray:
    """Return the distance of each drawn piece from the next true depth step across it; infinity beyond 8 pixels."""
    middle, way = edges.mean(1), edges[:, 1] - edges[:, 0]
    across = np.column_stack((-way[:, 1], way[:, 0])) / np.linalg.norm(way, axis=1, keepdims=True)
    steps = np.arange(-REACH_PX, REACH_PX + 0.1, 0.25)
    pixels = (middle[:, None] + steps[:, None] * across[:, None]).reshape(-1, 2)
    rays = optics.rays(pixels).reshape(len(edges), len(steps), 3)
    away = 1e3 * room.traced(pose, rays)
    near, far = np.minimum(away[:, 1:], away[:, :-1]), np.maximum(away[:, 1:], away[:, :-1])
    between = np.abs((steps[1:] + steps[:-1]) / 2)
    return np.where(far > near * (1 + STEP / 2) + STEP_MM / 2, between, np.inf).min(1)


MOST_OFF_DEG = {"pv": 0.001, "gopro": 0.3}
"""Between the picture of a joint and its true direction; the film camera's mount is known to 0.25 degrees."""


def angles_deg(rays: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the angles between rays (n, 3), which are small."""
    a, b = (some / np.linalg.norm(some, axis=1, keepdims=True) for some in (rays, others))
    return np.rad2deg(np.linalg.norm(a - b, axis=1))


@pytest.mark.slow
@pytest.mark.parametrize(("camera", "optics"), [("pv", room.PV), ("gopro", room.GOPRO)])
def test_outlines_are_within_two_pixels_of_the_true_ones(take, camera, optics):
    path, kitchen = take
    off, pieces = [], []
    with OpenedRecording(path) as recording, eye_of(recording, camera) as eye:
        sightings = SightingFinder(recording, eye.headset, DepthSource(recording, DEPTH))
        for shot in eye.shots(range(1, len(eye.ticks) - 1, 4)):
            edges = sightings.at(shot).edges
            pieces.append(len(edges))
            off.append(off_edge_px(edges[::3], optics, true_pose(kitchen, camera, shot.ticks)))
    every = np.concatenate(off)
    print(
        f"{camera}: median {np.median(every):.2f} px, 90 % {np.percentile(every, 90):.2f} px of {len(every)}"
    )
    assert min(pieces) > 150
    assert np.median(every) < 2.0
    assert np.mean(every < 2 * REACH_PX / 4) > 0.8


@pytest.mark.parametrize(("camera", "optics"), [("pv", room.PV), ("gopro", room.GOPRO)])
def test_hands_and_gaze_match_the_true_optics(take, camera, optics):
    path, kitchen = take
    joints = gazes = 0
    with OpenedRecording(path) as recording, eye_of(recording, camera) as eye:
        sightings, body = (
            SightingFinder(recording, eye.headset, DepthSource(recording, DEPTH)),
            Body(recording, "hololens"),
        )
        for shot in eye.shots(range(2, len(eye.ticks) - 2, 5)):
            moment, sighting = body.at(shot.ticks), sightings.at(shot)
            camera_from_world = np.linalg.inv(true_pose(kitchen, camera, shot.ticks))
            for side, hand in sighting.hands.items():
                at = moment.joints_m[side] @ camera_from_world[:3, :3].T + camera_from_world[:3, 3]
                shown = hand.visible
                off_deg = angles_deg(optics.rays(hand.pixels[shown]), at[shown])
                assert np.all(off_deg < MOST_OFF_DEG[camera]), side
                joints += np.count_nonzero(shown)
            if sighting.gaze_m is not None:
                met = moment.gaze.origin_m + sighting.gaze_m * moment.gaze.direction - room.VIEWING_POINT
                assert off_surface_m(met[None], room.THINGS)[0] < 0.03
                gazes += 1
    assert gazes >= 2
    assert joints > 0 or camera == "pv"


@pytest.mark.parametrize(("camera", "optics"), [("pv", room.PV), ("gopro", room.GOPRO)])
def test_points_match_the_true_optics(take, camera, optics):
    path, kitchen = take
    corners = np.concatenate([np.array(box) for box in room.THINGS]) + room.VIEWING_POINT
    behind = np.array([0.0, 0.0, 30.0])
    count = 0
    with ks.open(path) as rec:
        cameras = rec[camera]
        for number in range(2, len(cameras) - 2, 5):
            ticks = round(float(cameras.times[number]) * 1e7) + rec.stored.session_time.ticks0
            from_world = np.linalg.inv(true_pose(kitchen, camera, ticks))
            true = optics.pixels(corners @ from_world[:3, :3].T + from_world[:3, 3])
            pixels = cameras.project(number, [*corners, behind])
            shown = np.isfinite(pixels[:-1, 0])
            assert np.isnan(pixels[-1]).all()
            assert np.linalg.norm(pixels[:-1][shown] - true[shown], axis=1).max() < (
                0.1 if camera == "pv" else 5
            )
            count += np.count_nonzero(shown)
        assert cameras.project(3, corners.reshape(2, 3, 3)).shape == (2, 3, 2)
    assert count > 6


def test_a_video_without_lens_and_mount_refuses_to_project(take, tmp_path):
    path, _ = take
    shutil.copytree(path, tmp_path / "alone")
    with ks.open(tmp_path / "alone") as rec, pytest.raises(Refused, match="calibrate"):
        rec.gopro.project(3, [0.0, 1.0, 0.0])


@pytest.mark.slow
def test_the_overlay_has_every_frame_at_its_time_and_is_resumed(take, tmp_path, monkeypatch):
    path, _ = take
    monkeypatch.setattr(overlay_job, "SEGMENT_FRAMES", 7)

    class Cut(Exception):
        pass

    def cut(done: float, whole: float, message: str) -> None:
        if done == 17:
            raise Cut

    out, request = tmp_path / "look.mp4", overlay_job.OverlayRequest("gopro", width=480)
    with pytest.raises(Cut):
        overlay_job.make_overlay(path, out, path.parent, request, cut)
    assert not out.exists()
    answer = overlay_job.make_overlay(path, out, path.parent, request)
    assert answer["drawn_now"]["pictures"] == room.FRAMES - 14, (
        "two segments were done before the interruption"
    )
    assert [file.name for file in tmp_path.iterdir()] == ["look.mp4"]
    with av.open(str(out)) as container:
        frames = [
            (float(frame.time), frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)
        ]
    assert np.allclose([at for at, _ in frames], np.arange(room.FRAMES) * 1001 / 30000, atol=1e-3)
    assert frames[0][1].shape == (270, 480, 3)
    green = [np.count_nonzero((p[..., 1] > 170) & (p[..., 0] < 110) & (p[..., 2] > 90)) for _, p in frames]
    assert min(green) > 50, "outlines are drawn in every frame"


@pytest.mark.slow
def test_an_interrupted_overlay_restarts_after_a_change_of_calibration(take, tmp_path, monkeypatch):
    path, _ = take
    monkeypatch.setattr(overlay_job, "SEGMENT_FRAMES", 7)
    shutil.copytree(path.parent / "calibrations", tmp_path / "calibrations")
    out, request = tmp_path / "look.mp4", overlay_job.OverlayRequest("gopro", width=480)

    def cut(done: float, whole: float, message: str) -> None:
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        overlay_job.make_overlay(path, out, tmp_path, request, cut)
    [mount] = (tmp_path / "calibrations").glob("*/rig-*.json")
    answer = json.loads(mount.read_text())
    answer["camera_from_pv"][0][3] += 0.01
    mount.write_text(json.dumps(answer))
    answer = overlay_job.make_overlay(path, out, tmp_path, request)
    assert answer["drawn_now"]["pictures"] == room.FRAMES, "the first segment showed the old mount"


@pytest.mark.promise("Lens and mount are found within their stated error, and depth matches the room")
def test_the_cloud_matches_the_room_and_its_colours(take, tmp_path):
    path, _ = take
    code, output = run(cloud, path, "--out", tmp_path / "room.ply", "--json")
    assert code == 0, output
    answer = json.loads(output)
    assert answer["cameras"] == ["pv", "GX010042.MP4"]
    points, colours = room.read_ply(tmp_path / "room.ply")
    assert len(points) == answer["points"] > 30_000
    off = off_surface_m(points - room.VIEWING_POINT, room.THINGS)
    assert np.sqrt(np.mean(off**2)) < 0.01
    shown = colours.any(1)
    assert 0.2 < shown.mean() < 1.0
    true = room.colour_of(points[shown])
    wrong = np.abs(colours[shown].astype(float) - true).max(1)
    assert np.median(wrong) < 8
    boxes = np.all(true == room.BOX_COLOUR, axis=1)
    assert boxes.sum() > 300
    assert np.mean(wrong[boxes] < 40) > 0.8, "objects in front have their own colour"


def test_an_interrupted_cloud_is_resumed_with_the_same_result(take, tmp_path, monkeypatch):
    path, _ = take
    request = cloud_job.CloudRequest(cameras=("pv",), voxel_m=0.02)
    cloud_job.make_cloud(path, tmp_path / "whole.ply", path.parent, request)
    monkeypatch.setattr(partial, "PERIOD_S", 0.0)

    class Cut(Exception):
        pass

    begun = []

    def cut(done: float, whole: float, message: str) -> None:
        begun.append(done)
        if len(begun) == 4:
            raise Cut

    with pytest.raises(Cut):
        cloud_job.make_cloud(path, tmp_path / "cut.ply", path.parent, request, cut)
    assert (tmp_path / "cut.ply.partial").is_dir()
    begun.clear()
    cloud_job.make_cloud(
        path, tmp_path / "cut.ply", path.parent, request, lambda done, *_: begun.append(done)
    )
    assert begun[0] == 4
    assert not (tmp_path / "cut.ply.partial").exists()
    whole, resumed = room.read_ply(tmp_path / "whole.ply"), room.read_ply(tmp_path / "cut.ply")
    assert np.allclose(whole[0], resumed[0], atol=1e-6)
    assert np.array_equal(whole[1], resumed[1])


def test_files_made_without_out_are_listed_even_after_an_interruption(take, tmp_path, monkeypatch, open3d):
    path, _ = take
    monkeypatch.chdir(tmp_path)
    for command, options in ((overlay, ("--camera", "pv")), (cloud, ("--cameras", "none")), (mesh, ())):
        code, output = run(command, path, "--to", 1, *options)
        assert code == 0, output
    made = {"furnished-pv.mp4", "furnished-cloud.ply", "furnished-mesh.ply"}
    assert {file.name for file in tmp_path.iterdir()} == made

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cloud_job, "written", cut)
    assert run(cloud, path, "--to", 1, "--cameras", "none", "--out", "cut.ply")[0] != 0
    places = [Path(line["path"]) for line in read_derived(path)]
    assert {file.name for file in places if file.parent == tmp_path} == made | {"cut.ply.partial"}
    assert {file.name for file in tmp_path.iterdir()} == made | {"cut.ply.partial"}


@pytest.fixture
def open3d():
    try:
        return open3d_or_refuse()
    except Refused as refusal:
        pytest.skip(str(refusal))


def test_the_mesh_is_within_a_centimetre_of_the_room(take, tmp_path, open3d):
    path, _ = take
    code, output = run(mesh, path, "--out", tmp_path / "room.ply", "--json")
    assert code == 0, output
    surface = open3d.io.read_triangle_mesh(str(tmp_path / "room.ply"))
    points = np.asarray(surface.vertices)
    assert len(points) == json.loads(output)["points"] > 3000
    off = off_surface_m(points - room.VIEWING_POINT, room.THINGS)
    assert np.sqrt(np.mean(off**2)) < 0.01


def test_missing_inputs_are_reported_in_one_line(take, tmp_path):
    path, _ = take
    out = tmp_path / "no.mp4"
    code, output = run(overlay, path, "--camera", "gopro", "--data", tmp_path, "--out", out)
    assert (code, "kitchensync calibrate gopro" in output) == (1, True)
    code, output = run(overlay, path, "--camera", "GX990000.MP4", "--out", out, "--json")
    assert (code, "pv, GX010042.MP4" in output, '"status": "refused"' in output) == (1, True, True)
    code, output = run(overlay, path, "--from", 500, "--out", out)
    assert (code, "nothing from 500 s on" in output) == (1, True)
    code, output = run(overlay, path, "--from", 1, "--to", 0.5, "--out", out)
    assert (code, "nothing from 1 s to 0.5 s" in output) == (1, True)
    code, output = run(overlay, path, "--depth", "depth_ahat", "--out", out)
    assert (code, "available: hololens/depth_longthrow" in output) == (1, True)
    assert not list(tmp_path.iterdir())


def test_a_mesh_of_nothing_is_refused(take, tmp_path, open3d):
    path, _ = take
    code, output = run(mesh, path, "--from", 99, "--out", tmp_path / "no.ply")
    assert (code, "no frame with a pose in this span" in output) == (1, True)
    assert not list(tmp_path.iterdir())


def test_voxels_hold_the_means_of_their_points():
    rng = np.random.default_rng(3)
    voxels, points = Voxels(0.1), rng.uniform(-0.5, 0.5, (5000, 3)).astype(np.float32)
    colours = rng.integers(0, 256, (5000, 3)).astype(np.uint8)
    coloured = rng.random(5000) < 0.5
    for part in np.split(np.arange(5000), 10):
        voxels.add(points[part], colours[part], coloured[part])
    means = voxels.cloud(least=2)
    cubes: dict[tuple[int, ...], list[int]] = {}
    for index, cube in enumerate(np.floor(points / np.float32(0.1)).astype(int)):
        cubes.setdefault(tuple(cube.tolist()), []).append(index)
    assert len(means.points) == sum(len(members) > 1 for members in cubes.values())
    for place, shade, is_coloured, count in zip(
        means.points, means.colours, means.coloured, means.count, strict=True
    ):
        members = np.array(cubes[tuple(np.floor(place / 0.1).astype(int).tolist())])
        assert count == len(members)
        assert place == pytest.approx(points[members].mean(0), abs=1e-5)
        shown = members[coloured[members]]
        assert is_coloured == bool(len(shown))
        if is_coloured:
            assert np.abs(shade - colours[shown].mean(0)).max() <= 0.51
