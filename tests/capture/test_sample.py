"""The sample is small, complete and aligned, has steps, and is a normal recording."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from processes import COMMAND
from typed_commands import answer

import kitchensync as ks

pytestmark = pytest.mark.slow
MOST_BYTES = 6_000_000


def test_a_sample_is_small_aligned_and_has_steps(tmp_path: Path) -> None:
    sample = answer("sample", tmp_path / "sample")
    path = Path(sample["path"])
    assert [file.name for file in tmp_path.iterdir()] == ["sample"]
    assert (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) == sample["bytes"] < MOST_BYTES
    )
    report = answer("verify", path, "--deep")
    # On a busy computer packets may be late, which is a WARN; nothing is lost or damaged.
    assert report["status"] in ("PASS", "WARN")
    assert not report["corrupt"]
    assert all(stream["stored"] == stream["received"] > 0 for stream in report["streams"].values())
    (line,) = answer("list", tmp_path)["recordings"]
    assert (line["recipe"], line["person"], line["alignment"]) == ("sandwich", "virtual-1", "aligned")
    with ks.open(path) as rec:
        assert rec.steps["node"].tolist() == [1, 2, 3]
        assert rec.steps["error"].tolist() == [False, True, False]
        np.testing.assert_allclose(np.diff(rec.steps["end"]), [7.0, 5.5], atol=0.01)
        assert rec.duration == pytest.approx(20, abs=0.5)
        assert {*rec.at(10).pictures} == {"pv", "gopro"}
        assert np.isfinite(rec.gyroscope.sample(10.0)).all()
    assert "is a recording" in answer("sample", path, code=1)["reason"]
    inside = answer("sample", path / "sync/another", code=1)["reason"]
    assert "lies inside the recording sample" in inside
    (tmp_path / "used").mkdir()
    (tmp_path / "used/mine").touch()
    assert "--force" not in answer("sample", tmp_path / "used", code=1)["reason"]


def test_an_interrupted_sample_leaves_nothing(tmp_path: Path) -> None:
    command = [COMMAND, "sample", str(tmp_path / "data/sample")]
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not [*tmp_path.glob("kitchensync-sample-*/record.log")]:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate()
    assert (process.returncode, "stopped by Ctrl-C" in output) == (1, True), output
    assert [*tmp_path.rglob("*")] == [tmp_path / "data"]
