"""Every byte example of the wire specification."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from kitchensync.sensors.errors import BadPacket, UnknownSensorStream, UnsupportedFormat
from kitchensync.sensors.hololens import commands, encoding, remote, wire
from kitchensync.sensors.hololens.catalogue import DEFAULT_SET, STREAMS, headset_stream
from kitchensync.sensors.hololens.constants import TimeSource, VideoProfile
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.streams import (
    accelerometer,
    depth_ahat,
    gyroscope,
    magnetometer,
    microphone,
    pv,
    spatial_input,
    vlc,
)

RAY = "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 80 bf"


def hexed(text: str) -> bytes:
    return bytes.fromhex(text.replace("|", ""))


def test_header() -> None:
    example = hexed("14 1a 99 be 1c 00 00 00 a0 0b 00 00")
    assert wire.HEADER.unpack(example) == (123456789012, 2976)
    ticks, payload, pose = wire.split_frame(example + b"\x07" * 2976 + b"\x01" * 64, 64)
    assert (ticks, len(payload), bytes(pose)) == (123456789012, 2976, b"\x01" * 64)
    assert wire.join_frame(123456789012, bytes(payload), bytes(pose))[:12] == example


def test_split_frame_refuses_a_wrong_length() -> None:
    with pytest.raises(BadPacket):
        wire.split_frame(hexed("14 1a 99 be 1c 00 00 00 a0 0b 00 00") + b"\x00" * 2975, 0)


def test_pose() -> None:
    example = hexed(
        "00 00 80 3f 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
        "00 00 00 00 80 3f 00 00 00 00 00 00 00 00 00 00 00 00"
        "00 00 00 00 00 00 80 3f 00 00 00 00 00 00 00 3f 00 00 a0 3f 00 00 00 c0 00 00 80 3f"
    )
    expected = np.eye(4, dtype=np.float32)
    expected[3, :3] = [0.5, 1.25, -2]
    pose = np.frombuffer(example, "<f4").reshape(4, 4)
    np.testing.assert_array_equal(pose, expected)
    assert wire.is_tracked(pose)
    assert not wire.is_tracked(np.zeros((4, 4), "<f4"))


def test_pv_configuration_1080p30() -> None:
    example = "01 80 07 38 04 1e 01 03 ff 00 f0 4b 00 01 0a 00 00 00 00 00 00 00 1e 00 00 00 00 00 00 00"
    assert pv.configuration(1920, 1080, 30, VideoProfile.H265_MAIN) == hexed(example)
    assert STREAMS["pv"].configure(Profile(pv_width=1920, pv_height=1080)) == hexed(example)


def test_pv_default_is_640x360_h265() -> None:
    sent = STREAMS["pv"].configure(Profile())
    fields = struct.unpack("<BHHBBBBIBQQ", sent)
    assert fields == (1, 640, 360, 30, 1, 3, 255, 552_960, 1, 10, 30)
    h264 = struct.unpack("<BHHBBBBIBQQ", STREAMS["pv"].configure(Profile(pv_codec="h264")))
    assert h264[5:8] == (1, 255, 1_105_920)


def test_vlc_configuration() -> None:
    example = (
        "01 01 03 ff 00 40 0b 00 03 | 0a 00 00 00 00 00 00 00 1e 00 00 00 00 00 00 00 | "
        "ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00 | fe ff ff ff ff ff ff ff b8 17 fe ff ff ff ff ff"
    )
    assert STREAMS["vlc_leftfront"].configure(Profile()) == hexed(example)


def test_ahat_configuration() -> None:
    example = "01 01 00 03 ff 60 66 e6 00 01 | 0a 00 00 00 00 00 00 00 2d 00 00 00 00 00 00 00"
    assert STREAMS["depth_ahat"].configure(Profile()) == hexed(example)
    wired = struct.unpack("<BBBBBIBQQ", STREAMS["depth_ahat"].configure(Profile(link="wired")))
    assert wired == (1, 1, 0, 255, 255, 2_264_924_160, 1, 10, 1)


@pytest.mark.parametrize(
    ("arguments", "shared", "expected"),
    [
        ((640, 480, 30, VideoProfile.H264_MAIN), False, 1_474_560),
        ((640, 480, 30, VideoProfile.H265_MAIN), False, 737_280),
        ((640, 480, 30, VideoProfile.RAW), False, 110_592_000),
        ((512, 512, 45, VideoProfile.H264_MAIN), True, 30_198_976),
        ((512, 512, 45, VideoProfile.H265_MAIN), True, 15_099_488),
        ((512, 512, 45, VideoProfile.RAW), True, 2_264_924_160),
        ((512, 512, 45, VideoProfile.H264_BASELINE), False, 1_887_436),
        ((512, 512, 45, VideoProfile.H265_MAIN), False, 943_718),
        ((1920, 1080, 30, VideoProfile.H264_HIGH), False, 9_953_280),
        ((1920, 1080, 30, VideoProfile.RAW), False, 746_496_000),
        ((760, 428, 30, VideoProfile.H264_MAIN), False, 1_561_344),
        ((760, 428, 30, VideoProfile.H265_MAIN), False, 780_672),
    ],
)
def test_default_bit_rates(arguments: tuple[int, int, int, int], shared: bool, expected: int) -> None:
    assert encoding.bits_per_second(*arguments, shared=shared) == expected


def test_short_configurations() -> None:
    assert STREAMS["microphone"].configure(Profile()) == hexed("03 29")
    for name in ("gyroscope", "accelerometer", "magnetometer"):
        assert STREAMS[name].configure(Profile()) == b"\x01"
    assert STREAMS["spatial_input"].configure(Profile()) == b""


def test_catalogue_is_complete() -> None:
    ports = {
        "pv": 3810,
        "depth_ahat": 3804,
        "accelerometer": 3806,
        "gyroscope": 3807,
        "magnetometer": 3808,
        "microphone": 3811,
        "spatial_input": 3812,
    }
    assert {name: STREAMS[name].port for name in DEFAULT_SET} == ports
    for module in (pv, depth_ahat, gyroscope, accelerometer, magnetometer, spatial_input, microphone):
        assert STREAMS[module.STREAM.name] is module.STREAM
        assert module.STREAM.module == module.__name__
    for name, spec in STREAMS.items():
        assert (spec.configure(Profile()) == b"") == (name == "spatial_input"), "the headset speaks first"
        assert spec.pose_bytes == (0 if name in ("spatial_input", "microphone", "extended_audio") else 64)
        assert 0 < spec.max_payload_bytes <= 16 * 2**20
        assert STREAMS[name].describe(Profile())["configuration"] == STREAMS[name].configure(Profile()).hex()
    with pytest.raises(UnknownSensorStream, match="gyroscope"):
        headset_stream("gyro")


def test_describe_lists_losses_of_a_profile() -> None:
    assert any("4 mm" in loss for loss in STREAMS["depth_ahat"].describe(Profile())["loses"])
    assert STREAMS["depth_ahat"].describe(Profile(link="wired"))["loses"] == []


@pytest.mark.parametrize(
    ("wrong", "offered"),
    [
        ({"pv_width": 641}, "1920x1080@30"),
        ({"pv_hz": 29}, "1920x1080@30"),
        ({"pv_codec": "av1"}, "'h265', 'h264' or 'raw'"),
        ({"link": "pigeon"}, "'wifi' or 'wired'"),
        ({"pv_focus_mm": 5}, "170 to 10000"),
        ({"microphone": "mp3"}, "'aac', 'pcm' or 'array'"),
        ({"eye_tracking_hz": 45}, "30, 60 or 90"),
    ],
    ids=str,
)
def test_a_format_that_is_not_offered_is_refused(wrong: dict[str, Any], offered: str) -> None:
    with pytest.raises((UnsupportedFormat, ValidationError), match=offered):
        Profile(**wrong)


def test_pv_start_and_stop() -> None:
    start = "07 00 01 00 00 00 00 00 66 66 66 3f 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00"
    assert hexed(start) == remote.START_PV
    assert hexed("0b") == remote.STOP_PV


def test_remote_time_command() -> None:
    assert commands.current_time(TimeSource.UTC_FILETIME) == hexed("18 01 00 00 00")
    assert commands.current_time(TimeSource.DEVICE_TICKS) == hexed("18 00 00 00 00")


PV_METADATA = (
    "00 50 b5 44 00 68 b5 44 00 20 6e 44 00 70 07 44 04 8b 02 00 00 00 00 00 01 00 00 00 00 00 00 00"
    "00 00 00 00 6e 00 00 00 61 08 00 00 03 00 00 00 90 01 00 00 f8 11 00 00 00 00 c0 3f 00 00 00 40"
    "00 00 80 3f 00 00 a0 3f 00 00 00 40 80 07 38 04"
)


def test_pv_metadata() -> None:
    packet = pv.decode(b"picture" + hexed(PV_METADATA))
    meta = packet.metadata
    assert bytes(packet.picture) == b"picture"
    assert meta["focal_length"].tolist() == [1450.5, 1451.25]
    assert meta["principal_point"].tolist() == [952.5, 541.75]
    assert meta["exposure_time"] == 166_660
    assert meta["exposure_compensation"].tolist() == [1, 0x6E00000000]
    assert meta["lens_position"] == 2145
    assert meta["focus_state"] == 3
    assert meta["iso_speed"] == 400
    assert meta["white_balance"] == 4600
    assert meta["iso_gains"].tolist() == [1.5, 2]
    assert meta["white_balance_gains"].tolist() == [1, 1.25, 2]
    assert (meta["width"], meta["height"]) == (1920, 1080)
    assert pv.encode(packet.picture, meta) == b"picture" + hexed(PV_METADATA)
    with pytest.raises(BadPacket):
        pv.decode(hexed(PV_METADATA))


def test_pv_raw_rows_are_padded() -> None:
    stride, height = 768, 428
    image = np.arange(stride * height * 3 // 2, dtype=np.uint32).astype(np.uint8)
    meta = np.zeros((), pv.METADATA)
    meta["width"], meta["height"] = 760, height
    picture = pv.raw_picture(pv.decode(pv.encode(image.tobytes(), meta)))
    np.testing.assert_array_equal(picture, image.reshape(-1, stride)[:, :760])


def test_vlc_metadata() -> None:
    tail = hexed("00 0a f4 ae 07 00 00 00 70 66 5b 00 00 00 00 00 18 00 00 00 00 00 00 00")
    packet = vlc.decode(b"x" + tail)
    assert packet.metadata.tolist() == (33_000_000_000, 5_990_000, 24, 0)
    assert vlc.encode(b"x", packet.metadata) == b"x" + tail


def test_ahat_minimal_packet() -> None:
    example = hexed(
        "14 1a 99 be 1c 00 00 00 16 00 00 00 00 00 00 00 06 "
        "00 00 00 00 00 00 01 09 10 ee 23 15 00 00 00 00 00"
    )
    ticks, payload, pose = wire.split_frame(example, 0)
    packet = depth_ahat.decode(payload)
    assert (ticks, len(pose)) == (123456789012, 0)
    assert (packet.size_z, packet.size_ab, packet.sensor_ticks) == (0, 6, 1_385_454)
    assert bytes(packet.image) == hexed("00 00 00 01 09 10")
    assert depth_ahat.encode(packet.image, packet.sensor_ticks) == bytes(payload)


def test_imu_samples() -> None:
    accel = hexed(
        "00 74 3b a4 0b 00 00 00 14 1a 99 be 1c 00 00 00 00 00 00 00 00 00 1d c1 00 00 80 3e 00 00 12 42"
    )
    sample = accelerometer.STREAM.decode(accel)[0]
    assert (sample["vinyl_ns"], sample["soc_ticks"]) == (50_000_000_000, 123456789012)
    assert sample["xyz"].tolist() == [0, -9.8125, 0.25]
    assert sample["temperature"] == 36.5
    mag = hexed(
        "00 74 3b a4 0b 00 00 00 14 1a 99 be 1c 00 00 00 00 00 e8 43 00 00 46 c3 00 80 f1 43 00 00 00 00"
    )
    assert magnetometer.STREAM.decode(mag)[0]["xyz"].tolist() == [464, -198, 483]
    assert accelerometer.STREAM.encode(accelerometer.STREAM.decode(accel)) == accel
    with pytest.raises(BadPacket):
        gyroscope.STREAM.decode(accel[:-1])


def test_adts_header() -> None:
    header = hexed("ff f1 4c 80 40 ff fc")
    frame = microphone.decode(header + bytes(512))
    assert (frame.object_type, frame.rate_hz, frame.channels, frame.samples) == (2, 48_000, 2, 1024)
    assert microphone.encode(bytes(512)) == header + bytes(512)
    for wrong in (header + bytes(511), b"\x00" * 100, b""):
        with pytest.raises(BadPacket):
            microphone.decode(wrong)


def test_spatial_input_start() -> None:
    start = hexed(
        "14 1a 99 be 1c 00 00 00 90 07 00 00 03 00 00 00 00 00 "
        "00 00 00 00 c0 3f 00 00 00 00 00 00 00 00 00 00 00 00"
        "00 00 80 bf 00 00 00 00 00 00 80 3f 00 00 00 00 00 00 "
        "00 00 00 00 c0 3f 00 00 00 00 00 00 00 00 00 00 00 00"
        "00 00 80 bf"
    )
    joint = hexed(
        "00 00 00 00 00 00 00 00 00 00 00 00 00 00 80 3f 00 00 "
        "80 3e 00 00 a0 3f 00 00 00 bf 00 00 00 3c 01 00 00 00"
    )
    ticks, payload, _ = wire.split_frame(start + joint * 52, 0)
    record = spatial_input.decode(payload)
    assert ticks == 123456789012
    assert record["valid"] == spatial_input.HEAD | spatial_input.EYE_RAY
    assert spatial_input.STREAM.flags is not None
    assert spatial_input.STREAM.flags.at == 0
    assert spatial_input.STREAM.flags.parts == {"head": 1, "gaze": 2, "left_hand": 4, "right_hand": 8}
    assert record["head_position"].tolist() == [0, 1.5, 0]
    assert record["head_forward"].tolist() == [0, 0, -1]
    assert record["head_up"].tolist() == [0, 1, 0]
    assert record["eye_origin"].tolist() == [0, 1.5, 0]
    assert record["eye_direction"].tolist() == [0, 0, -1]
    for hand in ("left_hand", "right_hand"):
        tip = record[hand][spatial_input.JOINTS.index("little_tip")]
        assert tip["orientation_xyzw"].tolist() == [0, 0, 0, 1]
        assert tip["position"].tolist() == [0.25, 1.25, -0.5]
        assert (tip["radius"], tip["accuracy"]) == (0.0078125, 1)
    assert len(spatial_input.JOINTS) == len(set(spatial_input.JOINTS)) == 26
    assert spatial_input.encode(record) == bytes(payload)
    assert spatial_input.DTYPE.fields is not None
    assert spatial_input.DTYPE.fields["right_hand"][1] == 1000
