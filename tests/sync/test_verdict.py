"""The verdict on made-up evidence: sound evidence is aligned, and each fault alone is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kitchensync.sync.align.verdict import Evidence, judge

SOUND = Evidence(
    rho=0.9, rho2=0.3, rival=0.2, z=20.0, edge=False, tau0_s=1.0, lobe_distance_s=5.0,
    windows=10, windows_ok=10, correlation=0.95, stat_ms=0.2, chi=1.0, drift_ppm=20.0,
)  # fmt: skip


def test_sound_evidence_is_aligned():
    verdict = judge(SOUND)
    assert (verdict.status, verdict.reasons, verdict.warnings) == ("aligned", (), ())


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"rho": 0.2}, "not_aligned"),
        ({"edge": True}, "not_aligned"),
        ({"rho2": 0.8, "rival": 0.6}, "not_aligned"),
        ({"z": 5.0}, "not_aligned"),
        ({"windows_ok": 3}, "not_aligned"),
        ({"windows": 40, "windows_ok": 5}, "not_aligned"),
        ({"correlation": 0.4}, "not_aligned"),
        ({"stat_ms": 6.0}, "not_aligned"),
        ({"drift_ppm": 200.0}, "not_aligned"),
        ({"drift_ppm": -200.0}, "not_aligned"),
        ({"drift_ppm": -200.0, "nominal_rate": True}, "check"),
        ({"drift_ppm": -16_000.0, "nominal_rate": True}, "not_aligned"),
        ({"rho": 0.4, "rho2": 0.1, "nominal_rate": True}, "not_aligned"),
        ({"correlation": 0.6, "nominal_rate": True}, "not_aligned"),
        ({"head_pose": True}, "check"),
        ({"step_z": 8.0, "step_ms": -4.0}, "check"),
        ({"jumps": ((12.0, 30.0),)}, "check"),
        ({"chi": 7.0}, "check"),
        ({"mount_deg": 8.0, "mount_sigma_deg": 1.0}, "check"),
        ({"mount_deg": 8.0, "mount_sigma_deg": 4.0}, "aligned"),
        ({"scale": 1.5}, "check"),
        ({"scale": 0.6}, "check"),
        ({"prior_s": 3.0, "prior_sigma_s": 0.4}, "check"),
    ],
)
def test_each_fault_alone_decides(fault, status):
    verdict = judge(replace(SOUND, **fault))
    assert verdict.status == status
    assert bool(verdict.reasons) == (status != "aligned")


def test_a_rival_far_from_what_the_clocks_say_is_only_a_warning():
    rivalled = replace(SOUND, rho2=0.8, rival=0.6, prior_s=1.1, prior_sigma_s=0.5)
    assert judge(rivalled).status == "aligned"
    assert len(judge(rivalled).warnings) == 1
    assert judge(replace(rivalled, prior_sigma_s=2.0)).status == "not_aligned"
