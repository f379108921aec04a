"""The rule of gyro times in a real file, written twice: by the virtual kitchen's replay and by our own reader.

Media time of gyro sample k = (first STMP of the gyro - first STMP of the shutter) / 1e6 + k / rate.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from processes import kitchensync

from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.virtual_kitchen.world.replay import read_gyro

pytestmark = pytest.mark.system
EPOCH_TICKS = 133_000_000_000
HEADSET_HZ = 6550.0


def headset_arrays(path, shift_s: float) -> dict[str, np.ndarray]:
    """A headset on the head that moved as the file says, its clock equal to media time moved by `shift_s`."""
    t_s, rad_per_s = read_gyro(path)
    times_s = np.arange(t_s[0], t_s[-1], 1 / HEADSET_HZ)
    rates = np.column_stack([np.interp(times_s, t_s, axis) for axis in rad_per_s.T])
    ticks = EPOCH_TICKS + np.round((times_s + shift_s) * 1e7).astype(np.int64)
    batch_starts = np.repeat(ticks[::315], 315)[: len(ticks)]
    return {
        "vinyl_ns": np.round((times_s + 50.0) * 1e9).astype(np.int64),
        "soc_ticks": batch_starts,
        "rad_per_s": rates.astype(np.float32),
    }


def aligned_ticks(tmp_path, path, shift_s: float) -> np.ndarray:
    """Align the file's own gyro track, read by us, with that headset; return media times and ticks."""
    track = open_media(path).gyroscope()
    np.savez(tmp_path / "h.npz", **headset_arrays(path, shift_s))
    np.savez(tmp_path / "g.npz", t_s=track.t_s, rad_per_s=track.xyz)
    done = kitchensync("align", "--hololens", tmp_path / "h.npz", "--gopro", tmp_path / "g.npz", "--json")
    answer = json.loads(done.stdout)
    assert answer["status"] in ("aligned", "check"), answer["reasons"]
    return np.array(answer["samples"])


def test_both_readings_agree_and_a_rule_that_is_20_ms_off_moves_the_alignment_by_20_ms(shared_data, tmp_path):
    path = shared_data("gopro/max-heromode.mp4")
    right = aligned_ticks(tmp_path, path, 0.0)
    inside = (right[:, 0] > 0.5) & (right[:, 0] < 10.0)
    errors_ms = (right[inside, 1] - EPOCH_TICKS - right[inside, 0] * 1e7) / 1e4
    assert np.max(np.abs(errors_ms)) < 0.5
    wrong = aligned_ticks(tmp_path, path, 0.020)
    moved_ms = (wrong[inside, 1] - right[inside, 1]) / 1e4
    assert np.allclose(moved_ms, 20.0, atol=0.05)
