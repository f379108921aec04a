"""Faults on purpose: each does what it says and stands in the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from virtual_kitchen.faults import BadFault, parse_faults

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "text",
    [
        "fire",
        "drop_connection:pv",
        "drop_connection:tv@3",
        "stall:pv@3",
        "refuse_port:",
        "wrong_version:1.2",
        "stall:pv@a+b",
    ],
)
def test_faults_that_are_not_known_or_not_whole(text: str) -> None:
    with pytest.raises(BadFault):
        parse_faults([text])


def test_faults_happen_and_are_told(start_kitchen: Callable[..., Any]) -> None:
    faults = (
        "wrong_version:1.0.30",
        "refuse_port:microphone",
        "never_answer:magnetometer",
        "drop_connection:gyroscope@1.0",
        "stall:hololens/accelerometer@0.4+0.7",
    )
    options = [part for fault in faults for part in ("--fault", fault)]
    kitchen = start_kitchen("--seed", "2", "--seconds", "2.0", *options)
    assert kitchen.refuses(3811)
    with kitchen.remote() as remote:
        remote.send(b"\x00")
        assert remote.read(8) == bytes.fromhex("010000001e000000")
    with kitchen.open("magnetometer") as silent, kitchen.open("accelerometer") as stalled:
        with kitchen.open("gyroscope") as dropped:
            before = dropped.packets()
        with kitchen.open("gyroscope") as again:
            after = again.packets()
        assert silent.read(1) == b""
        accelerations = stalled.packets()
    assert kitchen.wait() == 0
    truth = kitchen.truth()
    told = {fault["name"]: fault for fault in truth["faults"]}
    assert set(told) == {fault.partition(":")[0] for fault in faults}
    drop = told["drop_connection"]
    assert drop["streams"] == ["hololens/gyroscope"]
    assert before[-1].ticks < drop["start_ticks"] <= after[0].ticks
    assert drop["start_host_ns"] - truth["world0_host_ns"] == 10**9
    assert truth["streams"]["hololens/magnetometer"]["packets"] == 0
    assert truth["streams"]["hololens/accelerometer"]["packets"] == len(accelerations)
    assert np.diff([p.ticks for p in accelerations]).max() < 1_000_000, "a stall loses nothing"
    late = [line for line in kitchen.lines("accelerometer") if line["fault"] == "stall"]
    assert 6 <= len(late) <= 10
    assert {line["connection"] for line in kitchen.lines("gyroscope")} == {0, 1}
