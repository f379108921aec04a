"""The KLV reader with payloads built byte by byte, and with garbage."""

from __future__ import annotations

import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples

from kitchensync.sensors.errors import BadGpmf, SensorError
from kitchensync.sensors.gopro.files import telemetry
from kitchensync.sensors.gopro.files.inspect import describe_payloads
from kitchensync.sensors.gopro.files.telemetry import find_timing
from kitchensync.sensors.gopro.mp4 import gpmf
from kitchensync.sensors.gopro.mp4.gpmf import Klv, StreamPart


def klv(key: str, kind: str, size: int, repeat: int, data: bytes) -> bytes:
    """Return a KLV after the format's description: key, type, size, repeat (big-endian), data padded to 4."""
    assert len(data) == size * repeat
    head = key.encode() + (b"\0" if kind == "\0" else kind.encode()) + struct.pack(">BH", size, repeat)
    return head + data + b"\0" * (-len(data) % 4)


def nest(key: str, *inner: bytes) -> bytes:
    data = b"".join(inner)
    size = 1 if len(data) < 65536 else 4
    return klv(key, "\0", size, len(data) // size, data)


def text(key: str, value: str) -> bytes:
    return klv(key, "c", 1, len(value), value.encode("latin-1"))


def gyro_payload(
    count: int,
    total: int,
    stmp_us: int,
    values: np.ndarray | None = None,
    *extra: bytes,
    shut_us: int = 85_608,
    camera: str = "HERO11 Black",
) -> bytes:
    data = np.zeros((count, 3), ">i2") if values is None else values.astype(">i2")
    return nest(
        "DEVC",
        klv("DVID", "L", 4, 1, struct.pack(">I", 1)),
        text("DVNM", camera),
        nest(
            "STRM",
            klv("STMP", "J", 8, 1, struct.pack(">Q", stmp_us)),
            klv("TSMP", "L", 4, 1, struct.pack(">I", total)),
            text("SIUN", "rad/s"),
            klv("SCAL", "s", 2, 1, struct.pack(">h", 939)),
            *extra,
            klv("GYRO", "s", 6, count, data.tobytes()),
        ),
        nest(
            "STRM",
            klv("STMP", "J", 8, 1, struct.pack(">Q", shut_us)),
            klv("SHUT", "f", 4, 1, struct.pack(">f", 0.001)),
        ),
    )


@pytest.mark.parametrize(
    ("kind", "size", "raw", "expected"),
    [
        ("b", 1, b"\xff", [-1]),
        ("B", 2, b"\xff\x01", [255, 1]),
        ("s", 6, b"\x0f\x1e\x00\x02\xff\xff", [3870, 2, -1]),
        ("S", 2, b"\xff\xff", [65535]),
        ("l", 4, b"\xff\xff\xff\xfe", [-2]),
        ("L", 4, b"\xff\xff\xff\xff", [2**32 - 1]),
        ("f", 4, b"\x3f\x80\x00\x00", [1]),
        ("d", 8, b"\x3f\xf0" + bytes(6), [1]),
        ("j", 8, b"\xff" * 8, [-1]),
        ("J", 8, bytes(7) + b"\x09", [9]),
        ("q", 4, b"\x00\x01\x80\x00", [1.5]),
        ("Q", 8, b"\x00\x00\x00\x02\x40\x00\x00\x00", [2.25]),
        ("F", 4, b"SNOW", [np.nan]),
    ],
)
def test_every_number_type(kind: str, size: int, raw: bytes, expected: list[float]) -> None:
    (read,) = gpmf.read_klvs(klv("TEST", kind, size, 1, raw))
    np.testing.assert_array_equal(gpmf.numbers(read), [expected])


def test_complex_types_with_arrays_and_a_divisor_each() -> None:
    sample = struct.pack(">L2f4sB", 30, 1.5, -2.5, b"FACE", 8)
    payload = nest(
        "DEVC",
        text("DVNM", "x"),
        nest(
            "STRM",
            text("TYPE", "Lf[2]FB"),
            klv("SCAL", "s", 2, 5, struct.pack(">5h", 10, 1, 5, 1, 2)),
            klv("FACE", "?", 17, 2, sample * 2),
            klv("FACE", "?", 17, 0, b""),
        ),
    )
    (part,) = gpmf.read_streams(payload)
    assert part.count == 2
    np.testing.assert_array_equal(part.samples(), [[3, 1.5, -0.5, np.nan, 4]] * 2)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (b"GYRO", "cut short"),
        (b"GYROs\x06\x00\x02" + bytes(6), "claims 12 bytes, 6 remain"),
        (b"\xffYROs\x06\x00\x00", "not four letters"),
        (b"\0\0\0\0s\x06\x00\x00", "an empty key"),
        (nest("DEVC", nest("STRM", klv("GYRO", "?", 4, 1, bytes(4)))), "does not make 4 bytes"),
        (nest("DEVC", nest("STRM", klv("GYRO", "z", 4, 1, bytes(4)))), "unknown type"),
        (nest("DEVC", nest("STRM", klv("GYRO", "l", 6, 1, bytes(6)))), "samples of 6 bytes"),
        (nest("DEVC", nest("STRM", text("TYPE", "f[999]"), klv("X123", "?", 4, 1, bytes(4)))), "TYPE"),
    ],
)
def test_broken_bytes_are_reported_with_reason_and_position(broken: bytes, why: str) -> None:
    with pytest.raises(BadGpmf, match=why) as refused:
        _ = [part.samples() for part in gpmf.read_streams(broken)]
    assert "at byte" in str(refused.value)


