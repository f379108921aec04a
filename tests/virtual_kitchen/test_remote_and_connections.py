"""Remote configuration, and what a port does with clients that reconnect, queue, misbehave or do not read."""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import av
import numpy as np
import pytest

pytestmark = pytest.mark.slow

UNIX_EPOCH_FILETIME = 116_444_736_000_000_000
SLACK = 100_000
"""By so many ticks the headset's crystal and UTC may have moved apart since the offset was first asked."""


@pytest.fixture(scope="module")
def kitchen(start_kitchen: Callable[..., Any]) -> Iterator[Any]:
    """Serve until interrupted; its truth is looked at by the last test of this file."""
    return start_kitchen("--seed", "3", "--seconds", "0", "--gyroscope-unit", "rad_per_s")


def _configuration(profile: int, key: int, size: tuple[int, int] = (640, 360)) -> bytes:
    return (
        struct.pack("<BHHBBBBI", 1, *size, 30, 1, profile, 255, 500_000)
        + b"\x01"
        + struct.pack("<QQ", 10, key)
    )


@pytest.mark.slow
def test_version_utc_and_clock(kitchen: Any) -> None:
    with kitchen.open("magnetometer") as stream, kitchen.remote() as remote:
        assert stream.packet() is not None
        before_ns = time.time_ns()
        remote.send(b"\x00\x01\x01\x18\x00\x00\x00\x00\x18\x01\x00\x00\x00")
        assert struct.unpack("<4H", remote.read(8)) == (1, 0, 37, 0)
        offset, again, ticks, filetime = struct.unpack("<4Q", remote.read(32))
        assert offset == again
        utc_ns = (filetime - UNIX_EPOCH_FILETIME) * 100
        assert before_ns - 2 * 10**9 < utc_ns < time.time_ns() + 2 * 10**9
        remote.send(b"\x18" + bytes(4))
        (later,) = struct.unpack("<Q", remote.read(8))
        assert later > ticks
        assert ticks - SLACK < filetime - offset < later + SLACK, "QPC plus the offset is UTC"


ORDERS = {
    0x02: (1,),
    0x04: (3, 0, 2, 3000, 1),
    0x05: (0,),
    0x06: (1,),
    0x07: (92,),
    0x08: (0, 66_000),
    0x09: (0,),
    0x0A: (0, 3200),
    0x0B: (1,),
    0x0C: (12,),
    0x0D: (1,),
    0x0E: (7,),
    0x0F: (6,),
    0x10: (2,),
    0x11: (1,),
    0x12: (2,),
    0x13: (0xDE4, 0, 0, 0x3F80_0000, 0x3F80_0000),
    0x14: (3801, 2**32 - 2),
    0x15: (1,),
    0x19: (2**32 - 1, 2**32 - 1),
    0x20: (0,),
    0x21: (0,),
    0x22: (3803, 1),
}


def _order(command: int, *values: int) -> bytes:
    return struct.pack(f"<B{len(values)}I", command, *values)


def test_orders_without_an_answer_take_their_arguments(kitchen: Any) -> None:
    with kitchen.remote() as remote:
        remote.send(b"".join(_order(command, *values) for command, values in ORDERS.items()) + b"\x00")
        assert remote.read(8) == bytes.fromhex("0100000025000000")


def test_a_mode_that_chooses_by_itself_does_not_look_at_the_value(kitchen: Any) -> None:
    with kitchen.remote() as remote:
        remote.send(_order(0x04, 0, 0, 0, 0, 0) + _order(0x08, 1, 0) + _order(0x0A, 1, 0) + b"\x00")
        assert remote.read(8) == bytes.fromhex("0100000025000000")


def test_rig_poses_are_those_of_the_packets(kitchen: Any) -> None:
    with kitchen.open("accelerometer") as stream, kitchen.remote() as remote:
        packet = stream.packet()
        assert packet is not None
        remote.send(b"\x17" + struct.pack("<IQQ", 2, packet.ticks, packet.ticks + 10**12))
        answer = np.frombuffer(remote.read(128), "<f4").reshape(2, 16)
    assert np.allclose(answer[0], np.frombuffer(packet.pose, "<f4"), atol=1e-4)
    assert not answer[1].any(), "the future is not known"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x1a",
        b"\xff",
        _order(0x18, 2),
        _order(0x02, 2),
        _order(0x04, 4, 0, 2, 3000, 1),
        _order(0x04, 3, 0, 2, 169, 1),
        _order(0x06, 8),
        _order(0x07, 301),
        _order(0x08, 0, 99),
        _order(0x0A, 0, 3201),
        _order(0x0C, 1),
        _order(0x14, 3801, 3),
        _order(0x22, 3804, 1),
    ],
    ids=bytes.hex,
)
def test_an_unknown_command_or_a_bad_argument_closes(kitchen: Any, sent: bytes) -> None:
    with kitchen.remote() as remote:
        remote.send(sent)
        assert remote.read(1) == b""


