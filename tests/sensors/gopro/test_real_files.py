"""Descriptions of real camera files agree with the known true values."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.sensors.errors import UnreadableMedia
from kitchensync.sensors.gopro.files.inspect import inspect
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.boxes import has_moov

Shared = Callable[[str], Path]
FILES = [
    "max-heromode.mp4",
    "hero5.raw",
    "hero6.raw",
    "Fusion.raw",
    "hero6+ble.raw",
    "hero11-chapter.raw",
    "hero7-rec1.raw",
    "hero7-rec2.raw",
    "mp4header.raw",
]
PROVENANCE = {"model", "source_repo", "source_path", "licence", "bytes", "sha256"}


def close(ours: Any, truth: Any) -> bool:
    if isinstance(truth, dict):
        return isinstance(ours, dict) and all(key in ours and close(ours[key], truth[key]) for key in truth)
    if isinstance(truth, list):
        return len(ours) == len(truth) and all(map(close, ours, truth))
    if isinstance(truth, float):
        return ours == pytest.approx(truth, abs=1e-6, rel=1e-12)
    return bool(ours == truth)


@pytest.mark.parametrize("name", FILES)
def test_inspect_agrees_with_the_true_values(shared_data: Shared, name: str) -> None:
    path = shared_data(f"gopro/{name}")
    truth = json.loads(shared_data("gopro/ground_truth.json").read_text())[name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == truth["sha256"]
    result = CliRunner().invoke(main, ["gopro", "inspect", str(path), "--json"])
    assert result.exit_code == 0
    ours = json.loads(result.stdout)
    for key in truth.keys() - PROVENANCE:
        assert close(ours[key], truth[key]), key
    assert ours["streams"].keys() == truth["streams"].keys()
    for stream, expected in truth["streams"].items():
        assert ours["streams"][stream].keys() - {"rate_hz_from_tick"} == expected.keys(), stream


def test_every_sample_file_is_covered(shared_data: Shared) -> None:
    truth = json.loads(shared_data("gopro/ground_truth.json").read_text())
    assert sorted(truth.keys() - {"_note"}) == sorted(FILES)


def test_table_for_people(shared_data: Shared) -> None:
    result = CliRunner().invoke(main, ["gopro", "inspect", str(shared_data("gopro/max-heromode.mp4"))])
    assert result.exit_code == 0
    for text in ("GYRO", "197.4548", "rad/s", "315 frames", "15:45:32.009"):
        assert text in result.stdout


def test_gyroscope_on_media_time(shared_data: Shared) -> None:
    media = open_media(shared_data("gopro/max-heromode.mp4"))
    gyro, accel = media.gyroscope(), media.accelerometer()
    assert gyro.xyz.shape == (2082, 3)
    assert gyro.xyz.dtype == np.float32
    assert gyro.t_s[0] == pytest.approx(-0.005031)
    assert gyro.rate_hz == pytest.approx(197.4548, abs=1e-3)
    # Stored (0.072417, 0.222577, -0.155485) with ORIN XzY: X, -Z, Y.
    np.testing.assert_allclose(gyro.xyz[0], [0.072417, -0.155485, -0.222577], atol=1e-6)
    up = accel.xyz.mean(axis=0)
    assert np.linalg.norm(up) == pytest.approx(9.8, abs=0.3)
    assert int(np.argmax(up)) == 2


def test_times_of_frames_are_exact(shared_data: Shared) -> None:
    path = shared_data("gopro/max-heromode.mp4")
    media = open_media(path)
    with av.open(str(path)) as container:
        stamps = sorted(p.pts for p in container.demux(video=0) if p.pts is not None)
    assert media.frame_pts.tolist() == stamps
    assert media.frame_times_s.tolist() == [k * 1001 / 30000 for k in range(315)]
    assert media.tmcd_wall_seconds_since_midnight == pytest.approx(1700260 * 1001 / 30000)
    assert (media.serial, media.camera_model) == ("C3353424500199", "GoPro Max")


def test_unreadable_files_are_one_line(shared_data: Shared, tmp_path: Path) -> None:
    intact = shared_data("gopro/max-heromode.mp4").read_bytes()
    (tmp_path / "cut.MP4").write_bytes(intact[: len(intact) // 2])
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty.raw").write_bytes(b"")
    for name, code in (("cut.MP4", 1), ("noise.bin", 1), ("empty.raw", 1), ("absent.MP4", 2), (".", 2)):
        result = CliRunner().invoke(main, ["gopro", "inspect", str(tmp_path / name), "--json"])
        assert result.exit_code == code
        assert len(result.stderr.strip().splitlines()) == 1
        assert "Traceback" not in result.output
        assert json.loads(result.stdout)["status"] == "refused"
    assert not has_moov(tmp_path / "cut.MP4")
    assert has_moov(shared_data("gopro/max-heromode.mp4"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_damaged_real_files_end_in_our_own_error(shared_data: Shared, tmp_path: Path, name: str) -> None:
    """Truncated files and changed bytes give a description, marked if incomplete, or an error of this package.

    KITCHENSYNC_MUTATIONS sets how many; 500 take half a minute for all files.
    """
    chance = np.random.default_rng(5)
    intact = shared_data(f"gopro/{name}").read_bytes()
    index = max(0, intact.find(b"moov") - 4)
    path = tmp_path / name
    previous = av.logging.get_level()
    av.logging.set_level(av.logging.PANIC)
    damaged_count = 0
    try:
        for number in range(int(os.environ.get("KITCHENSYNC_MUTATIONS", "40"))):
            damaged = bytearray(intact)
            if number % 4 == 0:
                del damaged[int(chance.integers(index if number % 8 else 0, len(intact))) :]
            for at in chance.integers(index, len(intact), size=int(chance.integers(1, 20))):
                if at < len(damaged):
                    damaged[at] = chance.integers(256)
            path.write_bytes(damaged)
            try:
                damaged_count += "damage" in json.loads(json.dumps(inspect(path)))
            except UnreadableMedia as error:
                damaged_count += 1
                assert re.search(r"box \w+|moov|at byte \d+|not an MP4", str(error)), error  # noqa: PT017
                assert "\n" not in str(error)  # noqa: PT017
    finally:
        av.logging.set_level(previous)
    assert damaged_count > 5


@pytest.mark.slow
def test_files_are_closed(shared_data: Shared) -> None:
    if sys.platform != "linux":
        pytest.skip("counts open files through /proc")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        inspect(shared_data("gopro/max-heromode.mp4"))
    assert len(os.listdir("/proc/self/fd")) <= before


def test_reordered_frames_and_edit_lists(tmp_path: Path) -> None:
    """With B frames the stored order differs from the shown order; the edit list hides the decoder's delay."""
    path = tmp_path / "b.mp4"
    with av.open(str(path), "w") as out:
        stream = out.add_stream(
            "libx264", rate=Fraction(30000, 1001), options={"bf": "3", "x264-params": "log-level=none"}
        )
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for k in range(40):
            image = np.full((64, 64, 3), 6 * k % 256, np.uint8)
            image[:, k : k + 8] = 255 - image[0, 0]
            out.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        out.mux(stream.encode())
    media = open_media(path)
    assert any(track.reorders for track in media.tracks.values())
    assert media.frame_times_s.tolist() == [k * 1001 / 30000 for k in range(40)]
    for k in (0, 17, 39):
        with media.pictures() as pictures:
            rgb = pictures.at(k * 1001 / 30000, 64).rgb
        assert abs(int(rgb[32, 60, 0]) - 6 * k % 256) < 12
    assert media.payloads == []
    assert "device" not in inspect(path)
