"""Pictures that stand beside each other: every frame carries its own time as a bar, so a wrong one is seen."""

from __future__ import annotations

import base64
from fractions import Fraction

import cv2
import numpy as np
import pytest
from made_videos import video_units, write_video

from kitchensync.sensors.hololens.streams import pv
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.manifest import write_json
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.report.cameras import ShownFile
from kitchensync.sync.report.pictures import PAIRS, key_frames, picture_strip
from kitchensync.sync.report.streams import ReadStream, ShownTime, read_clock
from kitchensync.sync.report.timeline import ShownSpan

OFFSET_S = 1.25  # camera media time 0 is this second of the recording
CAMERA_HZ = Fraction(30000, 1001)
SECONDS = 8.0
WIDTH, HEIGHT = 160, 96


def frame(recording_s: float) -> np.ndarray:
    """The world at a second of the recording: a white bar that runs across within two seconds."""
    columns = np.arange(WIDTH)
    bar = np.clip(6.0 - np.abs(columns - bar_at(recording_s)), 0.0, 1.0)
    return np.broadcast_to((20 + 200 * bar)[None, :, None], (HEIGHT, WIDTH, 3)).astype(np.uint8)


def bar_at(recording_s: float) -> float:
    return 10.0 + 140.0 * (recording_s % 2.0) / 2.0


def assert_shows(source: str, recording_s: float) -> None:
    """Find the bar in a picture of the page: it has to be where it was then, to a fifth of a frame's way."""
    coded = np.frombuffer(base64.b64decode(source.partition(",")[2]), np.uint8)
    grey = cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE).mean(axis=0)
    light = np.maximum(grey - 80.0, 0.0)
    columns = (np.arange(len(light)) + 0.5) * WIDTH / len(light) - 0.5
    assert (columns * light).sum() / light.sum() == pytest.approx(bar_at(recording_s), abs=0.5)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A camera file of 8 s with a key frame a second."""
    path = tmp_path_factory.mktemp("film") / "GX010001.MP4"
    shown = (frame(OFFSET_S + float(n / CAMERA_HZ)) for n in range(int(SECONDS * CAMERA_HZ)))
    write_video(path, shown, CAMERA_HZ, g="30", bf="0", crf="12", sc_threshold="0")
    return path


@pytest.fixture
def recording(desk, tmp_path):
    """A recording whose front camera ran from 0 to 10 s, with a hole from 5.0 to 5.9 s."""
    path = desk.make_recording(tmp_path / "take-1", {"hololens/pv": []})
    write_json(
        path / "recording.json",
        desk.manifest({"hololens/pv": 30.0}),
    )
    units = video_units((frame(n / 30) for n in range(300)), key_every=30, crf="12")
    metadata = np.zeros((), pv.METADATA)
    rows = [(n / 30, pv.encode(unit, metadata)) for n, unit in enumerate(units)]
    kept = [(at_s, data) for at_s, data in rows if not 5.0 <= at_s < 5.9]
    packets = [
        Packet(n, 1, desk.ticks(at_s), desk.host_ns(at_s), 1, data, b"\0" * 64)
        for n, (at_s, data) in enumerate(kept)
    ]
    desk.store(path, "hololens/pv", packets)
    return path


@pytest.fixture
def world(desk, recording, film):
    """What the strip is made of: the headset's stream and clock, the aligned camera file, the shown time."""
    stream = ReadStream(
        recording, "hololens/pv", {"device": "hololens", "nominal_hz": 30.0, "format": {"codec": "h264"}}
    )
    clock = read_clock(recording, "hololens", [stream])
    clock_map = ClockMap(desk.ticks(0.0), 0.0, (OFFSET_S, 0.0), (0.0, SECONDS))
    camera = ShownFile(
        device="gopro",
        path=film,
        bytes=1,
        seconds=SECONDS,
        frames=239,
        clock_map=clock_map,
        start_host_ns=desk.host_ns(OFFSET_S),
        end_host_ns=desk.host_ns(OFFSET_S + SECONDS),
    )
    return stream, clock, camera, ShownSpan(ShownTime(None, desk.host_ns(0.0)), 0.0, 10.0)


