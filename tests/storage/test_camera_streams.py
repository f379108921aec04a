"""A camera's streams beside the headset's: two chapters read as one video, one sound, one gyroscope."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from films import film

from kitchensync.storage.errors import UnknownStream
from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import open_recording


def test_streams_of_a_camera(tmp_path: Path) -> None:
    made = film(tmp_path / "take" / "left", 150, 90, seed=8)
    devices = {"left": {"kind": "gopro"}, "right": {"kind": "gopro"}}
    manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "files": {}}
    manifest |= {"devices": devices, "streams": {}}
    write_json(tmp_path / "take" / "recording.json", manifest)
    with open_recording(tmp_path / "take") as recording:
        assert recording.camera("left/video").t_s.tolist() == [k * 1001 / 30000 for k in range(150)]
        gyro = recording.camera("left/gyroscope").imu()
        assert len(gyro.t_s) == len(recording.camera("left/accelerometer").t_s) > 990
        blocks = list(recording.camera("left/audio").sound())
        first = np.arange(round(3.008 * 48000 / 1024)) * 1024 / 48000
        second = 90 * 1001 / 30000 + np.arange(len(blocks) - len(first)) * 1024 / 48000
        np.testing.assert_allclose([b.t_s for b in blocks], np.concatenate([first, second]), atol=1e-9)
        assert len(blocks) * 1024 / 48000 == pytest.approx(150 * 1001 / 30000, abs=0.05)
        with recording.camera("left/video").pictures() as pictures:
            assert pictures.at(4.0).number == 119
        for name in ("right/video", "left/depth", "video"):
            with pytest.raises(UnknownStream):
                recording.camera(name)
    assert len(made.chapters) == 2
