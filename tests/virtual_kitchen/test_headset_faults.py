"""Faults of the headset as a foreign client meets them, and the truth about them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from second_client import Wire, options, video

from virtual_kitchen.faults import CUTS, HOSTILE, KINDS, WHOLE, BadFault, parse_faults
from virtual_kitchen.headset import hostile

pytestmark = pytest.mark.slow

AHAT = b"\x00\x01\x00" + video(255) + options()


def start(
    start_kitchen: Callable[..., Any], *faults: str, seconds: str = "4", more: tuple[str, ...] = ()
) -> Any:
    given = [part for fault in faults for part in ("--fault", fault)]
    return start_kitchen("--seed", "8", "--seconds", seconds, "--rings", *more, *given)


def refused(host: str, port: int) -> bool:
    try:
        Wire(host, port).socket.close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize(
    "text",
    [
        "app_restart:pv@2+1",
        "app_restart:@2",
        "app_restart:@2-1",
        "headset_swap:@2",
        "die:pv@2",
        "die:@2+1",
        "die:",
        "depth_rate_drop:pv@1+1",
        "stall:pv@2-1",
        "half_packet:pv@1+1",
        "time_jump:pv@1",
        "research_mode_off:pv",
    ],
)
def test_faults_that_make_no_sense(text: str) -> None:
    with pytest.raises(BadFault):
        parse_faults([text])


def test_every_kind_can_be_asked_for() -> None:
    examples = {"never_answer": "pv", "refuse_port": "pv", "die": "@1"} | dict.fromkeys(WHOLE[:2], "@1+2")
    examples |= {"wrong_version": "", "research_mode_off": ""}
    examples |= {"depth_rate_drop": "depth_ahat@1+2", "time_jump": "pv@1-2"}
    moments = CUTS
    for name in (kind for kind in KINDS if not kind.startswith("gopro")):
        text = examples.get(name, "pv@1" if name in moments else "pv@1+2")
        assert parse_faults([f"{name}:{text}" if text else name]).faults[0].name == name


def test_a_hostile_headset_has_a_way_for_each_name() -> None:
    assert set(HOSTILE) == set(hostile.HOSTILE)


def test_a_slow_depth_camera_loses_nothing_and_a_killed_port_stays_dead(start_kitchen: Any) -> None:
    kitchen = start(
        start_kitchen, "depth_rate_drop:depth_ahat@0.5+2", "kill_port:magnetometer@1", "research_mode_off"
    )
    assert refused(kitchen.host, 3807)
    kitchen.kill()
    kitchen = start(start_kitchen, "depth_rate_drop:depth_ahat@0.5+2", "kill_port:accelerometer@1")
    with Wire(kitchen.host, 3804, AHAT) as depth, Wire(kitchen.host, 3806, b"\x00") as killed:
        packets = []
        try:
            while True:
                packets.append(depth.packet(False))
        except EOFError:
            pass
        assert len(killed.rest()) > 0
    assert refused(kitchen.host, 3806)
    assert kitchen.wait() == 0
    told = kitchen.truth()["streams"]["hololens/depth_ahat"]
    assert told["packets"] == told["scheduled"] == len(packets)
    assert told["dropped_by_backpressure"] == 0
    assert told["sha256"] == hashlib.sha256(b"".join(p[1] for p in packets)).hexdigest()
    steps_ms = np.diff([ticks for ticks, _, _ in packets]) / 1e4
    assert sum(step > 150 for step in steps_ms) >= 8, "five pictures a second for two seconds"
    assert np.median(steps_ms) < 30


def test_a_headset_that_dies_answers_nowhere_and_ends_after_whole_packets(start_kitchen: Any) -> None:
    kitchen = start(start_kitchen, "die:@1", seconds="3")
    with Wire(kitchen.host, 3807, b"\x00") as inertial, Wire(kitchen.host, 3806, b"\x00") as other:
        whole, rest = divmod(len(inertial.rest()), 12 + 315 * 32)
        assert (whole > 10, rest) == (True, 0)
        assert len(other.rest()) > 0
    assert refused(kitchen.host, 3807)
    assert refused(kitchen.host, 3809), "not even remote configuration answers"
    assert kitchen.interrupt() == 0
    truth = kitchen.truth()
    assert truth["streams"]["hololens/gyroscope"]["packets"] == whole
    (died,) = truth["faults"]
    assert (died["name"], died["start_host_ns"]) == ("die", truth["world0_host_ns"] + 10**9)


def test_unthrottled_from_rings(start_kitchen: Any) -> None:
    kitchen = start(start_kitchen, seconds="300", more=("--speed", "0"))
    with Wire(kitchen.host, 3807, b"\x01") as wire:
        data = wire.rest()
    at, ticks, payloads = 0, [], []
    while at < len(data):
        stamp, size = struct.unpack_from("<QI", data, at)
        ticks.append(stamp)
        payloads.append(data[at + 12 : at + 12 + size])
        at += 12 + size + 64
    assert len(ticks) == pytest.approx(300 / 47.68e-3, abs=3)
    assert (np.diff(ticks) > 0).all()
    assert [struct.unpack_from("<Q", payload, 8)[0] for payload in payloads] == ticks
    vinyl = np.array([struct.unpack_from("<Q", payload)[0] for payload in payloads], np.int64)
    assert (np.diff(vinyl) > 0).all(), "the stamps inside move along with the ring"
    assert kitchen.wait() == 0, "it ends when all is sent, not when that would have happened"
    told = kitchen.truth()["streams"]["hololens/gyroscope"]
    assert told["sha256"] == hashlib.sha256(b"".join(payloads)).hexdigest()


def test_garbage_and_half_packets_are_told_apart_in_the_truth(start_kitchen: Any) -> None:
    kitchen = start(
        start_kitchen, "half_packet:gyroscope@1", "garbage_payload:magnetometer@0.5+1", seconds="3"
    )
    with Wire(kitchen.host, 3808, b"\x00") as noisy, Wire(kitchen.host, 3807, b"\x00") as cut:
        whole, size = divmod(len(cut.rest()), 12 + 315 * 32)
        assert whole > 10
        assert 0 < size < 12 + 315 * 32, "the last packet came by half"
        assert noisy.rest()
    assert kitchen.wait() == 0
    truth = kitchen.truth()
    faults = {line["fault"] for line in kitchen.lines("magnetometer")}
    assert faults == {None, "garbage_payload"}
    assert truth["streams"]["hololens/gyroscope"]["packets"] == len(kitchen.lines("gyroscope"))
    assert {fault["name"] for fault in truth["faults"]} == {"half_packet", "garbage_payload"}