def test_deep_nesting_is_refused() -> None:
    payload = b""
    for _ in range(20):
        payload = nest("DEVC", payload)
    with pytest.raises(BadGpmf, match="nested deeper than 8"):
        gpmf.read_streams(payload)


def test_a_bare_file_is_split_at_devices_and_padding_is_accepted() -> None:
    block = gyro_payload(2, 2, 100)
    assert [bytes(b) for b in gpmf.split_payloads(block * 3 + bytes(100))] == [block] * 3
    for wrong in (b"", bytes(64), text("DVNM", "x")):
        with pytest.raises(BadGpmf):
            gpmf.split_payloads(wrong)


MUTABLE = gyro_payload(5, 5, 100, None, text("ORIN", "ZXY")) + nest(
    "DEVC", nest("STRM", text("TYPE", "Lf[2]F"), klv("FACE", "?", 16, 2, bytes(32)))
)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, len(MUTABLE) - 1), st.integers(0, 255)), max_size=8), st.integers(0, 40)
)
@examples(2000)
def test_mutated_payloads_end_in_our_own_error(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(MUTABLE)
    for at, value in changes:
        data[at] = value
    with suppress(SensorError):
        parts = gpmf.read_streams(bytes(data[: len(data) - cut]))
        describe_payloads([len(data)], [parts])
        telemetry.imu_track([parts, parts], [(0.0, 1.0), (1.0, 1.0)], "GYRO")


@given(st.binary(max_size=400))
def test_any_bytes_end_in_our_own_error(data: bytes) -> None:
    with suppress(SensorError):
        describe_payloads([len(data)], [gpmf.read_streams(data)])


# --- times and axes ------------------------------------------------------------------------------


def track(payloads: list[bytes]) -> telemetry.ImuTrack:
    intervals = [(1.001 * i, 1.001) for i in range(len(payloads))]
    return telemetry.imu_track([gpmf.read_streams(payload) for payload in payloads], intervals, "GYRO")


def test_times_follow_the_stamps() -> None:
    """Sample k was taken at -2.273 ms + k / 199.25 Hz, as the stamps say; counts vary as on a camera."""
    rate, payloads, total = 199.25, [], 0
    for count in (200, 199, 200, 199, 120):
        stmp = round(83_335 + total / rate * 1e6)
        total += count
        payloads.append(gyro_payload(count, total, stmp))
    read = track(payloads)
    assert read.method == "stmp"
    assert read.rate_hz == pytest.approx(rate, abs=1e-4)
    np.testing.assert_allclose(read.t_s, -0.002273 + np.arange(total) / rate, atol=2e-6)


def test_a_lost_payload_leaves_a_gap() -> None:
    rate, payloads, total = 200.0, [], 0
    for i, count in enumerate((200, 200, 200, 200)):
        stmp = 85_608 + total * 5000
        total += count
        if i != 1:
            payloads.append(gyro_payload(count, total, stmp))
    read = track(payloads)
    expected = np.concatenate([np.arange(200), np.arange(400, 800)]) / rate
    np.testing.assert_allclose(read.t_s, expected, atol=1e-9)


def test_old_cameras_by_tick_and_by_payload_ends() -> None:
    def payload(count: int, total: int, *device: bytes) -> bytes:
        return nest(
            "DEVC",
            text("DVNM", "Camera"),
            *device,
            nest(
                "STRM",
                klv("TSMP", "L", 4, 1, struct.pack(">I", total)),
                klv("GYRO", "s", 6, count, bytes(6 * count)),
            ),
        )

    def tick(ms: int) -> bytes:
        return klv("TICK", "L", 4, 1, struct.pack(">I", ms))

    by_tick = track([payload(400, 400 * (i + 1), tick(119_000 + 1000 * i)) for i in range(4)])
    assert (by_tick.method, round(by_tick.rate_hz, 6)) == ("tick", 400.0)
    by_end = track([payload(n, total) for n, total in ((400, 400), (400, 800), (400, 1200), (17, 1217))])
    assert by_end.method == "payload_times"
    assert by_end.rate_hz == pytest.approx(400 / 1.001)
    assert by_end.t_s[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ([text("ORIN", "ZXY")], [2, 3, 1]),
        ([text("ORIN", "XzY")], [1, 3, -2]),
        ([text("ORIN", "YxZ")], [-2, 1, 3]),
        (
            [text("ORIO", "ZXY"), klv("MTRX", "f", 36, 1, struct.pack(">9f", 0, -1, 0, 1, 0, 0, 0, 0, 1))],
            [1, 3, -2],
        ),
        ([], [2, 3, 1]),
    ],
    ids=["hero11", "max", "hero7", "max by matrix", "unsaid"],
)
def test_axes_become_x_left_y_back_z_up(extra: list[bytes], expected: list[float]) -> None:
    stored = np.tile([939, 1878, 2817], (3, 1))
    read = track([gyro_payload(3, 3, 100, stored, *extra)])
    np.testing.assert_allclose(read.xyz, np.tile(expected, (3, 1)))
    assert read.unit == "rad/s"


