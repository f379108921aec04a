"""Lanes below a film: loud where it is loud, moving where the camera moved, small pictures of the right moments."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path

import cv2
import numpy as np
import pytest
from cooked_recording import write_cooked
from made_videos import SOUND_HZ, grey_planes, write_video

from kitchensync.dataset.films.film_lanes import EACH_S, motion_levels, sound_levels, thumbnails
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.storage.consent import Purpose
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording import open_recording

pytestmark = pytest.mark.slow
FPS, SECONDS = 25, 12


def write_fading_film(path: Path) -> None:
    """Write a film that gets brighter, with a tone at a tenth of full scale from 4 s to 6 s."""
    count, t_s = FPS * SECONDS, np.arange(SECONDS * SOUND_HZ) / SOUND_HZ
    tone = 0.1 * np.sin(2 * np.pi * 440 * t_s) * ((t_s >= 4) & (t_s < 6))
    fading = (grey_planes(20 + number * 200 // count, 160, 90) for number in range(count))
    write_video(path, fading, FPS, tone, bf="0", g="25")


def test_sound_and_small_pictures_are_those_of_their_moment(tmp_path: Path) -> None:
    write_fading_film(tmp_path / "film.mp4")
    levels = sound_levels(tmp_path / "film.mp4", SECONDS)
    loud = [k * EACH_S for k, level in enumerate(levels) if level > 20]
    assert 3.6 <= loud[0] <= 4.0
    assert 5.8 <= loud[-1] <= 6.2
    assert 54 <= levels[25] <= 64, "a tenth of full scale, 23 dB below it, is 61 % of 60 dB"
    found = thumbnails(tmp_path / "film.mp4", FPS * SECONDS)
    strip = cv2.imdecode(np.frombuffer(base64.b64decode(found["jpeg"]), np.uint8), cv2.IMREAD_GRAYSCALE)
    assert strip.shape == (54, found["count"] * found["width"])
    assert found["count"] == -(-FPS * SECONDS // found["every"])
    bright = [strip[:, k * found["width"] :][:, : found["width"]].mean() for k in range(found["count"])]
    assert all(later >= before - 2 for before, later in itertools.pairwise(bright))
    assert bright[-1] - bright[0] > 150


def test_a_camera_that_turns_is_seen_to_turn(tmp_path: Path) -> None:
    write_cooked(tmp_path)
    with edit_manifest(tmp_path / "take1") as manifest:
        manifest["consent_scopes"] = ["annotate"]
    with OwnRecording.open(tmp_path / "take1", purpose=Purpose.ANNOTATE) as own:
        levels = np.array(motion_levels(own))
    with open_recording(tmp_path / "take1") as recording:
        track = recording.camera("gopro/gyroscope").imu()
    speed = np.linalg.norm(track.xyz, axis=1)
    for k in (5, 20, 40):
        inside = (track.t_s >= k * EACH_S) & (track.t_s < (k + 1) * EACH_S)
        assert levels[k] == pytest.approx(min(99, speed[inside].mean() / 3 * 99), abs=2)
