"""By what values of inertial streams are multiplied to be in SI units, and who says so."""

from __future__ import annotations

import math

import numpy as np
import pytest
from small_recordings import true_alignment

from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import open_recording

STREAMS = ("gyroscope", "accelerometer", "magnetometer", "pv")
MEDIA_S = np.linspace(0, 60, 5)
DEGREE = math.pi / 180


@pytest.fixture
def scale(tmp_path):
    """Make a recording whose rig file states a unit, where `sync` measured one; return its scales by stream."""

    def found(stated: str | None, measured: str | None, status: str = "aligned") -> dict[str, float | None]:
        device = {"kind": "hololens"} | ({"gyroscope_unit": stated} if stated else {})
        manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "files": {}}
        streams = {f"hololens/{name}": {} for name in STREAMS}
        write_json(
            tmp_path / "recording.json", manifest | {"devices": {"hololens": device}, "streams": streams}
        )
        if measured:
            answer = true_alignment("gopro/GX010001.MP4", MEDIA_S, (1e9 + MEDIA_S * 1e7).astype(np.int64))
            gyro = {"rate_hz": 1100.0, "unit": {"name": measured, "scale": 1.0, "source": "measured"}}
            (tmp_path / "sync" / "alignment").mkdir(parents=True)
            said = answer | {"status": status, "streams": {"hl2_gyro": gyro}}
            write_json(tmp_path / "sync" / "alignment" / "GX010001.MP4.json", said)
        with open_recording(tmp_path) as recording:
            return {name: recording.si_scale(f"hololens/{name}") for name in STREAMS}

    return found


@pytest.mark.parametrize(
    ("stated", "measured", "expected"),
    [
        ("rad_per_s", None, 1.0),
        ("deg_per_s", None, DEGREE),
        ("deg_per_s", "rad_per_s", DEGREE),
        ("auto", "rad_per_s", 1.0),
        (None, "deg_per_s", DEGREE),
        ("auto", None, None),
        (None, "undecided", None),
    ],
)
def test_the_rig_file_counts_before_what_sync_measured(scale, stated, measured, expected):
    assert scale(stated, measured)["gyroscope"] == expected


def test_what_sync_measured_of_a_refused_pair_does_not_count(scale):
    assert scale("auto", "deg_per_s", status="not_aligned")["gyroscope"] is None


def test_the_accelerometer_sends_si_and_of_others_nobody_knows(scale):
    found = scale(None, None)
    assert (found["accelerometer"], found["magnetometer"], found["pv"]) == (1.0, None, None)