@pytest.mark.parametrize(
    ("stream", "sent"),
    [
        ("magnetometer", b"\x02"),
        ("depth_ahat", b"\x03"),
        ("depth_ahat", struct.pack("<BBBBBIB", 1, 0, 0, 3, 255, 1000, 0)),
        ("depth_ahat", struct.pack("<BBBBBIB", 1, 1, 0, 3, 255, 0, 0)),
        ("microphone", b"\x03\x00"),
        ("microphone", b"\x04\x29"),
        ("pv", _configuration(3, 30)),  # the camera subsystem is off
    ],
)
def test_rejected_configuration_closes_without_a_word(kitchen: Any, stream: str, sent: bytes) -> None:
    with kitchen.open(stream, sent) as connection:
        assert connection.read(1) == b""


def test_camera_life_cycle(kitchen: Any) -> None:
    kitchen.start_camera()
    with kitchen.open("pv", _configuration(3, 30, (641, 360))) as unknown_format:
        assert unknown_format.read(1) == b""
    with kitchen.open("pv", _configuration(3, 10)) as stream:
        assert stream.packet() is not None
    with kitchen.open("pv", b"\x0b") as stop:
        assert stop.read(1) == b""
    with kitchen.remote() as remote:
        remote.send(b"\x03")
        assert remote.read(1) == b"\x00"


def test_constants_are_downloaded_before_the_streams(kitchen: Any) -> None:
    with kitchen.open("gyroscope", b"\x02") as download:
        rig_to_sensor = np.frombuffer(download.read(1000), "<f4").reshape(4, 4)
    rotation = rig_to_sensor[:3, :3].astype(np.float64)
    assert np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-5)
    assert np.linalg.det(rotation) == pytest.approx(1)
    kitchen.start_camera()
    with kitchen.open("pv", b"\x02" + struct.pack("<HHB", 640, 360, 30)) as download:
        numbers = np.frombuffer(download.read(1000), "<f4")
    assert len(numbers) == 52
    assert numbers[:4] == pytest.approx([505, 505, 319.5, 179.5], abs=1)


@pytest.mark.slow
def test_h264_units_open_with_a_delimiter_and_restart_with_a_key_frame(kitchen: Any) -> None:
    kitchen.start_camera()
    for _ in range(2):
        decoder = av.CodecContext.create("h264", "r")
        frames = 0
        with kitchen.open("pv", _configuration(1, 10)) as stream:
            for number in range(6):
                packet = stream.packet()
                assert packet is not None
                assert packet.payload[:5] == b"\x00\x00\x00\x01\x09"
                assert (packet.payload[6:11] == b"\x00\x00\x00\x01\x67") == (number == 0), (
                    "parameters open the first"
                )
                frames += len(decoder.decode(av.Packet(packet.payload[:-80])))
        assert frames + len(decoder.decode(None)) == 6


def test_raw_pictures_have_padded_rows(kitchen: Any) -> None:
    kitchen.start_camera()
    with kitchen.open("pv", _configuration(255, 1, (760, 428))) as stream:
        packet = stream.packet()
    assert packet is not None
    assert len(packet.payload) == 768 * 428 * 3 // 2 + 80


def test_second_client_waits_for_the_first(kitchen: Any) -> None:
    with kitchen.open("spatial_input") as first:
        assert first.packet() is not None
        second = kitchen.open("spatial_input")
        for _ in range(5):
            assert first.packet() is not None
    with second:
        packet = second.packet()
    assert packet is not None


def test_raw_audio_and_array(kitchen: Any) -> None:
    for level, size in ((0x29, 768 * 2 * 2), (0x2B, 768 * 5 * 4)):
        with kitchen.open("microphone", bytes([255, level])) as stream:
            packet = stream.packet()
        assert packet is not None
        assert len(packet.payload) == size


@pytest.mark.slow
def test_an_interrupt_writes_the_truth_and_exits_zero(kitchen: Any) -> None:
    """What a slow client lost at the source, and every connection, are in it."""
    kitchen.start_camera()
    for _ in range(2):
        with kitchen.open("pv", _configuration(1, 10)) as stream:
            assert stream.packet() is not None
    raw = struct.pack("<BBBBBIB", 1, 1, 0, 255, 255, 1000, 0)
    with kitchen.open("depth_ahat", raw) as stream:
        assert stream.packet() is not None
        for turn in count():  # the queue of a busy computer has room for longer
            time.sleep(1.5 * 2**turn)  # nobody reads: it has a queue, and then it loses
            ticks = [packet.ticks for packet in (stream.packet() for _ in range(60)) if packet is not None]
            if np.diff(ticks).max() > 10_000_000:
                break
    with kitchen.open("gyroscope") as stream:
        first = stream.packet()
        assert first is not None
        w_deg_per_s = np.frombuffer(first.payload, "<f4").reshape(-1, 8)[:, 4:7]
        assert np.linalg.norm(w_deg_per_s, axis=1).max() < 4, "radians were asked for"
        assert kitchen.interrupt() == 0
        rest = stream.packets()
    truth = kitchen.truth()
    told = truth["streams"]["hololens/gyroscope"]
    payloads = b"".join(p.payload for p in (first, *rest))
    assert told["sha256"] == hashlib.sha256(payloads).hexdigest()
    assert truth["streams"]["hololens/depth_ahat"]["dropped_by_backpressure"] > 0
    connections = {line["connection"] for line in kitchen.lines("pv")}
    assert connections >= {0, 1}, "the two of here, and those of the tests before"
    assert connections == set(range(len(connections)))
