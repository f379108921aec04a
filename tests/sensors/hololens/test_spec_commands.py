"""The byte examples of commands, calibration requests, extended streams and message channels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples

from kitchensync.sensors.errors import BadPacket, NoConstants, UnsupportedFormat
from kitchensync.sensors.hololens import calibration, commands, wire, zdepth
from kitchensync.sensors.hololens.catalogue import DEFAULT_SET, STREAMS, forbidden_together
from kitchensync.sensors.hololens.constants import Command, DepthProfile, MapDirection, TimeSource
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.streams import (
    depth_longthrow,
    extended_audio,
    extended_depth,
    extended_video,
    eye_tracking,
)

RAY = "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 80 bf"


def hexed(text: str) -> bytes:
    return bytes.fromhex(text.replace("|", ""))


@pytest.mark.parametrize(
    ("command", "example"),
    [
        (
            commands.focus(3, value_mm=3000),
            "04 03 00 00 00 02 00 00 00 00 00 00 00 b8 0b 00 00 01 00 00 00",
        ),
        (commands.exposure(0, 16666), "08 00 00 00 00 1a 41 00 00"),
        (commands.current_time(TimeSource.UTC_FILETIME), "18 01 00 00 00"),
        (
            commands.map_points(3800, MapDirection.PIXEL_TO_UNIT_PLANE, np.array([[319.5, 239.5]])),
            "16 d8 0e 00 00 00 00 00 00 01 00 00 00 00 c0 9f 43 00 80 6f 43",
        ),
        (commands.rig_poses([123456789012]), "17 01 00 00 00 14 1a 99 be 1c 00 00 00"),
        (commands.loop_control(3800, True), "22 d8 0e 00 00 01 00 00 00"),
        (calibration.question(STREAMS["pv"], Profile(pv_width=1920, pv_height=1080)), "02 80 07 38 04 1e"),
        (calibration.question(STREAMS["depth_ahat"], Profile()), "02"),
        (STREAMS["depth_longthrow"].configure(Profile()), "01 01 05 00 00 00"),
        (STREAMS["eye_tracking"].configure(Profile(eye_tracking_hz=90)), "5a"),
        (STREAMS["extended_audio"].configure(Profile()), "02 00 00 00 00 00 80 3f 00 00 80 3f 03 29"),
        (
            extended_depth.configuration(DepthProfile.ZDEPTH, 0xFFFFFFFF),
            "01 01 01 02 fb ff ff ff ff ff ff ff ff ff ff ff 00 00 00 00 "
            "fc ff ff ff ff ff ff ff 3f 00 00 00 00 00 00 00",
        ),
        (STREAMS["microphone"].configure(Profile(microphone="array")), "ff 2b"),
    ],
)
def test_bytes_to_send(command: bytes, example: str) -> None:
    assert command == hexed(example)


def test_extended_streams_open_their_subsystem_in_the_same_connection() -> None:
    video = STREAMS["extended_video"].configure(Profile(extended_video_source=2))
    assert video[0] == 13
    assert video[1:28] == wire.mrc_video(2.0)
    assert video[28:33] == bytes([0x80, 0x02, 0x68, 0x01, 30])
    depth = STREAMS["extended_depth"].configure(Profile())
    assert (depth[0], depth[28:30]) == (13, b"\x01\x01")


def test_longthrow_tail_and_png() -> None:
    rng = np.random.default_rng(3)
    depth, ab = rng.integers(0, 4000, (2, 288, 320)).astype(np.uint16)
    png = depth_longthrow.pack(depth, ab)
    payload = depth_longthrow.encode(png, 12_595_200)
    assert payload[-8:] == hexed("00 30 c0 00 00 00 00 00")
    packet = depth_longthrow.decode(payload)
    assert (packet.sensor_ticks, bytes(packet.png)) == (12_595_200, png)
    back = depth_longthrow.images(packet.png)
    np.testing.assert_array_equal(back[0], depth)
    np.testing.assert_array_equal(back[1], ab)
    for wrong in (b"", payload[1:], png[:100] + bytes(8)):
        with pytest.raises(BadPacket):
            depth_longthrow.images(depth_longthrow.decode(wrong).png)


def test_longthrow_channel_order_is_as_specified() -> None:
    import cv2

    depth = np.zeros((288, 320), np.uint16)
    depth[0, :2] = 0x0201, 0x0403
    rgba = cv2.cvtColor(
        cv2.imdecode(np.frombuffer(depth_longthrow.pack(depth, depth * 0), np.uint8), -1), cv2.COLOR_BGRA2RGBA
    )
    assert rgba[0, 0].tolist() == [3, 2, 1, 4], "B = a low, G = a high, R = b low, A = b high"


def test_eye_tracking_example() -> None:
    frame = hexed("14 1a 99 be 1c 00 00 00 5c 00 00 0000 00 00 00" + RAY * 3 + "00" * 12 + "0f 00 00 00")
    ticks, payload, pose = wire.split_frame(frame + bytes(64), 64)
    record = eye_tracking.decode(payload)
    assert (ticks, len(pose)) == (123456789012, 64)
    assert record["valid"] == 15 == sum((1, 2, 4, 8))
    for ray in ("combined", "left", "right"):
        assert record[ray]["direction"].tolist() == [0, 0, -1]
    assert eye_tracking.encode(record) == bytes(payload)
    assert (eye_tracking.CALIBRATION, eye_tracking.VERGENCE) == (1, 64)
    with pytest.raises(BadPacket):
        eye_tracking.decode(payload[1:])


def test_extended_depth_tail() -> None:
    payload = extended_depth.encode(bytes(640 * 360 * 2), 640, 360)
    assert payload[-4:] == hexed("80 02 68 01")
    packet = extended_depth.decode(payload)
    assert extended_depth.raw_depth(packet).shape == (360, 640)
    with pytest.raises(BadPacket):
        extended_depth.raw_depth(extended_depth.decode(payload[1:]))


def test_zdepth_header() -> None:
    blob = zdepth.HEADER.pack(0xCA, 1, 7, 512, 512, 9, 1, 9, 2, 9, 3, 9, 4) + bytes(10)
    head = zdepth.header(blob)
    assert (head.is_key_frame, head.frame_number, head.width, head.compressed) == (True, 7, 512, (1, 2, 3, 4))
    for wrong in (blob[:-1], b"\xcb" + blob[1:], blob[:39], b""):
        with pytest.raises(BadPacket):
            zdepth.header(wrong)
    with pytest.raises(BadPacket, match="no decoder"):
        zdepth.depth(blob)
    zdepth.use_decoder(lambda _: np.ones((512, 512), np.uint16))
    try:
        assert zdepth.depth(blob).all()
    finally:
        zdepth.use_decoder(None)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("vlc_leftfront", 4_915_280),
        ("depth_ahat", 4_194_392),
        ("depth_longthrow", 1_474_644),
        ("gyroscope", 64),
        ("accelerometer", 64),
        ("pv", 208),
    ],
)
def test_calibration_answers(name: str, size: int) -> None:
    assert STREAMS[name].constants_bytes == size
    numbers = np.arange(size // 4, dtype="<f4")
    parsed = calibration.parse(STREAMS[name], numbers.tobytes())
    joined = np.concatenate([np.ravel(constant.values) for constant in parsed])
    np.testing.assert_array_equal(joined, numbers)
    with pytest.raises(NoConstants):
        calibration.parse(STREAMS[name], numbers.tobytes()[:-4])


def test_device_lists() -> None:
    text = "[{}]"
    answer = np.uint32(8).tobytes() + text.encode("utf-16-le")
    assert calibration.parse(STREAMS["extended_video"], answer)[0].values == text
    assert extended_audio.LIST_DEVICES[:4] == b"\x03\x00\x00\x00"
    assert extended_video.LIST_DEVICES == b"\x02"
    with pytest.raises(NoConstants):
        calibration.parse(STREAMS["extended_video"], answer[:-1])


def test_lengths_of_commands_are_as_specified() -> None:
    lengths = {
        commands.switch(Command.PV_MARKER, True): 5,
        commands.number(Command.PV_HDR, 1): 5,
        commands.before_streams([3800]): 5 + 5 + 9,
        commands.camera_orders(Profile()): 0,
        commands.camera_orders(Profile(pv_focus_mm=500, pv_exposure_us=8000, pv_white_balance_k=4600)): 40,
    }
    assert {command: len(command) for command in lengths} == lengths


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: commands.focus(3, value_mm=100),
        lambda: commands.exposure(0, 99),
        lambda: commands.number(Command.PV_WHITE_BALANCE_VALUE, 91),
        lambda: commands.number(Command.PV_SCENE_MODE, 1),
    ],
)
def test_values_that_close_the_connection_are_refused(wrong: object) -> None:
    with pytest.raises(UnsupportedFormat, match="choose one of"):
        wrong()  # type: ignore[operator]


def test_near_and_far_depth_are_forbidden_together() -> None:
    assert forbidden_together(list(DEFAULT_SET)) is None
    assert forbidden_together(["depth_longthrow", "pv", "depth_ahat"]) == ("depth_ahat", "depth_longthrow")


@given(st.binary(min_size=92, max_size=92))
def test_eye_tracking_round_trip(raw: bytes) -> None:
    assert eye_tracking.encode(eye_tracking.decode(raw)) == raw


@given(st.binary(max_size=200), st.integers(0, 2**64 - 1))
def test_longthrow_round_trip(rest: bytes, ticks: int) -> None:
    png = b"\x89PNG\r\n\x1a\n" + rest
    packet = depth_longthrow.decode(depth_longthrow.encode(png, ticks))
    assert (bytes(packet.png), packet.sensor_ticks) == (png, ticks)


@given(st.binary(min_size=1, max_size=200), st.integers(0, 65535), st.integers(0, 65535))
def test_extended_depth_round_trip(image: bytes, width: int, height: int) -> None:
    packet = extended_depth.decode(extended_depth.encode(image, width, height))
    assert (bytes(packet.image), packet.width, packet.height) == (image, width, height)


@given(st.binary(max_size=300))
@examples(150)
def test_garbage_ends_in_our_own_error(garbage: bytes) -> None:
    for decode in (
        depth_longthrow.decode,
        depth_longthrow.images,
        eye_tracking.decode,
        extended_depth.decode,
        zdepth.header,
    ):
        try:
            decode(garbage)
        except BadPacket as error:
            assert "\n" not in str(error)  # noqa: PT017 (either outcome is right, a third is not)


def test_every_stream_has_a_module() -> None:
    import importlib

    for name, spec in STREAMS.items():
        module = importlib.import_module(spec.module)
        assert module.__name__.rpartition(".")[2] == ("vlc" if name.startswith("vlc_") else name)
        assert spec in (module.STREAMS if name.startswith("vlc_") else (module.STREAM,))
        assert callable(spec.encode)
    assert len({spec.port for spec in STREAMS.values()}) == len(STREAMS)
