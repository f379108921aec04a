"""Faults on purpose: each does what it says and stands in the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kitchensync.virtual_kitchen.faults import BadFault, parse_faults

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


def test_an_armed_fault_waits_for_its_line(start_kitchen: Callable[..., Any]) -> None:
    faults = ("drop_connection:gyroscope@armed+0.2", "die:@armed+60", "gopro_overheat@armed+60")
    options = [part for fault in faults for part in ("--fault", fault)]
    kitchen = start_kitchen("--seed", "2", *options)
    with kitchen.open("gyroscope") as dropped:
        first = dropped.packet()
        before = [dropped.packet() for _ in range(5)]
        kitchen.arm()
        after = dropped.packets()
    assert kitchen.interrupt() == 0
    told = {fault["name"]: fault for fault in kitchen.truth()["faults"]}
    assert set(told) == {"drop_connection", "die", "gopro_overheat"}
    assert told["die"]["start_ticks"] - told["drop_connection"]["start_ticks"] == pytest.approx(
        59.8e7, abs=1e5
    )
    assert first.ticks < before[-1].ticks < after[-1].ticks < told["drop_connection"]["start_ticks"]


def test_a_fault_that_was_never_armed_is_not_told(start_kitchen: Callable[..., Any]) -> None:
    kitchen = start_kitchen("--seed", "2", "--seconds", "0.4", "--fault", "stall:gyroscope@armed+0.1+5")
    with kitchen.open("gyroscope") as stream:
        assert stream.packets()
    assert kitchen.wait() == 0
    assert kitchen.truth()["faults"] == []


def test_faults_happen_and_are_told(start_kitchen: Callable[..., Any]) -> None:
    faults = (
        "wrong_version:1.0.30",
        "refuse_port:microphone",
        "never_answer:magnetometer",
        "drop_connection:gyroscope@armed+0",
        "stall:hololens/accelerometer@armed+0.1+0.7",
    )
    options = [part for fault in faults for part in ("--fault", fault)]
    kitchen = start_kitchen("--seed", "2", *options)
    assert kitchen.refuses(3811)
    with kitchen.remote() as remote:
        remote.send(b"\x00")
        assert remote.read(8) == bytes.fromhex("010000001e000000")
    with kitchen.open("magnetometer") as silent, kitchen.open("accelerometer") as stalled:
        with kitchen.open("gyroscope") as dropped:
            before = [dropped.packet() for _ in range(3)]
            accelerations = [stalled.packet()]
            kitchen.arm()
            before += dropped.packets()
        with kitchen.open("gyroscope") as again:
            after = again.packet()
        accelerations += [stalled.packet() for _ in range(18)]  # a second and a half
        assert kitchen.interrupt() == 0
        assert silent.read(1) == b""
        accelerations += stalled.packets()
    truth = kitchen.truth()
    told = {fault["name"]: fault for fault in truth["faults"]}
    assert set(told) == {fault.partition(":")[0] for fault in faults}
    drop = told["drop_connection"]
    assert drop["streams"] == ["hololens/gyroscope"]
    assert before[-1].ticks < drop["start_ticks"] <= after.ticks
    assert told["stall"]["start_host_ns"] - drop["start_host_ns"] == pytest.approx(10**8, abs=1000)
    assert truth["streams"]["hololens/magnetometer"]["packets"] == 0
    assert truth["streams"]["hololens/accelerometer"]["packets"] == len(accelerations)
    assert np.diff([p.ticks for p in accelerations]).max() < 1_000_000, "a stall loses nothing"
    late = [line for line in kitchen.lines("accelerometer") if line["fault"] == "stall"]
    assert 6 <= len(late) <= 10
    assert {line["connection"] for line in kitchen.lines("gyroscope")} == {0, 1}
