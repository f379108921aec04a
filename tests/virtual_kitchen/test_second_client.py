"""Every stream, codec, mode, download, command and channel, for a client that knows only the specification."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import av
import cv2
import numpy as np
import pytest
from second_client import MRC_VIDEO, Wire, ask, options, start_camera, stop_camera, video

pytestmark = pytest.mark.slow

CODECS = {0: "h264", 1: "h264", 2: "h264", 3: "hevc"}
PV = struct.pack("<HHB", 424, 240, 30)


@pytest.fixture(scope="module")
def host(start_kitchen: Callable[..., Any]) -> str:
    kitchen = start_kitchen("--seed", "5")
    return kitchen.host


def first_slices(codec: str, unit: bytes) -> list[int]:
    kinds, at = [], unit.find(b"\x00\x00\x01")
    while at >= 0:
        kinds.append(unit[at + 3] & 31 if codec == "h264" else unit[at + 3] >> 1 & 63)
        at = unit.find(b"\x00\x00\x01", at + 3)
    return kinds


def decode(codec: str, units: list[bytes]) -> list[Any]:
    """Decode as the official client does: H.264 loses its first six bytes, a delimiter flushes the parser."""
    decoder = av.CodecContext.create(codec, "r")
    frames = []
    for unit in units:
        data = unit[6:] if codec == "h264" else unit
        frames += decoder.decode(av.Packet(data))
        assert frames, "no B frames: one picture out for each unit in"
    return frames + decoder.decode(None)


@pytest.mark.parametrize("profile", [0, 1, 2, 3, 255])
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("port", [3800, 3803])
def test_grey_cameras(host: str, port: int, mode: int, profile: int) -> None:
    sent = bytes([mode, 1]) + video(profile) + options(gop=5, factor=0, shift=-125_000)
    with Wire(host, port, sent) as wire:
        packets = list(wire.packets(6, mode == 1))
    meta = [struct.unpack("<QQII", payload[-24:]) for _, payload, _ in packets]
    assert {(exposure, reserved) for _, exposure, _, reserved in meta} == {(5_990_000, 0)}
    if profile == 255:
        assert {len(payload) for _, payload, _ in packets} == {307_200 + 24}
        return
    units = [payload[:-24] for _, payload, _ in packets]
    frames = decode(CODECS[profile], units)
    assert [(f.width, f.height) for f in frames] == [(640, 480)] * 6
    if CODECS[profile] == "h264":
        assert all(unit[:5] == b"\x00\x00\x00\x01\x09" for unit in units)
    keys = {5} if CODECS[profile] == "h264" else set(range(16, 22))
    assert keys & set(first_slices(CODECS[profile], units[0]))


def test_the_stamp_shift_is_the_clients_choice(host: str) -> None:
    with Wire(host, 3800, b"\x01\x01" + video(255) + options(shift=-125_000)) as wire:
        right = wire.packet()
    with Wire(host, 3800, b"\x01\x01" + video(255) + options()) as wire:
        late = wire.packet()
    (right_ns,), (late_ns,) = (struct.unpack("<Q", p[1][-24:-16]) for p in (right, late))
    late_by = (late[0] - right[0]) - (late_ns - right_ns) / 100
    assert late_by == pytest.approx(125_000, abs=200)


@pytest.mark.parametrize("profile", [1, 3, 255])
@pytest.mark.parametrize("depth", [0, 1])
def test_near_depth(host: str, depth: int, profile: int) -> None:
    with Wire(host, 3804, bytes([1, 1, depth]) + video(profile, 15_000_000) + options(gop=5)) as wire:
        packets = list(wire.packets(3))
    for _, payload, pose in packets:
        size_z, size_ab = struct.unpack_from("<II", payload)
        assert 8 + size_z + size_ab + 8 == len(payload)
        assert (size_z > 0) == (depth == 1)
        assert struct.unpack("<16f", pose)[15] == 1.0
        if depth:
            blob = payload[8 : 8 + size_z]
            assert blob[0] == 0xCA
            assert blob[1] & 1
            assert struct.unpack_from("<HH", blob, 4) == (512, 512)
            assert 40 + sum(struct.unpack_from("<8I", blob, 8)[1::2]) == size_z
        if profile == 255:
            assert size_ab == (524_288 if depth else 1_048_576)
    if profile != 255:
        skip = [struct.unpack_from("<I", payload)[0] for _, payload, _ in packets]
        units = [p[1][8 + z : -8] for p, z in zip(packets, skip, strict=True)]
        assert len(decode(CODECS[profile], units)) == 3


def test_far_depth(host: str) -> None:
    with Wire(host, 3805, b"\x01\x01\x05\x00\x00\x00") as wire:
        packets = list(wire.packets(3))
    for _, payload, _ in packets:
        rgba = cv2.cvtColor(cv2.imdecode(np.frombuffer(payload[:-8], np.uint8), -1), cv2.COLOR_BGRA2RGBA)
        assert rgba.shape == (288, 320, 4)
        bgra = rgba[:, :, [2, 1, 0, 3]]
        depth, _ab = np.ascontiguousarray(bgra).view("<u2").reshape(2, 288, 320)
        assert 500 < np.median(depth[depth > 0]) < 4000
        assert depth[0, 0] == 0, "the corners are invalid"
    ticks = [struct.unpack("<Q", payload[-8:])[0] for _, payload, _ in packets]
    assert set(np.diff(ticks)) == {12_595_200}


@pytest.mark.parametrize("port", [3806, 3807, 3808])
@pytest.mark.parametrize("mode", [0, 1])
def test_inertial(host: str, port: int, mode: int) -> None:
    with Wire(host, port, bytes([mode])) as wire:
        for ticks, payload, pose in wire.packets(2, mode == 1):
            assert len(payload) == 32 * {3806: 93, 3807: 315, 3808: 11}[port]
            assert len(pose) == 64 * mode
            assert struct.unpack_from("<Q", payload, 8)[0] == ticks


@pytest.mark.parametrize("profile", [0, 2, 3, 255])
def test_front_camera_with_flags_in_one_connection(host: str, profile: int) -> None:
    sent = b"\x0d" + MRC_VIDEO + PV + b"\x01" + video(profile) + options(gop=5)
    with Wire(host, 3810, sent) as wire:
        packets = list(wire.packets(3))
        assert ask(host, b"\x03", 1) == b"\x01"
    assert {struct.unpack("<HH", p[1][-4:]) for p in packets} == {(424, 240)}
    if profile != 255:
        assert len(decode(CODECS[profile], [p[1][:-80] for p in packets])) == 3
    else:
        assert {len(p[1]) for p in packets} == {448 * 240 * 3 // 2 + 80}
    with Wire(host, 3810, b"\x01" + PV + b"\x01" + video(3) + options()) as closed:
        assert closed.rest() == b"", "flag 8 has closed the camera"


def test_front_camera_settings_are_read_back_and_forgotten(host: str) -> None:
    stream = b"\x00" + PV + b"\x01" + video(255) + options()

    def seen() -> tuple[int, int, int]:
        with Wire(host, 3810, stream) as wire:
            tail = wire.packet(False)[1][-80:]
        exposure, lens, kelvin = (
            struct.unpack_from(kind, tail, at)[0] for kind, at in (("<Q", 16), ("<I", 40), ("<I", 52))
        )
        return exposure, lens, kelvin

    start_camera(host)
    before = seen()
    orders = bytes.fromhex("0403000000020000000000000 0b80b000001000000".replace(" ", ""))
    orders += bytes.fromhex("08000000001a410000") + b"\x07" + struct.pack("<I", 120)
    assert ask(host, orders + b"\x00", 8)[:6] == b"\x01\x00\x00\x00\x25\x00"
    assert seen() == (166_660, 3000, 3000)
    stop_camera(host)
    start_camera(host)
    assert seen() == before
    stop_camera(host)


@pytest.mark.parametrize(
    ("sent", "size"), [(b"\x00\x29", 0), (b"\x03\x29", 0), (b"\xff\x29", 3072), (b"\xff\x2b", 15360)]
)
def test_microphone(host: str, sent: bytes, size: int) -> None:
    with Wire(host, 3811, sent) as wire:
        payloads = [payload for _, payload, _ in wire.packets(4)]
    if size:
        assert {len(payload) for payload in payloads} == {size}
    else:
        with av.open(io.BytesIO(b"".join(payloads)), format="aac") as container:
            assert next(container.decode(audio=0)).samples == 1024


@pytest.mark.parametrize("hz", [30, 60, 90])
def test_eyes(host: str, hz: int) -> None:
    with Wire(host, 3817, bytes([hz])) as wire:
        packets = list(wire.packets(hz // 3))
    assert {len(p[1]) for p in packets} == {92}
    step = np.median(np.diff([p[0] for p in packets]))
    assert 1e7 / step == pytest.approx(hz, rel=0.01)
    for _, payload, pose in packets:
        (valid,) = struct.unpack_from("<I", payload, 88)
        assert valid in (1, 15)
        assert struct.unpack("<16f", pose)[15] == 1.0
        assert (np.linalg.norm(struct.unpack_from("<3f", payload, 16)) > 0.9) == (valid == 15)


def test_extended_streams(host: str) -> None:
    audio = struct.pack("<Iff", 2, 1.0, 1.0)
    with Wire(host, 3818, audio + b"\x03\x29") as wire:
        assert wire.packet()[1][:2] == b"\xff\xf1"
    with Wire(host, 3818, struct.pack("<Iff", 3, 1.0, 1.0) + b"\x03\x29") as wire:
        listed = wire.rest()
    assert struct.unpack("<I", listed[:4])[0] == len(listed) - 4
    assert "Microphone" in listed[4:].decode("utf-16-le")
    with Wire(host, 3819, b"\x02") as wire:
        cameras = json.loads(wire.rest()[4:].decode("utf-16-le"))
    assert cameras[0]["SourceInfos"]
    with Wire(host, 3819, b"\x0d" + MRC_VIDEO + PV + b"\x01" + video(3) + options(gop=5)) as wire:
        payload = wire.packet()[1]
    assert payload[-80:-4] == bytes(76)
    assert struct.unpack("<HH", payload[-4:]) == (424, 240)
    with Wire(host, 3819, b"\x01" + PV + b"\x01" + video(3) + options(gop=5)) as wire:
        assert wire.rest() == b""
    for profile in (0, 1):
        depth = b"\x0d" + MRC_VIDEO + bytes([1, profile]) + options(media=0, mask=63)
        with Wire(host, 3821, depth) as wire:
            payload = wire.packet()[1]
        width, height = struct.unpack("<HH", payload[-4:])
        assert (width, height) == (320, 288)
        assert (payload[0] == 0xCA) if profile else (len(payload) == 2 * width * height + 4)
    with Wire(host, 3821, b"\x0d" + MRC_VIDEO + b"\x01\x01" + options(media=0xFFFFFFFF)) as wire:
        assert wire.rest() == b""


@pytest.mark.parametrize(
    ("port", "size"),
    [(3800, 4_915_280), (3801, 4_915_280), (3804, 4_194_392), (3805, 1_474_644), (3806, 64), (3807, 64)],
)
def test_downloads(host: str, port: int, size: int) -> None:
    with Wire(host, port, b"\x02") as wire:
        answer = wire.rest()
    assert len(answer) == size
    values = np.frombuffer(answer, "<f4")
    if port in (3800, 3801):
        plane = 480 * 640
        extrinsics = values[2 * plane : 2 * plane + 16].reshape(4, 4)
        assert np.linalg.det(extrinsics[:3, :3].astype(float)) == pytest.approx(1, abs=1e-5)
        fx, _, cx, _ = values[-4:]
        assert values[10] == pytest.approx((10 - cx) / fx, abs=1e-5)
    if port == 3804:
        assert values[2 * 512 * 512 + 16 : 2 * 512 * 512 + 18].tolist() == [1000.0, 1055.0]


def test_magnetometer_has_no_constants_and_the_camera_needs_to_be_on(host: str) -> None:
    with Wire(host, 3808, b"\x02") as wire:
        assert wire.rest() == b""
    start_camera(host)
    with Wire(host, 3810, b"\x02" + PV) as wire:
        assert len(wire.rest()) == 208
    stop_camera(host)
    with Wire(host, 3810, b"\x02" + PV) as wire:
        assert wire.rest() == b""


def test_questions_have_the_right_lengths(host: str) -> None:
    points = struct.pack("<4f", 319.5, 239.5, 0, 0)
    question = b"\x16" + struct.pack("<III", 3800, 0, 2) + points
    to_plane = struct.unpack("<4f", ask(host, question, 16))
    assert to_plane[:2] == pytest.approx((0, 0), abs=1e-6)
    back = ask(host, b"\x16" + struct.pack("<III4f", 3800, 1, 2, *to_plane), 16)
    assert struct.unpack("<4f", back) == pytest.approx((319.5, 239.5, 0, 0), abs=1e-3)
    outside = ask(host, b"\x16" + struct.pack("<III2f", 3800, 1, 1, 50, 50), 8)
    assert struct.unpack("<2f", outside) == (-1, -1)
    assert len(ask(host, b"\x17" + struct.pack("<I2Q", 2, 1, 2), 128)) == 128
    assert len(ask(host, b"\x00\x01\x03" + b"\x18" + bytes(4), 8 + 8 + 1 + 8)) == 25


def test_voice_and_message_channels(host: str) -> None:
    with Wire(host, 3815, bytes.fromhex("01000600fffe68006900")) as wire:
        for _ in range(2):
            wire.send(b"\x01")
            assert wire.exactly(4) == bytes(4), "no phrase is recognised"
            wire.send(b"\x01\x01")
            assert wire.exactly(8) == bytes(8)
            wire.send(b"\x00" + bytes.fromhex("01000600fffe68006900"))
    with Wire(host, 3816) as wire:
        for text in (b"hello", b"", b"x" * 70_000):
            wire.send(struct.pack("<II", 7, len(text)) + text)
            assert len(wire.exactly(4)) == 4
    with Wire(host, 3820) as wire:
        for _ in range(3):
            wire.send(b"\xff\xff\xff\xff")
            assert wire.exactly(8) == b"\xff\xff\xff\xff" + bytes(4)
            wire.send(struct.pack("<I", 1))


def test_twenty_reconnects_and_a_second_client_that_waits(host: str) -> None:
    last = 0
    for _ in range(20):
        with Wire(host, 3812) as wire:
            ticks, payload, _ = wire.packet()
        assert ticks > last
        assert len(payload) == 1936
        last = ticks
    with Wire(host, 3800, b"\x01\x01" + video(3) + options(gop=5)) as first:
        first.packet()
        second = Wire(host, 3800, b"\x00\x01" + video(1) + options(gop=5))
        for _ in range(3):
            first.packet()
    with second:
        unit = second.packet(False)[1]
    assert 5 in first_slices("h264", unit[:-24]), "a new client begins with a key frame"


@pytest.mark.parametrize(
    ("port", "sent"),
    [
        (3800, b"\x01\x00" + video(3) + options()),
        (3800, b"\x01\x01" + video(4) + options()),
        (3800, b"\x01\x01" + video(255, 0) + options()),
        (3800, b"\x03"),
        (3804, b"\x01\x01\x02" + video(3) + options()),
        (3805, b"\x01\x01\x07\x00\x00\x00"),
        (3805, b"\x01\x00\x05\x00\x00\x00"),
        (3817, b"\x2d"),
        (3818, struct.pack("<Iff", 0, 1, 1) + b"\x04\x29"),
    ],
)
def test_what_the_headset_rejects(host: str, port: int, sent: bytes) -> None:
    with Wire(host, port, sent) as wire:
        assert wire.rest() == b""
