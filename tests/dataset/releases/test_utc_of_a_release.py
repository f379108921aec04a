"""UTC in a release of a recording whose computer had its clock set: by the anchor nearest to each second."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from kitchensync.dataset.data_set_cards.load_data_set import ReleasedRecording
from kitchensync.dataset.release.calibration_files import _clock

SECOND = 10**9
UTC0 = 1_700_000_000 * SECOND
SETS = ((0, 0), (12, 0), (13, 3600), (30, 3600))


def told(anchors: list[dict[str, int]]) -> dict:
    manifest = {"started": {"host_ns": 100 * SECOND, "utc_ns": UTC0}, "utc_anchors": anchors}
    stored = SimpleNamespace(main_headset="")
    own = SimpleNamespace(manifest=manifest, recording=SimpleNamespace(stored=stored))
    return _clock(own)


def utc(clock: dict, second: float) -> np.datetime64:
    read = SimpleNamespace(
        id="r", calibration={"clock": clock}, capture_ns=lambda at: 100 * SECOND + round(at * SECOND)
    )
    return ReleasedRecording.utc(read, second)


def test_the_nearest_anchor_tells():
    anchors = [{"host_ns": (100 + at) * SECOND, "utc_ns": UTC0 + (at + by) * SECOND} for at, by in SETS]
    clock = told(anchors)
    assert clock["utc_minus_capture_ns"] == UTC0 - 100 * SECOND
    assert utc(clock, 5.0) == np.datetime64(UTC0 + 5 * SECOND, "ns")
    assert utc(clock, 20.0) == np.datetime64(UTC0 + 3620 * SECOND, "ns")
    assert utc({"utc_minus_capture_ns": 7}, 0.0) == np.datetime64(100 * SECOND + 7, "ns")
