"""Chapters are read as one video and joined to one file, with every frame and sample at its true time."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from camera_films import Synthesis
from click.testing import CliRunner
from films import film

from kitchensync.cli import main
from kitchensync.sensors.errors import CannotJoin, UnreadableMedia, UnsafeName
from kitchensync.sensors.gopro.files.card_names import card_name, check_safe, group_clips, proxy_name
from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.sensors.gopro.files.inspect import inspect
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.join import join
from kitchensync.virtual_kitchen.gopro.files.sensors import Instruments

FRAMES = 200


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    return film(tmp_path_factory.mktemp("card") / "100GOPRO", FRAMES)


def video_samples(path: Path) -> list[bytes]:
    with av.open(str(path)) as container:
        return [bytes(packet) for packet in container.demux(video=0) if packet.size]


def gyro_of(payloads: list[bytes]) -> np.ndarray:
    """Return the stored gyroscope samples, read by independent code."""
    blocks = [data for payload in payloads for key, data in walk(payload) if key == b"GYRO"]
    return np.frombuffer(b"".join(blocks), ">i2").reshape(-1, 3)


def walk(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(data) and data[at : at + 4] != bytes(4):
        key, kind, size, count = struct.unpack_from(">4sBBH", data, at)
        inner = data[at + 8 : at + 8 + size * count]
        if kind == 0:
            yield from walk(inner)
        else:
            yield key, inner
        at += 8 + (size * count + 3) // 4 * 4


def test_chapters_are_one_video(source: Synthesis) -> None:
    assert [chapter.frames for chapter in source.chapters] == [90, 90, 20]
    take = open_clip(source.chapters[0].path)
    assert take.frame_times_s.tolist() == [k * 1001 / 30000 for k in range(FRAMES)]
    assert take.duration_s == Fraction(FRAMES * 1001, 30000)
    assert take.lost_before_s == [0.0, 0.0, 0.0]
    assert tuple(take.locate(180)) == (2, 0)
    assert [payload.data for payload in take.payloads] == source.payloads
    gyro = take.gyroscope()
    np.testing.assert_array_equal(gyro.xyz[:, 2], np.float32(gyro_of(source.payloads)[:, 0] / 939))
    assert gyro.t_s[0] == pytest.approx(-0.002273, abs=2e-6)
    np.testing.assert_allclose(np.diff(gyro.t_s), 1 / gyro.rate_hz, rtol=1e-9)


def test_frames_by_time_across_chapters(source: Synthesis) -> None:
    take = open_clip(source.chapters[0].path)
    with av.open(str(source.chapters[1].path)) as container:
        second = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    with take.pictures() as pictures:
        for frame in (95, 90, 91, 179):
            picture = pictures.at((frame + 0.5) * 1001 / 30000)
            assert (picture.number, picture.pts) == (frame, (frame - 90) * 3003)
            assert picture.time_s == frame * 1001 / 30000
            np.testing.assert_array_equal(picture.rgb, second[frame - 90])
        with pytest.raises(UnreadableMedia, match="no frame 200"):
            pictures.number(200)


def test_a_joined_file_has_every_sample(source: Synthesis, tmp_path: Path) -> None:
    paths = [chapter.path for chapter in source.chapters]
    joined = join(paths, tmp_path / "one.MP4")
    assert joined.frames == FRAMES
    media = open_media(joined.path)
    assert media.frame_times_s.tolist() == [k * 1001 / 30000 for k in range(FRAMES)]
    assert video_samples(joined.path) == [source.pictures[k % len(source.pictures)] for k in range(FRAMES)]
    assert [payload.data for payload in media.payloads] == source.payloads
    first = open_media(paths[0])
    for name in ("tmcd_frames", "creation_time", "serial", "camera_model", "firmware", "handlers"):
        assert getattr(media, name) == getattr(first, name), name
    np.testing.assert_allclose(media.gyroscope().t_s, open_clip(paths[0]).gyroscope().t_s, atol=1e-9)
    starts = [payload.start_s for payload in media.payloads]
    np.testing.assert_allclose(starts, np.arange(len(starts)) * 1.001, atol=0.0011)
    with av.open(str(joined.path)) as container:
        sound = [bytes(packet) for packet in container.demux(audio=0) if packet.size]
    assert sound == [source.sound[k % len(source.sound)] for k in range(len(sound))]
    with av.open(str(joined.path)) as container:
        assert sum(1 for _ in container.decode(video=0)) == FRAMES
    assert not list(tmp_path.glob("*.part"))


def test_a_stripped_file_has_neither_place_nor_serial(source: Synthesis, tmp_path: Path) -> None:
    assert "GPS5" in open_clip(source.chapters[0].path).stream_names
    arguments = [
        "join",
        str(source.chapters[0].path),
        "--out",
        str(tmp_path / "s.MP4"),
        "--strip-location",
        "--json",
    ]
    done = CliRunner().invoke(main, ["gopro", *arguments])
    assert done.exit_code == 0, done.output
    assert "GPS5" in json.loads(done.stdout)["stripped"]
    data = (tmp_path / "s.MP4").read_bytes()
    for text in (b"GPS", source.serial.encode(), source.serial[-8:].encode(), b"\xa9xyz"):
        assert text not in data
    media = open_media(tmp_path / "s.MP4")
    assert media.serial is None
    assert not [name for name in media.stream_names if name.startswith("GPS")]
    np.testing.assert_array_equal(media.gyroscope().xyz, open_clip(source.chapters[0].path).gyroscope().xyz)
    assert video_samples(tmp_path / "s.MP4") == [source.pictures[k % 30] for k in range(FRAMES)]


def test_chapters_of_different_recordings_are_refused(source: Synthesis, tmp_path: Path) -> None:
    other = film(tmp_path / "other", 60, None, seed=9)
    with pytest.raises(CannotJoin, match="another camera"):
        open_clip(source.chapters[0].path, other.chapters[0].path)
    with pytest.raises(CannotJoin, match="different cameras"):
        join([source.chapters[0].path, other.chapters[0].path], tmp_path / "x.MP4")
    holed = tmp_path / "holed"
    holed.mkdir()
    for chapter in (source.chapters[0], source.chapters[2]):
        (holed / chapter.path.name).write_bytes(chapter.path.read_bytes())
    with pytest.raises(CannotJoin, match="chapter 2 of recording 0001 is missing"):
        open_clip(holed / source.chapters[0].path.name)
    with pytest.raises(CannotJoin, match=r"timestamps are \+3.003 s"):
        open_clip(*sorted(holed.iterdir()))
    (tmp_path / "existing.MP4").write_bytes(b"precious")
    with pytest.raises(CannotJoin, match="never overwritten"):
        join([source.chapters[0].path], tmp_path / "existing.MP4")


def test_damaged_tables_name_their_box(source: Synthesis, tmp_path: Path) -> None:
    intact = source.chapters[0].path.read_bytes()
    for kind, change in ((b"stsz", 8), (b"stco", 4), (b"stsc", 4), (b"stts", 4)):
        damaged = bytearray(intact)
        at = intact.index(kind) + 4 + change
        damaged[at : at + 4] = b"\x7f\xff\xff\xff"
        (tmp_path / "d.MP4").write_bytes(damaged)
        with pytest.raises(UnreadableMedia, match=f"box {kind.decode()} of track 1"):
            join([tmp_path / "d.MP4"], tmp_path / "never.MP4")
    assert not (tmp_path / "never.MP4").exists()


def test_a_file_above_four_gigabytes(tmp_path: Path) -> None:
    """The data follow a sparse hole of 5 GB, so every position needs 64 bits."""
    source = film(tmp_path / "card", 90, None, hole_bytes=5 << 30)
    path = source.chapters[0].path
    assert path.stat().st_size > 5 << 30
    assert path.stat().st_blocks * 512 < 50 << 20
    described = inspect(path)
    assert described["payload_bytes"] == [len(payload) for payload in source.payloads]
    assert described["video"]["frames"] == 90
    assert [payload.data for payload in open_media(path).payloads] == source.payloads
    joined = join([path], tmp_path / "joined.MP4")
    assert video_samples(joined.path) == [source.pictures[k % 30] for k in range(90)]


def test_a_slip_of_the_encoder_is_reported(tmp_path: Path) -> None:
    source = film(tmp_path, 90, None, instruments=Instruments(slips=(40,)))
    media = open_media(source.chapters[0].path)
    skipped = media.samples("MSKP").values[:, 0]
    assert (skipped[:40] == 0).all()
    assert (skipped[40:] == -1).all()
    assert len(media.samples("SHUT").values) == 89


def test_names_on_cards() -> None:
    names = ["GX010002.MP4", "GX020001.MP4", "GX010001.MP4", "GOPR0003.MP4", "GP010003.MP4", "GXAB0004.MP4"]
    takes = group_clips(Path("100GOPRO") / name for name in [*names, "holiday.MP4", "GX010001.THM"])
    assert [(take.number, [path.name for path in take.paths], take.missing) for take in takes] == [
        ("0001", ["GX010001.MP4", "GX020001.MP4"], ()),
        ("0002", ["GX010002.MP4"], ()),
        ("0003", ["GOPR0003.MP4", "GP010003.MP4"], ()),
        ("0004", ["GXAB0004.MP4"], (1,)),
    ]
    assert proxy_name("GX020001.MP4") == "GL020001.LRV"
    assert card_name("IMG_0001.JPG") is None


NAMED_BY_LABS = {
    "CAM2GX010117.MP4": ("GX", 1, "0117"),
    "CAM2GX020117.MP4": ("GX", 2, "0117"),
    "CamA-240404101112-GX010206.MP4": ("GX", 1, "0206"),
    "CamA-240404101112-GX020206.MP4": ("GX", 2, "0206"),
    "CamB-240404101112-GX010206.MP4": ("GX", 1, "0206"),
    "GoPro13_2025-06-14_09.27.44_GX010093.MP4": ("GX", 1, "0093"),
    "PARIS_GH011234.MP4": ("GH", 1, "1234"),
    "CAM_GOPR0007.MP4": ("GP", 1, "0007"),
    "CAM_GP010007.MP4": ("GP", 2, "0007"),
}
"""Names by GoPro Labs, with letters, chapter and number at the end."""


@pytest.mark.parametrize("name", NAMED_BY_LABS)
def test_prefixes_of_names_are_kept_and_otherwise_ignored(name: str) -> None:
    parts = card_name(name)
    assert parts is not None
    assert (parts.letters, parts.chapter, parts.number) == NAMED_BY_LABS[name]
    assert parts.name == name
    check_safe("100GOPRO", name)


def test_clips_of_cameras_with_other_prefixes_are_other_clips() -> None:
    clips = group_clips(Path("100GOPRO") / name for name in reversed(NAMED_BY_LABS))
    assert sorted([path.name for path in clip.paths] for clip in clips) == [
        ["CAM2GX010117.MP4", "CAM2GX020117.MP4"],
        ["CAM_GOPR0007.MP4", "CAM_GP010007.MP4"],
        ["CamA-240404101112-GX010206.MP4", "CamA-240404101112-GX020206.MP4"],
        ["CamB-240404101112-GX010206.MP4"],
        ["GoPro13_2025-06-14_09.27.44_GX010093.MP4"],
        ["PARIS_GH011234.MP4"],
    ]
    assert proxy_name("CamA-240404101112-GX020206.MP4") == "CamA-240404101112-GL020206.LRV"


@pytest.mark.parametrize("name", ["._GX010093.MP4", "GX0100931.MP4", "IMG_0001.MP4", "holiday.MP4"])
def test_other_names_are_not_those_of_cameras(name: str) -> None:
    assert card_name(name) is None


@pytest.mark.parametrize(
    "name", ["../GX010001.MP4", "a/GX010001.MP4", "..GX010001.MP4", "-GX010001.MP4", "a..b.MP4"]
)
def test_a_name_with_a_path_is_refused(name: str) -> None:
    with pytest.raises(UnsafeName):
        check_safe("100GOPRO", name)
