"""A whole recording on a mounted file system whose image is copied while it runs; each copy is lived on with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import COMMAND

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

SCRIPT = Path(__file__).resolve().parents[1] / "support" / "processes" / "cut_power.py"
MOMENTS_S = "2,11.5,16"
"""Before the first chunk is sealed, behind it, and in the middle of the second."""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk image needs root")
@pytest.mark.slow
def test_after_a_power_cut_all_that_was_stored_is_there_and_the_tail_has_a_name(kitchen, runtime, tmp_path):
    place = kitchen(seconds=60)
    out, mounted = tmp_path / "out", tmp_path / "mounted"
    out.mkdir()
    mounted.mkdir()
    command = ["unshare", "-m", sys.executable, "-P", str(SCRIPT), str(tmp_path / "image"), str(mounted)]
    done = subprocess.run(
        [*command, str(out), COMMAND, place.host, MOMENTS_S],
        capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"PYTHONPATH": str(SCRIPT.parent)},
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("this computer mounts no disk images")
    assert done.returncode == 0, done.stdout + done.stderr
    place.truth()
    acknowledged = 0
    for number in range(len(MOMENTS_S.split(","))):
        answer = json.loads((out / f"{number}.json").read_text())
        checked = answer["verify"]
        assert answer["recover"][0] == 0, answer["recover"]
        # A cut before the first chunk is sealed may cost most of the two seconds until then.
        half = all(facts["coverage"] >= 0.5 for facts in checked["streams"].values())
        assert checked["status"] == ("WARN" if half else "FAIL"), checked["reasons"]
        assert (checked["corrupt"], answer["left"]) == ([], ["take"]), checked["reasons"]
        for name, stored in answer["stored"].items():
            facts = checked["streams"][name]
            lines = (place.out / "truth" / f"{name}.jsonl").read_text().splitlines()[: facts["stored"]]
            assert facts["stored"] >= stored, (
                f"{name}: {stored} were acknowledged, {facts['stored']} are there"
            )
            assert sum(json.loads(line)["size"] for line in lines) == facts["bytes"], name
            assert (facts["missing"], facts["duplicates"]) == ([], 0), name
            assert facts["gaps"][-1]["cause"] == "restart", "the tail has a name"
            acknowledged += stored
    assert acknowledged > 0, "nothing was stored before a cut"
