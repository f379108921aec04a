"""What the headset knew of head, gaze and hands, and what a camera's films cover, are part of the verdict."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from small_recordings import write_film
from timed_recordings import HZ, Stream, host_ns, make, steady

from kitchensync.sensors.hololens.streams import eye_tracking, spatial_input
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.verify import verify
from kitchensync.storage.verify.tracking import Tracking

STOP_S = 20.0


def test_flags_are_counted_packet_by_packet():
    rng = np.random.default_rng(2)
    flags = rng.integers(0, 16, 400)
    tracking = Tracking(spatial_input.STREAM)
    for value in flags:
        record = np.zeros((), spatial_input.DTYPE)
        record["valid"] = value
        tracking.take(spatial_input.encode(record))
    true = {name: np.mean([bool(f & bit) for f in flags]) for name, bit in
            (("head", 1), ("gaze", 2), ("left_hand", 4), ("right_hand", 8))}  # fmt: skip
    assert tracking.shares() == pytest.approx(true)


def test_gaze_of_the_eye_tracker_and_poses_are_counted():
    tracking = Tracking(eye_tracking.STREAM)
    for number in range(40):
        record = np.zeros((), eye_tracking.DTYPE)
        record["valid"] = eye_tracking.CALIBRATION | (eye_tracking.COMBINED if number % 4 else 0)
        tracking.take(eye_tracking.encode(record))
    poses = np.tile(np.eye(4, dtype=np.float32), (10, 1, 1))
    poses[:3] = 0
    tracking.begin()
    tracking.finish(10, poses, is_sound=True)
    assert tracking.shares() == pytest.approx({"gaze": 0.75, "pose": 0.7})


def with_camera(path, seconds: float):
    """A recording of 20 s whose camera was seen to film from second 1 on, for so long."""
    streams = {name: Stream(steady(HZ[name], 0.1, STOP_S)) for name in ("pv", "gyroscope")}
    make(path, streams, STOP_S)
    write_film(path / "gopro", 5, round(seconds * 29.97))
    (film,) = (path / "gopro").glob("*.MP4")
    content = film.read_bytes()
    entry = {"file": film.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    opened = dict.fromkeys(("before_host_ns", "after_host_ns", "observed_host_ns"), host_ns(1.0))
    write_json(
        path / "gopro" / "media.json", {"shutter_on": opened, "files": [entry | {"bytes_per_s": 90_000}]}
    )
    with edit_manifest(path) as manifest:
        manifest["devices"]["gopro"] = {"kind": "gopro"}
    return path


@pytest.mark.parametrize(("seconds", "status"), [(19, "PASS"), (14, "WARN"), (6, "FAIL")])
def test_a_camera_is_held_against_the_session(tmp_path, seconds, status):
    answer = verify(with_camera(tmp_path / "take", seconds))
    assert answer["status"] == status, answer["reasons"]
    assert answer["cameras"]["gopro"]["coverage"] == pytest.approx(seconds / 19, abs=0.02)
    assert any("fetched slowly" in note for note in answer["notes"])
    if status != "PASS":
        assert answer["good_for"] == [f"gopro ends at 0:{seconds + 1:02d}: do not use it after that"]


def test_the_steps_that_a_camera_does_not_show_are_named(tmp_path):
    path = with_camera(tmp_path / "take", 9)
    log = EventLog(path, "tablet")
    for number in range(1, 9):
        body = {"position": number, "text": f"step {number}"}
        log.append("done", host_ns=host_ns(2.0 * number), uncertainty_ns=0, body=body, op_id=f"op-{number}")
    answer = verify(path)
    assert answer["good_for"] == ["gopro ends at 0:10: do not use for steps 6 to 8"] or answer[
        "good_for"
    ] == [
        "gopro ends at 0:10: do not use for steps 5 to 8"  # the film may end some hundredths before the fifth
    ]
    assert answer["cameras"]["gopro"]["steps_coverage"] == pytest.approx(9 / 16, abs=0.06)


def test_a_film_that_does_not_open_is_no_pass(tmp_path):
    path = with_camera(tmp_path / "take", 6)
    (film,) = (path / "gopro").glob("*.MP4")
    content = film.read_bytes()[:-400]
    film.write_bytes(content)
    entry = {"file": film.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    opened = dict.fromkeys(("before_host_ns", "after_host_ns", "observed_host_ns"), host_ns(1.0))
    write_json(path / "gopro" / "media.json", {"shutter_on": opened, "files": [entry]})
    answer = verify(path)
    assert answer["status"] != "PASS"
