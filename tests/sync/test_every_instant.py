"""`recording.at(k)` for every k, against a brute force over the stamps as stored and scipy's own interpolation."""

from __future__ import annotations

import shutil
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp
from small_recordings import SECONDS

from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.storage.reading.instants import NotIndexed
from kitchensync.storage.recording import open_recording
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.synchronize import synchronize

FRAMES = {"depth_ahat": "hololens/depth_ahat", "spatial_input": "hololens/spatial_input"}


@pytest.fixture(scope="module")
def aligned(made, tmp_path_factory):
    take = tmp_path_factory.mktemp("aligned") / "take1"
    shutil.copytree(made[0] / "take1", take)
    return take, synchronize(take)["pairs"][0]


def nearest(ticks, at):
    """Number of the nearest stamp within 0.6 of the usual step, by looking at every one; ties go to the earlier."""
    away = [abs(int(t) - at) for t in ticks]
    best = min(range(len(away)), key=lambda k: (away[k], k))
    return best if away[best] <= int(0.6 * np.median(np.diff(ticks))) else None


def test_every_instant_holds_what_was_nearest(aligned):
    take, pair = aligned
    with open_recording(take) as recording:
        pv = recording["hololens/pv"].index["device_ticks"].astype(np.int64)
        assert len(recording.instants) == len(pv)
        stamps = {
            name: recording[full].index["device_ticks"].astype(np.int64) for name, full in FRAMES.items()
        }
        film = open_media(take / "gopro" / "GX010001.MP4")
        stamps["gopro"] = ClockMap.from_object(pair).to_ticks(film.frame_times_s)
        for k, at in enumerate(pv.tolist()):
            here = recording.at(k)
            assert (here.master_index, here.ticks, here.rows["pv"], here.dt_us["pv"]) == (k, at, k, 0)
            for name, ticks in stamps.items():
                expected = nearest(ticks, at) if k % 5 == 0 else here.rows.get(name)
                assert here.rows.get(name) == expected, (k, name)
                if expected is not None:
                    assert here.dt_us[name] == pytest.approx((int(ticks[expected]) - at) / 10, abs=0.5)
            assert here.files == ({"gopro": "gopro/GX010001.MP4"} if "gopro" in here.rows else {})


def test_slices_hand_over_every_sample_once(aligned):
    with open_recording(aligned[0]) as recording:
        ticks = recording["hololens/gyroscope"].samples().ticks
        bounds = [recording.at(k).slices["gyroscope"] for k in range(len(recording.instants))]
        at = [recording.at(k).ticks for k in range(len(recording.instants))]
    assert all(a[1] == b[0] for a, b in pairwise(bounds))
    for (first, last), begin, end in zip(bounds, at, at[1:], strict=False):
        inside = np.flatnonzero((ticks >= begin) & (ticks < end))
        assert (first, last) == (inside[0], inside[-1] + 1)


def test_poses_are_interpolated_as_by_another_library(aligned):
    with open_recording(aligned[0]) as recording:
        stream = recording["hololens/spatial_input"]
        records = [spatial_input.decode(payload) for _, payload in stream.packets()]
        t = (stream.index["device_ticks"] - stream.index["device_ticks"][0]).astype(np.int64) / 1e7
        up, forward, position = (
            np.array([record[name] for record in records], np.float64)
            for name in ("head_up", "head_forward", "head_position")
        )
        turns = Rotation.from_matrix(np.stack([np.cross(forward, up), up, -forward], axis=2))
        between = Slerp(t, turns)
        seen = 0
        for k in range(len(recording.instants)):
            here = recording.at(k)
            at_s = (here.ticks - int(stream.index["device_ticks"][0])) / 1e7
            assert ("head" in here.poses) == (0 <= at_s <= t[-1])
            if "head" not in here.poses:
                continue
            seen += 1
            place, wxyz = here.poses["head"]
            assert place == pytest.approx(
                [np.interp(at_s, t, position[:, axis]) for axis in range(3)], abs=1e-6
            )
            away = between(at_s).inv() * Rotation.from_quat(wxyz[[1, 2, 3, 0]])
            assert away.magnitude() < 1e-6
            assert here.worlds == {"head": 0}
    assert seen > 0.97 * SECONDS * 29.97 - 3


def test_beyond_the_ends_and_without_an_index(aligned, take):
    with open_recording(aligned[0]) as recording:
        for k in (-1, len(recording.instants)):
            with pytest.raises(IndexError, match="there is no frame"):
                recording.at(k)
    with open_recording(take) as recording, pytest.raises(NotIndexed, match="run `kitchensync sync` first"):
        recording.at(0)
