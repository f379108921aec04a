"""A virtual cook shows a board: optics and mount are estimated again from the data of the devices."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.board import Board, Detector
from kitchensync.calibration.estimate.joint_cameras import BoardPair, from_board
from kitchensync.calibration.jobs.joint_lenses import _lens
from kitchensync.calibration.jobs.lens import calibrate_lens
from kitchensync.cli import main
from kitchensync.sensors.hololens.streams import depth_longthrow, pv
from kitchensync.storage.geometry.camera_models import Pinhole
from kitchensync.storage.reading.calibration_results import load
from kitchensync.virtual_kitchen.gopro.files.chapters import WallTimes
from kitchensync.virtual_kitchen.gopro.files.models import MODELS, FileIds
from kitchensync.virtual_kitchen.gopro.files.recorder import ClipFile
from kitchensync.virtual_kitchen.gopro.files.sensors import CameraMount, Timeline
from kitchensync.virtual_kitchen.headset.cameras import LONGTHROW
from kitchensync.virtual_kitchen.headset.client_configuration import (
    RequestedEncoding,
    VideoEncoding,
    VideoFormat,
)
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.streams.longthrow_stream import LongThrowFeed
from kitchensync.virtual_kitchen.headset.streams.pv_stream import PvConfiguration, PvFeed, eye, focal_px_of
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world import boards, rotations
from kitchensync.virtual_kitchen.world.boards import FRAME_S, PLACE_FRAMES, BoardShow
from kitchensync.virtual_kitchen.world.motion import VIEWING_POINT_M, simulated_motion
from kitchensync.virtual_kitchen.world.room import off_surface_m

pytestmark = pytest.mark.slow

SEED, SHOWN = 7, 10
FRONT = VideoFormat(1280, 720, 30)
BOARD = Board()


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory) -> Kitchen:
    turn = rotations.matrices(CameraMount.of_seed(SEED).wxyz[None])[0]
    show = BoardShow(SEED, turn, eye(FRONT, focal_px_of(FRONT)))
    folder = tmp_path_factory.mktemp("kitchen")
    return Kitchen(SEED, simulated_motion(SEED), Truth(folder, SEED), show=show)


@pytest.fixture(scope="module")
def film(kitchen) -> Path:
    """Return a video of ten board poses that begins during the first one."""
    path = kitchen.truth.folder / "GX010001.MP4"
    ids = FileIds(MODELS["hero12"], SEED, 1_750_000_000, 0)
    take = ClipFile(
        path, kitchen, Timeline(kitchen.camera_clock, 0.5), ids, WallTimes(1_750_000_000, 1_750_000_000.4)
    )
    for _ in range(SHOWN * PLACE_FRAMES):
        take.add_frame()
    take.finish()
    return path


def front_picture(feed: PvFeed, place: int) -> tuple[np.ndarray, np.void]:
    """Return a frame of the front camera while a pose is held: luma and metadata."""
    packet = feed.packet(feed.first_k((place * PLACE_FRAMES + PLACE_FRAMES - 8) * FRAME_S))
    decoded = pv.decode(packet.payload)
    return np.array(pv.raw_picture(decoded)[:720]), decoded.metadata


@pytest.mark.slow
@pytest.mark.slow
def test_lens_and_mount_are_recovered(kitchen, film, tmp_path):
    truth = kitchen.show.truth()
    lens = calibrate_lens([film], BOARD, "fisheye", tmp_path)
    names = ("fx", "fy")
    assert [lens.answer["parameters"][n] for n in names] == pytest.approx(
        [truth["parameters"][n] for n in names], rel=2e-3
    )
    assert len(lens.answer["used"]) <= SHOWN + 1, "a held pose counts as one view for any number of frames"
    detector, show, pairs = Detector(BOARD), kitchen.show, []
    pictures = boards.BoardPictures(show, show.camera)
    raw = PvConfiguration(False, FRONT, 1, VideoEncoding(RequestedEncoding.RAW, 1_000_000), 1)
    feed = PvFeed(HeadsetState(kitchen), raw)
    for place in range(SHOWN + 6):
        luma, constants = front_picture(feed, place)
        in_front = detector.find(luma, f"place {place}")
        in_camera = detector.find(np.ascontiguousarray(pictures.at(place, PLACE_FRAMES - 8)[:720]), "")
        if in_front is not None and in_camera is not None:
            (fx, fy), (cx, cy) = constants["focal_length"], constants["principal_point"]
            pairs.append(BoardPair(in_front, in_camera, Pinhole(1280, 720, fx, fy, cx, cy)))
    mount, true = (
        from_board(pairs, BOARD, _lens(load(lens.path))).b_from_a,
        np.array(truth["camera_from_pv"]),
    )
    assert np.degrees(Rotation.from_matrix(mount[:3, :3] @ true[:3, :3].T).magnitude()) < 0.1
    assert np.linalg.norm(mount[:3, 3] - true[:3, 3]) < 3e-3


def test_the_true_mount_turns_as_the_gyroscopes_do(kitchen):
    flip = np.diag([1.0, -1, -1])
    turn = flip @ rotations.matrices(CameraMount.of_seed(SEED).wxyz[None])[0].T @ flip
    assert np.array(kitchen.show.truth()["camera_from_pv"])[:3, :3] == pytest.approx(turn, abs=1e-12)


def test_the_video_shows_the_pose_of_its_own_time(kitchen, film):
    """The first pose is held from half a second on; the board moves on at the next full second."""
    import av

    show, detector = kitchen.show, Detector(BOARD)
    places = {5: 0, PLACE_FRAMES: 1, 3 * PLACE_FRAMES: 3}
    with av.open(str(film)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number not in places:
                continue
            place, within = show.moment(0.5 + number * FRAME_S)
            assert place == places[number]
            assert show.is_held(within)
            view = detector.find(frame.to_ndarray(format="gray"), "")
            assert view is not None
            pose = show.camera.from_head @ show.head_from_board(place, within)
            expected = show.camera.optics.pixels(BOARD.corners_m[view.ids] @ pose[:3, :3].T + pose[:3, 3])
            assert np.median(np.linalg.norm(view.pixels - expected, axis=1)) < 0.2
            if number == max(places):
                break


def test_far_depth_is_that_of_the_room(kitchen):
    feed = LongThrowFeed(HeadsetState(kitchen), True, 1, {})
    packet = feed.packet(9)
    decoded = depth_longthrow.decode(packet.payload)
    depth = depth_longthrow.images(decoded.png)[0].astype(np.float64) / 1e3
    v, u = np.nonzero(depth)
    cx, cy = LONGTHROW.centre_px
    rays = np.column_stack(((u - cx) / LONGTHROW.focal_px, (v - cy) / LONGTHROW.focal_px, np.ones(len(u))))
    points = rays / np.linalg.norm(rays, axis=1, keepdims=True) * depth[v, u][:, None]
    rig_from_world = np.array(struct.unpack("<16f", packet.pose)).reshape(4, 4)
    in_rig = points @ LONGTHROW.from_rig + LONGTHROW.place_m
    in_world = in_rig @ rig_from_world[:3, :3] + rig_from_world[3, :3]
    off = off_surface_m(in_world - VIEWING_POINT_M)
    assert np.percentile(off, 95) < 0.01
    assert depth[v, u].min() > 0.2
    assert len(u) > 50_000


def test_options_that_do_not_fit_the_board_scene_are_refused_in_one_line(tmp_path):
    for options in (["--rings"], ["--speed", "0"], ["--gopro-chapter-seconds", "9"]):
        done = CliRunner().invoke(
            main, ["simulate", "--seed", "1", "--scene", "board", "--out", str(tmp_path / "x"), *options]
        )
        assert done.exit_code == 1
        assert "--scene board does not go with" in done.output
        assert options[0] in done.output
