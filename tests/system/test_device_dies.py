"""A device that dies between two packets: the recording goes on, says so, and names what is missing."""

from __future__ import annotations

import json

import pytest
from processes import kitchensync


@pytest.mark.parametrize(
    ("fault", "lost", "ended"),
    [("die:@2", "all", "time"), ("kill_port:pv@2", "hololens/pv", "ended_by_device")],
)
def test_what_dies_between_two_packets_is_a_fault_and_no_end(kitchen, runtime, tmp_path, fault, lost, ended):
    place = kitchen("--rings", "--fault", fault, seconds=9)
    take = (
        "record",
        "take",
        "--data",
        tmp_path / "data",
        "--hololens",
        place.host,
        "--seconds",
        "14",
        "--json",
    )
    done = kitchensync(*take)
    answer, truth = json.loads(done.stdout), place.truth()
    assert (answer["status"] != "PASS", answer["ended"]) == (True, ended), done.stderr
    assert "hololens: nothing for " in done.stderr, "the progress line is an alarm"
    assert any("nothing came in the last" in reason for reason in answer["reasons"])
    (told,) = truth["faults"]
    for name, sent in truth["streams"].items():
        facts = answer["streams"][name]
        assert (facts["stored"], facts["sha256"]) == (sent["packets"], sent["sha256"]), name
        if lost not in ("all", name):
            assert (facts["ended"], facts["gaps"]) == ("ended_by_device", [])
            continue
        (gap,) = facts["gaps"]
        assert (facts["ended"], gap["cause"]) == ("lost", "network"), name
        died_ticks = told["start_ticks"]
        assert gap["start_ticks"] <= died_ticks + 10**7 < died_ticks + 5 * 10**7 < gap["end_ticks"], name