@pytest.mark.parametrize(
    ("camera", "expected"),
    [("Camera", [2, 3, 1]), ("Fusion", [2, -1, 3]), ("Hero6 Black", [-2, 1, 3]), ("Hero7 Black", [-2, 1, 3])],
)
def test_old_cameras_without_named_axes_have_known_axes(camera: str, expected: list[float]) -> None:
    """Stored: HERO5 Z, X, Y; Fusion -Y, X, Z; HERO6 and HERO7 Y, -X, Z (GoPro's GPMF README)."""
    read = track([gyro_payload(3, 3, 100, np.tile([939, 1878, 2817], (3, 1)), camera=camera)])
    np.testing.assert_allclose(read.xyz, np.tile(expected, (3, 1)))


def test_a_file_without_samples_is_refused() -> None:
    with pytest.raises(BadGpmf, match="no GYRO samples"):
        track([nest("DEVC", text("DVNM", "x"))])


def test_rate_from_tick_and_devices_of_one_payload() -> None:
    def payload(i: int) -> bytes:
        own = nest(
            "DEVC",
            text("DVNM", "Camera"),
            klv("TICK", "L", 4, 1, struct.pack(">I", 1000 * i)),
            nest("STRM", klv("GYRO", "s", 6, 400, bytes(2400))),
        )
        other = nest("DEVC", text("DVNM", "Strap"), nest("STRM", klv("PULS", "B", 1, 2, b"\x40\x41")))
        return own + other

    described = describe_payloads([1, 1, 1], [gpmf.read_streams(payload(i)) for i in range(3)])
    assert described["streams"]["GYRO"]["rate_hz_from_tick"] == 400.0
    assert described["streams"]["Strap/PULS"]["first_scaled_stored_order"] == [64.0]
    assert "rate_hz_from_tick" not in described["streams"]["Strap/PULS"]


def test_a_stream_with_its_own_tick_is_timed_by_it() -> None:
    def payload(i: int) -> bytes:
        tick = [klv("TICK", "L", 4, 1, struct.pack(">I", ms)) for ms in (1000 * i, 990 * i)]
        stream = nest("STRM", tick[1], klv("GYRO", "s", 6, 30, bytes(180)))
        return nest("DEVC", text("DVNM", "Drone"), tick[0], stream)

    described = describe_payloads([1, 1, 1], [gpmf.read_streams(payload(i)) for i in range(3)])
    assert described["streams"]["GYRO"]["rate_hz_from_tick"] == round(60 / 1.98, 3)


def test_payloads_without_samples_keep_first_and_last_values() -> None:
    samples = np.array([[939, 1878, 2817], [1, 2, 3]])
    payloads = [
        gyro_payload(0, 0, 100),
        gyro_payload(2, 2, 200, samples),
        gyro_payload(2, 4, 300, samples * 2),
        gyro_payload(0, 4, 400),
    ]
    described = describe_payloads([1] * 4, [gpmf.read_streams(payload) for payload in payloads])
    gyro = described["streams"]["GYRO"]
    assert gyro["first_scaled_stored_order"] == [1.0, 2.0, 3.0]
    assert gyro["last_scaled_stored_order"] == pytest.approx([2 / 939, 4 / 939, 6 / 939], abs=1e-6)
    assert (gyro["samples"], gyro["counts_first3"], gyro["count_last"]) == (4, [0, 2, 2], 0)


def test_one_wrong_stamp_does_not_tilt_the_rate() -> None:
    """One wrong bit of a late timestamp in 15 minutes would shift plain least squares by 52 ms at the end."""

    def part(us: int) -> StreamPart:
        stamp = Klv("STMP", "J", 8, 1, memoryview(struct.pack(">Q", us)), 0)
        return StreamPart(
            "Camera", "01", "GYRO", [Klv("GYRO", "s", 6, 200, memoryview(b""), 0)], {"STMP": stamp}
        )

    stamps = [round(200 * k / 199.25 * 1e6) for k in range(900)]
    stamps[870] ^= 1 << 23
    payloads = [[part(us)] for us in stamps]
    timing = find_timing(
        [(k, parts[0]) for k, parts in enumerate(payloads)], payloads, [(1.0 * k, 1.0) for k in range(900)]
    )
    assert timing.rate_hz == pytest.approx(199.25, rel=1e-8)
