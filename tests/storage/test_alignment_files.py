"""Alignment files as types: what is read and written again is what was there, and nobody else knows the keys."""

from __future__ import annotations

import ast
import json

import pytest
from root_folders import PACKAGE, product_files

from kitchensync.storage.reading.alignments import read_alignment
from kitchensync.storage.timeline.alignment import Alignment

KNOWS = {
    "storage/timeline/alignment.py",
    "storage/timeline/alignment_evidence.py",
    "storage/timeline/clock_map.py",
}
KEYS = {
    "alignment/1",
    "bound95_ms",
    "correlation",
    "drift_ppm",
    "epoch_hl2_qpc",
    "epoch_source_qpc",
    "gopro_gyro",
    "hl2_gyro",
    "host_clocks",
    "other_headsets",
    "rho",
    "rho2",
    "sigma",
    "statements",
    "systematic_ms",
    "tmcd_reading",
    "total_ms",
    "windows_ok",
}  # fmt: skip
ELSEWHERE = {
    "storage/catalogue/contents.py": {"bound95_ms", "total_ms"},  # keys of `info/1`
    "storage/commands/look.py": {"bound95_ms"},
    "dataset/data_set_cards/verify_data_set.py": {"bound95_ms"},  # a key of `release-verify/1`
    "sync/report/overview.py": {"bound95_ms"},  # a key of `sync-compare/1`
    "sync/commands/sync.py": {"bound95_ms"},
    "calibration/jobs/lens.py": {"sigma"},  # of a lens
    "calibration/commands/calibrate.py": {"sigma"},
    "calibration/jobs/joint_lenses.py": {"sigma"},
}
WHOLE = {
    "source": "gopro/GX010001.MP4",
    "master": "hololens-a/gyroscope",
    "schema": "alignment/1",
    "status": "check",
    "reasons": ["look"],
    "warnings": ["chapter 2 is not here"],
    "master_clock": "hl2_qpc_100ns",
    "source_clock": "gopro_media_s",
    "epoch_hl2_qpc": 612_345_678_901_234,
    "sigma": {
        "stat_ms": [0.1, 0.05, None],
        "model_ms": [0.0, 0.0, 0.0],
        "bound95_ms": [0.3, 0.1, None],
        "systematic_ms": [{"part": "gyro_to_frame", "value": -14.0, "sigma": 0.5, "source": "measured"}],
        "total_ms": 1.6,
    },
    "evidence": {
        "gyro": {
            "rho": 0.9, "rho2": 0.4, "rival": 0.3, "rival_distance_s": 5.5, "z": 12.0, "edge": False,
            "magnitude_agrees": True, "rate_grid": None, "windows_ok": 13, "windows": 14, "chi": 1.1,
            "drift_ppm": 30.0, "drift_sigma_ppm": 0.2, "R": [[1.0, 0.0], [0.0, 1.0]], "rot_halves_deg": 0.1,
            "rot_halves_sigma_deg": 0.05, "step": {"size_ms": 0.1, "z": 0.2, "t_s": 30.0}, "jumps": [],
            "degree": 1, "residual_rms_ms": 0.2, "correlation": 0.99, "cramer_rao_ms": 0.01,
            "overlap_s": [0.0, 60.0],
        },
        "audio": {
            "usable": True, "tau0_s": 5.0, "z": 9.0, "windows": 10, "windows_ok": 8, "inliers": 0.8,
            "drift_ppm": None, "stat_ms": None, "systematic_ms": 15.0,
        },
        "timestamps": {
            "prior_s": 5.1, "sigma_s": 0.2, "source": "shutter", "tmcd_reading": "frames",
            "statements": [
                {"source": "shutter", "prior_s": 5.1, "sigma_s": 0.2, "note": "", "serves": True},
                {"source": "creation_time", "prior_s": None, "sigma_s": 1.1, "note": "reset", "serves": False},
            ],
            "host_clock": {"probes": 300, "bound_ms": 1.5, "stretches": 2},
        },
    },
    "streams": {
        "hl2_gyro": {
            "rate_hz": 1104.2, "jitter_ms": 0.02, "lost": 0, "stamp": "vinyl_line",
            "unit": {"name": "deg_per_s", "scale": 57.31, "source": "fitted"},
        },
        "gopro_gyro": {"rate_hz": 199.9, "samples": 12_000},
    },
    "thresholds": {"rho_least": 0.6},
    "inputs": [{"path": "gopro/GX010001.MP4", "sha256": None}],
    "version": "0.1.0",
    "samples": [[0.0, 612_345_728_901_234], [60.0, 612_346_328_919_234]],
    "map": {
        "kind": "pieces", "t_mid_s": 30.0, "coef": [5.0, 3e-5],
        "pieces": [
            {"from_s": None, "until_s": 20.0, "jump_s": 0.0, "coef": [5.0, 3e-5]},
            {"from_s": 20.0, "until_s": None, "jump_s": 0.25, "coef": [5.25, 3e-5]},
        ],
        "valid_s": [0.0, 60.0],
    },
    "other_headsets": [{"master": "hololens-b/gyroscope", "status": "not_aligned", "reasons": ["other motion"]}],
    "take": {"start_s": 0.0, "files": ["GX010001.MP4", "GX020001.MP4"]},
}  # fmt: skip


