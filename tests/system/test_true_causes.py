"""A producer or a queue server that was held up for long is the cause that the gaps have, and not the network."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from processes import children, recording_all

HELD_S = 13.0
"""Longer than a stream may be silent before its connection is given up, and than the queue is waited for at once."""


@pytest.mark.parametrize(
    ("victim", "causes"),
    [
        pytest.param(
            "kitchensync producer",
            {"restart", "reconnect"},
            marks=pytest.mark.promise("What is missing is named, with its cause"),
        ),
        ("valkey-server", {"backpressure", "queue_loss"}),
    ],
)
def test_a_gap_is_named_for_who_was_held_up(kitchen, runtime, tmp_path, victim, causes):
    place = kitchen("--rings", seconds=40)
    with recording_all(place.host, runtime, tmp_path / "data") as recorder:
        found = [pid for pid, line in children(recorder.pid).items() if victim in line]
        assert len(found) == 1
        os.kill(found[0], signal.SIGSTOP)
        time.sleep(HELD_S)
        os.kill(found[0], signal.SIGCONT)
        output, errors = recorder.communicate(timeout=120)
    answer, truth = json.loads(output), place.truth()
    assert answer["ended"] == "ended_by_device", errors
    has_said = (
        "producer hololens has not answered" if "producer" in victim else "the queue server has not answered"
    )
    assert has_said in errors
    named = {gap["cause"] for facts in answer["streams"].values() for gap in facts["gaps"]}
    assert named - {"declared_loss"} <= causes, answer["reasons"]
    dropped = {name for name, sent in truth["streams"].items() if sent["dropped_by_backpressure"]}
    with_gaps = {name for name, facts in answer["streams"].items() if facts["gaps"]}
    assert dropped <= with_gaps, answer["reasons"]
