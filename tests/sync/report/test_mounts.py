"""The part of the report about where cameras sit: what a kept check says reaches the page, and nothing breaks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from kitchensync.sync.report.mounts import KEPT, read_mounts

LENS = {
    "measured_utc": "2026-03-01T10:00:00+00:00",
    "model": "fisheye",
    "file": "lens.json",
    "picture": "../calibrations/C1/lens.png",
    "picture_sigma_px": {"median": 0.08, "largest": 0.4},
    "views": 31,
}
RIG = {
    "measured_utc": "2026-03-02T10:00:00+00:00",
    "file": "rig.json",
    "picture": None,
    "distance_mm": 61.7,
    "sigma_mm": 0.2,
    "angle_deg": 5.5,
    "sigma_deg": 0.02,
    "recording": "board-1",
    "turned_deg": 0.9,
    "limit_deg": 0.5,
}


def kept(recording: Path, of_mount: dict[str, Any] | None = None, **changed: Any) -> None:
    """Write a check of one camera, with what is changed in it."""
    mount = {
        "file": "gopro/GX010001.MP4",
        "serial": "C1",
        "mode": "1920x1080-W",
        "status": "WARN",
        "words": "it moved",
        "angle_deg": 5.6,
        "sigma_deg": 0.05,
        "minutes": [
            {"middle_s": 30.0, "turned_deg": 0.1, "sigma_deg": 0.05},
            {"middle_s": 90.0, "turned_deg": None, "sigma_deg": None},
            {"middle_s": 150.0, "turned_deg": 0.8, "sigma_deg": 0.05},
        ],
        "lens": LENS,
        "rig": RIG,
        **(of_mount or {}),
    }
    answer = {"schema": "calibrate-check/1", "status": "WARN", "reasons": ["it moved"], "mounts": [mount]}
    (recording / KEPT).parent.mkdir(parents=True, exist_ok=True)
    (recording / KEPT).write_text(json.dumps(answer | changed))


@pytest.fixture
def recording(tmp_path) -> Path:
    (tmp_path / "calibrations" / "C1").mkdir(parents=True)
    cv2.imwrite(str(tmp_path / "calibrations" / "C1" / "lens.png"), np.full((20, 60, 3), 200, np.uint8))
    (tmp_path / "take-1").mkdir()
    return tmp_path / "take-1"


def test_what_was_checked_is_said_drawn_and_shown(recording):
    kept(recording)
    found = read_mounts(recording)
    assert found is not None
    assert (found.verdict.level, found.verdict.reasons) == ("warn", ["it moved"])
    (mount,) = found.mounts
    facts = dict(mount.facts)
    assert facts["Board against motion"] == "0.90° apart, 0.50° allowed"
    assert "61.7 ± 0.4 mm" in facts["Mount, by board"]
    assert "31 views" in facts["Lens"]
    drawing = str(mount.figures[0].drawing)
    assert drawing.count("<circle") == 2, "a part with too little motion has no dot"
    assert drawing.count('class="bar"') == 2
    assert [picture.source[:22] for picture in mount.pictures] == ["data:image/jpeg;base64"]


def test_what_was_never_calibrated_names_the_command(recording):
    kept(recording, {"lens": None, "rig": None})
    facts = dict(read_mounts(recording).mounts[0].facts)  # type: ignore[union-attr]
    assert "kitchensync calibrate rig" in facts["Mount"]
    assert "kitchensync calibrate gopro" in facts["Lens"]


def test_a_check_that_failed_or_is_broken_is_said_and_none_is_none(recording):
    assert read_mounts(recording) is None
    kept(recording, status="FAIL", reasons=["the head turned about one axis only"], mounts=[])
    assert read_mounts(recording).verdict.reasons == ["the head turned about one axis only"]  # type: ignore[union-attr]
    (recording / KEPT).write_text("{")
    assert "kitchensync calibrate check" in read_mounts(recording).verdict.meaning  # type: ignore[union-attr]


@pytest.mark.parametrize("turned_deg", [[], [0.1], [0.1, None], [None, None]])
def test_no_card_says_in_place_where_nobody_can_tell(recording, turned_deg):
    minutes = [
        {"middle_s": 30.0 + 60 * n, "turned_deg": t, "sigma_deg": 0.1} for n, t in enumerate(turned_deg)
    ]
    kept(recording, {"minutes": minutes}, status="PASS", reasons=[])
    verdict = read_mounts(recording).verdict  # type: ignore[union-attr]
    assert (verdict.status, verdict.level) == ("not known", "none")
    assert "too short" in verdict.reasons[0]


@pytest.mark.parametrize(
    "name", ["../other/secret.png", "/secret.png", "secret.png", "../calibrations/../x.png", 7]
)
def test_a_picture_that_is_no_calibration_s_is_never_read(recording, name):
    other = recording.parent / "other"
    other.mkdir()
    for path in (other / "secret.png", recording / "secret.png", recording.parent / "x.png"):
        cv2.imwrite(str(path), np.full((20, 60, 3), 9, np.uint8))
    kept(recording, {"lens": LENS | {"picture": name}})
    found = read_mounts(recording)
    assert found is not None
    assert not found.mounts
    assert "cannot be read" in found.verdict.meaning


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_picture_is_named(recording, content):
    (recording.parent / "calibrations" / "C1" / "lens.png").write_bytes(content)
    kept(recording)
    assert "lens.png" in read_mounts(recording).verdict.meaning  # type: ignore[union-attr]
