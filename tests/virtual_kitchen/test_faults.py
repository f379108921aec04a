"""Faults on purpose: each does what it says and stands in the truth."""

from __future__ import annotations

import re
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


def test_an_armed_fault_counts_from_when_every_stream_has_sent(start_kitchen: Callable[..., Any]) -> None:
    faults = ("drop_connection:gyroscope@armed+0.2", "die:@armed+60", "gopro_overheat@armed+60")
    options = [part for fault in faults for part in ("--fault", fault)]
    kitchen = start_kitchen("--seed", "2", *options)
    with kitchen.open("accelerometer") as other, kitchen.open("gyroscope") as dropped:
        first = dropped.packet()
        before = [dropped.packet() for _ in range(5)]
        after = dropped.packets()
        assert other.packet()
    assert kitchen.interrupt() == 0
    told = {fault["name"]: fault for fault in kitchen.truth()["faults"]}
    assert set(told) == {"drop_connection", "die", "gopro_overheat"}
    assert told["die"]["start_ticks"] - told["drop_connection"]["start_ticks"] == pytest.approx(
        59.8e7, abs=1e5
    )
    assert first.ticks < before[-1].ticks < after[-1].ticks < told["drop_connection"]["start_ticks"]


def test_a_fault_that_was_never_armed_is_not_told(start_kitchen: Callable[..., Any]) -> None:
    kitchen = start_kitchen("--seed", "2", "--fault", "stall:gyroscope@armed+0.1+5")
    assert kitchen.interrupt() == 0
    assert kitchen.truth()["faults"] == []


@pytest.mark.parametrize(
    ("text", "start_s"),
    [
        ("gopro_overheat", 7),
        ("gopro_500+3", 7),
        ("app_restart+2", 7),
        ("time_jump:pv-5", 7),
        ("gopro_slow:9", 0),
    ],
)
def test_a_fault_at_once_needs_no_time(text: str, start_s: float) -> None:
    plan = parse_faults([])
    plan.fire(text, 7.0)
    (fault,) = plan.every()
    assert (fault.name, fault.start_s) == (re.split("[:+@]", text)[0], start_s)
    with pytest.raises(BadFault):
        plan.fire("no_fault", 7.0)


def test_faults_happen_and_are_told(start_kitchen: Callable[..., Any]) -> None:
    faults = ("wrong_version:1.0.30", "refuse_port:microphone", "never_answer:magnetometer")
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
            kitchen.type("fault drop_connection:gyroscope", "fault stall:hololens/accelerometer@0.1+0.7")
            before += dropped.packets()
        with kitchen.open("gyroscope") as again:
            after = again.packet()
        accelerations += [stalled.packet() for _ in range(18)]  # a second and a half
        assert kitchen.interrupt() == 0
        assert silent.read(1) == b""
        accelerations += stalled.packets()
    truth = kitchen.truth()
    told = {fault["name"]: fault for fault in truth["faults"]}
    assert set(told) == {fault.partition(":")[0] for fault in faults} | {"drop_connection", "stall"}
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
