"""The computer's clock is set twice while it records: named, and every time of day is that of the nearest anchor."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from mcap.reader import make_reader
from processes import kitchensync
from rehearsal.injected import CLOCK, prepare, put
from rehearsal.stage import record_command, recorder
from waiting import until

import kitchensync as ks
from kitchensync.capture.served_kitchen import simulator

SECOND = 10**9
SETS = (3600 * SECOND, -1800 * SECOND)
"""The clock against that of this computer, one after the other."""


def true_utc_ns(host_ns: np.ndarray, sets: list[tuple[int, int]]) -> np.ndarray:
    """What the recorder's clock showed at host times."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return offset_ns + host_ns + sum(by * (host_ns >= at) for at, by in sets)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(400)
def test_a_clock_that_is_set_forward_and_back(tmp_path: Path) -> None:
    moments: list[int] = []
    with simulator(tmp_path, 6, 900) as kitchen:
        environment = kitchen.environment | prepare(tmp_path / "injected")
        command = record_command(kitchen, tmp_path / "data", 900, "--streams", "gyroscope,accelerometer")
        with recorder(command, tmp_path, environment) as taking:
            for by_ns in (*SETS, None):
                end_ns = taking.wait_for_all()["host_ns"] + 5 * SECOND
                until(lambda end_ns=end_ns: taking.state()["host_ns"] > end_ns, "five seconds")
                if by_ns is not None:
                    put(tmp_path / "injected", CLOCK, by_ns)
                    moments.append(time.monotonic_ns())
            said_live = [one for one in taking.state()["problems"] if "clock was set by -5400.0 s" in one]
            taking.process.send_signal(signal.SIGINT)
            answer = json.loads(taking.output())
    steps = [SETS[0], SETS[1] - SETS[0]]
    sets = list(zip(moments, steps, strict=True))
    said = [re.search(r"clock was set by ([+-][0-9.]+) s at (\d+):(\d\d)$", one) for one in answer["reasons"]]
    found = [one for one in said if one]
    assert (answer["status"], len(said_live)) == ("WARN", 1)
    assert [float(one[1]) for one in found] == pytest.approx([by / 1e9 for by in steps], abs=0.1)

    path = Path(answer["path"])
    out = tmp_path / "out"
    for form in ("tables", "mcap"):
        assert kitchensync("export", form, path, "--out", out).returncode == 0
    table = pq.read_table(out / path.name / "hololens" / "accelerometer.parquet").to_pydict()
    with open(out / f"{path.name}.mcap", "rb") as file:
        told = {one.name: one.metadata for one in make_reader(file).iter_metadata()}["kitchensync"]
    anchors = np.array(json.loads(told["host_ns_and_utc_ns"]))
    with ks.open(path) as rec:
        stream = rec["hololens/accelerometer"]
        host_ns, utc_ns = stream.times_ns, stream.utc.astype(np.int64)
        assert rec.utc_bound(1.0) < 0.01
        at_step_s = float(rec.clock.of_host(np.array([moments[0]]))[0] / 1e9)
        assert rec.utc_bound(np.arange(at_step_s - 1, at_step_s + 2, 0.05)).max() > 3599
        bounds_ns = np.array(json.loads(told["utc_bounds_ns"]))
        assert (bounds_ns > 1000 * SECOND).sum() == len(SETS)
        within_ns = bounds_ns[np.minimum(np.searchsorted(anchors[:, 0], host_ns), len(anchors) - 1)]
        shown_s = np.array(table["utc_bound_ns"]) / 1e9
        np.testing.assert_allclose(shown_s, rec.utc_bound(stream.times))
        assert (shown_s < within_ns / 1e9 + 0.001).all()
        zero_ns = int(rec.clock.to_host(np.zeros(1, np.int64))[0])
    for one, (at_ns, _) in zip(found, sets, strict=True):
        assert abs(60 * int(one[2]) + int(one[3]) - (at_ns - zero_ns) / 1e9) < 5
    clear = np.all([np.abs(host_ns - at) > 3 * SECOND for at in moments], axis=0)
    assert clear.sum() > 100
    nearest = anchors[np.argmin(np.abs(host_ns[:, None] - anchors[:, 0]), axis=1)]
    tabled = np.array([one.value for one in table["utc"]], np.int64)
    for shown in (utc_ns, tabled, host_ns + nearest[:, 1] - nearest[:, 0]):
        assert np.abs(shown - true_utc_ns(host_ns, sets))[clear].max() < 0.05 * SECOND