def test_a_whole_file_is_written_as_it_was_read():
    assert json.dumps(Alignment.from_object(WHOLE).as_object()) == json.dumps(WHOLE)


def test_what_is_asked_of_a_file_is_what_it_says():
    said = Alignment.from_object(WHOLE)
    assert (said.headset, said.picture_late_s, said.bound95_ms, said.total_ms) == (
        "hololens-a",
        -0.014,
        0.3,
        1.6,
    )
    assert said.clock_map.to_ticks(40.0) == 612_345_678_901_234 + round(1e7 * (45.25 + 10 * 3e-5))
    assert [one.headset for one in said.other_headsets] == ["hololens-b"]


def test_a_refused_pair_with_a_map_is_not_placed():
    assert Alignment.from_object(WHOLE | {"status": "not_aligned"}).clock_map is None


def test_an_earlier_or_foreign_file_with_the_least_is_read():
    said = Alignment.from_object({"status": "aligned", "epoch_hl2_qpc": 5, "map": WHOLE["map"]})
    assert (said.headset, said.errors, said.bound95_ms, said.picture_late_s) == ("hololens", None, None, 0.0)


@pytest.mark.parametrize(
    "broken",
    [
        "{", "[]", '{"schema": "alignment/9", "status": "aligned"}', '{"schema": "alignment/1"}',
        '{"schema": "alignment/1", "status": "aligned", "map": {"coef": [1.0]}}',
        '{"schema": "alignment/1", "status": "aligned", "sigma": "none"}',
        '{"schema": "alignment/1", "status": "aligned", "sigma": {"systematic_ms": [{"part": "x"}]}}',
        '{"schema": "alignment/1", "status": "aligned", "samples": [[1]]}',
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_says_so(tmp_path, broken):
    (tmp_path / "GX010001.json").write_text(broken)
    said = read_alignment(tmp_path / "GX010001.json")
    assert (said.status, said.source, said.clock_map) == ("unreadable", "GX010001", None)
    assert said.problem.startswith("GX010001.json: ")
    assert said.problem.endswith("run `kitchensync sync` again")


@pytest.mark.slow
def test_nobody_else_knows_the_keys_of_an_alignment():
    found = {}
    for path in product_files():
        name = path.relative_to(PACKAGE).as_posix()
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        words = {node.value for node in nodes if isinstance(node, ast.Constant)}
        if name not in KNOWS and (keys := (words & KEYS) - ELSEWHERE.get(name, set())):
            found[name] = keys
    assert not found, "use kitchensync.storage.timeline.alignment"