def test_matched_pictures_show_the_same_moment(world):
    stream, clock, camera, span = world
    strip = picture_strip(stream, clock, [camera], span)
    assert strip.matched
    assert 5 <= len(strip.pairs) <= PAIRS
    shown = [pair for pair in strip.pairs if pair.headset.source]
    for pair in shown:
        assert pair.at_s == pytest.approx(OFFSET_S + pair.camera_s, abs=1e-6)
        assert_shows(pair.camera.source, pair.at_s)
        assert_shows(pair.headset.source, pair.at_s + pair.dt_ms / 1e3)
        assert abs(pair.dt_ms) <= 1000 / 30 / 2 + 0.1
    assert strip.pairs[-1].at_s - strip.pairs[0].at_s > 5


def test_a_picture_is_not_matched_across_a_hole(world):
    stream, clock, camera, span = world
    inside = [pair for pair in picture_strip(stream, clock, [camera], span).pairs if 5.1 < pair.at_s < 5.8]
    assert inside
    assert all(pair.headset.problem == "no picture within 100 ms" for pair in inside)
    assert all(pair.dt_ms is None for pair in inside)


def test_a_picture_after_a_lost_key_frame_is_not_invented(world, recording, desk):
    from kitchensync.sync.report.pictures import decode_row

    stream = world[0]
    assert decode_row(stream, 0) is not None
    assert decode_row(stream, 29) is not None
    with_hole = int(np.searchsorted(stream.ticks, desk.ticks(5.95)))
    stream.index["seq"][with_hole:] += 27
    assert decode_row(stream, with_hole) is None


def test_only_key_frames_of_the_camera_are_taken_and_each_once(film):
    found = list(key_frames(film, [0.0, 0.5, 1.2, 1.9, 7.9]))
    times = [at_s for at_s, _ in found]
    assert times == pytest.approx([0.0, 30 * 1001 / 30000, 7 * 30 * 1001 / 30000])
    assert [rgb.shape for _, rgb in found] == [(192, 320, 3)] * 3


def test_one_camera_alone_is_shown_alone(world):
    stream, clock, camera, span = world
    alone = picture_strip(stream, clock, [], span)
    assert len(alone.pairs) == PAIRS
    assert all(pair.camera is None for pair in alone.pairs)
    camera_only = picture_strip(None, None, [camera], span)
    assert camera_only.pairs
    assert all(pair.headset is None for pair in camera_only.pairs)
    assert picture_strip(None, None, [], span).pairs == []


@pytest.mark.promise("One page to judge a recording by")
@pytest.mark.slow
def test_the_page_shows_the_pictures(recording, film, desk, report_of):
    (recording / "gopro").mkdir()
    (recording / "gopro" / "GX010001.MP4").write_bytes(film.read_bytes())
    manifest = desk.manifest({"hololens/pv": 30.0})
    manifest["devices"]["gopro"] = {"kind": "gopro"}
    manifest["streams"]["hololens/pv"]["format"] = {"codec": "h264", "width": WIDTH, "height": HEIGHT}
    write_json(recording / "recording.json", manifest)
    body = {
        "schema": "alignment/1",
        "source": "gopro/GX010001.MP4",
        "status": "aligned",
        "reasons": [],
        "warnings": [],
        "epoch_hl2_qpc": desk.ticks(0.0),
        "map": ClockMap(desk.ticks(0.0), 0.0, (OFFSET_S, 2e-5), (0.0, SECONDS)).as_object(),
        "inputs": [{"path": "gopro/GX010001.MP4"}],
    }
    (recording / "sync" / "alignment").mkdir(parents=True)
    write_json(recording / "sync" / "alignment" / "gopro.json", body)
    page = report_of(recording)
    pictures = [attributes for tag, attributes in page.elements if tag == "img"]
    assert len(pictures) >= 10
    assert all(a["src"].startswith("data:image/jpeg;base64,") and a["alt"] for a in pictures)
    (bar,) = [s for s in page.lanes()["gopro/GX010001.MP4"] if s.get("class") == "camera"]
    assert float(bar["x"].rstrip("%")) == pytest.approx(100 * OFFSET_S / (1.01 * 299 / 30), abs=0.05)
    assert "at 0:01.2 of the recording: 1.2500 s after tick" in page.text or "at 0:01.3" in page.text
    assert "Matched pictures" in page.text
