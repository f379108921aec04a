"""Faults of the headset as a foreign client meets them, and the truth about them."""

from __future__ import annotations

import contextlib
import hashlib
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from second_client import Wire, options, video

from kitchensync.virtual_kitchen.faults import CUTS, HOSTILE, KINDS, OF_HEADSET, WHOLE, BadFault, parse_faults
from kitchensync.virtual_kitchen.headset import hostile

pytestmark = pytest.mark.slow

GYROSCOPE_BYTES = 12 + 315 * 32
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
        "lost_tracking:pv@1+1",
        "lost_tracking:@1",
        "black_pictures:vlc_leftfront@1+1",
        "still_sensor:microphone@1+1",
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
    examples |= {"still_sensor": "gyroscope@1+2"} | dict.fromkeys(OF_HEADSET, "@1+2")
    moments = CUTS
    for name in (kind for kind in KINDS if not kind.startswith("gopro")):
        text = examples.get(name, "pv@1" if name in moments else "pv@1+2")
        assert parse_faults([f"{name}:{text}" if text else name]).faults[0].name == name


def test_a_hostile_headset_has_a_way_for_each_name() -> None:
    assert set(HOSTILE) == set(hostile.HOSTILE)


SLOW_TICKS = 1_500_000
"""More than this lies between two pictures at five a second, less between two at the usual rate."""


def is_over(ticks: list[int]) -> bool:
    """Return whether pictures came slowly, and then twenty of them at the usual rate."""
    slow = np.diff(ticks) > SLOW_TICKS
    return len(slow) > 20 and bool(slow.any()) and not slow[-20:].any()


def test_a_slow_depth_camera_loses_nothing_and_a_killed_port_stays_dead(start_kitchen: Any) -> None:
    kitchen = start(start_kitchen, "research_mode_off")
    assert refused(kitchen.host, 3807)
    kitchen.kill()
    kitchen = start(start_kitchen, seconds="0")
    with Wire(kitchen.host, 3804, AHAT) as depth, Wire(kitchen.host, 3806, b"\x00") as killed:
        assert killed.packet(False)[0] > 0
        packets = [depth.packet(False) for _ in range(10)]
        kitchen.type("fault depth_rate_drop:depth_ahat+2", "fault kill_port:accelerometer")
        killed.rest()
        while not is_over(ticks := [packet[0] for packet in packets]):
            packets.append(depth.packet(False))
        ender = threading.Thread(target=kitchen.interrupt)  # which waits for who reads
        ender.start()
        with contextlib.suppress(EOFError):
            while True:
                packets.append(depth.packet(False))
        ender.join()
    assert kitchen.process.returncode == 0
    told = kitchen.truth()["streams"]["hololens/depth_ahat"]
    assert told["packets"] == told["scheduled"] == len(packets)
    assert told["dropped_by_backpressure"] == 0
    assert told["sha256"] == hashlib.sha256(b"".join(p[1] for p in packets)).hexdigest()
    slow = np.diff(ticks) > SLOW_TICKS
    assert 8 <= slow.sum() <= 11, "five pictures a second for two seconds"
    assert not slow[:9].any()


def test_a_headset_that_dies_answers_nowhere_and_ends_after_whole_packets(start_kitchen: Any) -> None:
    kitchen = start(start_kitchen, seconds="0")
    with Wire(kitchen.host, 3807, b"\x00") as inertial, Wire(kitchen.host, 3806, b"\x00") as other:
        assert other.packet(False)[0] > 0
        before = [inertial.packet(False)[0] for _ in range(11)]
        armed_ns = time.monotonic_ns()
        kitchen.type("fault die")
        whole, rest = divmod(len(inertial.rest()), GYROSCOPE_BYTES)
        assert rest == 0
        other.rest()
    dead_ns = time.monotonic_ns()
    assert refused(kitchen.host, 3807)
    assert refused(kitchen.host, 3809), "not even remote configuration answers"
    assert kitchen.interrupt() == 0
    truth = kitchen.truth()
    assert truth["streams"]["hololens/gyroscope"]["packets"] == 11 + whole
    (died,) = truth["faults"]
    assert died["name"] == "die"
    assert died["start_ticks"] > before[-1]
    assert armed_ns < died["start_host_ns"] < dead_ns


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
    kitchen = start(start_kitchen, seconds="0")
    with Wire(kitchen.host, 3808, b"\x00") as noisy, Wire(kitchen.host, 3807, b"\x00") as cut:
        assert noisy.packet(False)[0] > 0
        assert [cut.packet(False)[0] for _ in range(11)]
        kitchen.type("fault half_packet:gyroscope", "fault garbage_payload:magnetometer+1")
        _, size = divmod(len(cut.rest()), GYROSCOPE_BYTES)
        assert 0 < size < GYROSCOPE_BYTES, "the last packet came by half"
        for _ in range(8):  # more than a second of them
            noisy.packet(False)
        assert kitchen.interrupt() == 0
    truth = kitchen.truth()
    faults = {line["fault"] for line in kitchen.lines("magnetometer")}
    assert faults == {None, "garbage_payload"}
    assert truth["streams"]["hololens/gyroscope"]["packets"] == len(kitchen.lines("gyroscope"))
    assert {fault["name"] for fault in truth["faults"]} == {"half_packet", "garbage_payload"}
