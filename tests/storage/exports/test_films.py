"""Films that are written: picture k is picture k, at its time, whatever is damaged or missing before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from made_videos import SOUND_HZ, grey_planes, video_units, write_video
from numbered_pictures import luma_of, number_in
from small_recordings import seal_stream

from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.sensors.hololens.streams import depth_ahat, pv
from kitchensync.storage.exports.film import FilmWriter, made_of_film, write_small_film
from kitchensync.storage.exports.headset_film import write_headset_film
from kitchensync.storage.reading.headset_pictures import unbroken_depth
from kitchensync.storage.recording import StoredStream
from kitchensync.virtual_kitchen.world.frame_counter import draw_i420

pytestmark = pytest.mark.slow

WIDTH, HEIGHT = 640, 360
FPS = Fraction(30000, 1001)
DARK = 20


def numbered(number: int) -> np.ndarray:
    """A picture with its number on changing ground."""
    planes = grey_planes(128, WIDTH, HEIGHT)
    planes[:HEIGHT] = (np.add.outer(np.arange(HEIGHT), np.arange(WIDTH)) + 5 * number) % 200 + 30
    draw_i420(planes, number, HEIGHT)
    return planes


def film(path: Path, numbers: range, b_frames: int = 2) -> None:
    """A camera's file of numbered pictures with a tone."""
    silence = np.zeros(int(len(numbers) / FPS * SOUND_HZ))
    write_video(path, map(numbered, numbers), FPS, silence, g="20", bf=str(b_frames), crf="18")


def read(path: Path) -> list[tuple[Fraction, int | None, bool, int]]:
    """Time, number, whether it is a key picture, and brightness of every picture."""
    with av.open(str(path)) as source:
        return [
            (p.pts * p.time_base, number_in(luma_of(p)), bool(p.key_frame), int(luma_of(p).mean()))
            for p in source.decode(video=0)
        ]


def test_a_small_film_counts_on_through_chapters_at_a_constant_rate(tmp_path: Path) -> None:
    film(tmp_path / "GX010001.MP4", range(40))
    film(tmp_path / "GX020001.MP4", range(40, 95))
    take = open_clip(tmp_path / "GX010001.MP4", tmp_path / "GX020001.MP4")
    made = write_small_film(take, tmp_path / "small.mp4", height=180, made_of="both")
    shown = read(tmp_path / "small.mp4")
    assert [number for _, number, _, _ in shown] == list(range(95))
    assert [time for time, *_ in shown] == [k / FPS for k in range(95)]
    assert {k for k, (_, _, is_key, _) in enumerate(shown) if is_key} == {0, 30, 60, 90}
    assert (made.frames, made.fps, made.width, made.height, made.missing) == (95, FPS, 320, 180, ())
    assert made_of_film(tmp_path / "small.mp4") == "both"
    with av.open(str(tmp_path / "small.mp4")) as source:
        sound = [p for p in source.demux(source.streams.audio[0]) if p.pts is not None]
        assert sum(p.duration * p.time_base for p in sound) == pytest.approx(95 / FPS, abs=0.05)
        order = [p.stream.type for p in av.open(str(tmp_path / "small.mp4")).demux() if p.pts is not None]
    assert order[-20:].count("video") > 5, "sound stands beside the pictures, not behind them"


def test_pictures_that_do_not_decode_are_black_and_named_and_shift_no_number(tmp_path: Path) -> None:
    film(tmp_path / "GX010001.MP4", range(100), b_frames=0)
    content = bytearray((tmp_path / "GX010001.MP4").read_bytes())
    with av.open(str(tmp_path / "GX010001.MP4")) as source:
        places = [(p.pos, p.size) for p in source.demux(video=0) if p.size]
    for place, size in places[30:36]:
        content[place : place + size] = bytes(size)
    (tmp_path / "GX010001.MP4").write_bytes(content)
    made = write_small_film(open_clip(tmp_path / "GX010001.MP4"), tmp_path / "small.mp4", height=360)
    shown = read(tmp_path / "small.mp4")
    assert len(shown) == 100
    assert set(range(30, 36)) <= set(made.missing)
    for k in made.missing:
        assert shown[k][3] < DARK, k
    whole = [k for k in range(100) if k not in range(30, 40)]
    assert [shown[k][1] for k in whole] == whole


def test_a_film_of_given_times_keeps_them(tmp_path: Path) -> None:
    with FilmWriter(tmp_path / "a.mp4") as out:
        for number, at in enumerate((0, 3000, 3001, 9000)):
            out.write(av.VideoFrame.from_ndarray(numbered(number), format="yuv420p"), at)
    assert [(time * 90_000, number) for time, number, *_ in read(tmp_path / "a.mp4")] == [
        (0, 0),
        (3000, 1),
        (3001, 2),
        (9000, 3),
    ]


@contextmanager
def headset(
    tmp_path: Path, codec: str, lost: frozenset[int] = frozenset(), key_every: int = 10
) -> Iterator[StoredStream]:
    """A front camera's stream of 60 pictures as sent, of which some never came: row k is the k-th that did."""
    units = video_units(map(numbered, range(60)), codec, key_every=key_every)
    rows = [(n * 333_333, unit) for n, unit in enumerate(units)]
    metadata = np.zeros((), pv.METADATA)
    payloads = [(ticks, pv.encode(unit, metadata)) for ticks, unit in rows]
    kept = [one for n, one in enumerate(payloads) if n not in lost]
    seal_stream(tmp_path, "hololens/pv", kept, sequence=[n for n in range(60) if n not in lost])
    form = {"codec": codec, "width": WIDTH, "height": HEIGHT, "hz": 30}
    stream = StoredStream("hololens/pv", tmp_path / "hololens" / "pv", {"format": form}, {"streams": {}})
    yield stream
    stream.close()


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_a_headset_s_packets_become_a_film_as_they_were_sent(tmp_path: Path, codec: str) -> None:
    with headset(tmp_path, codec) as stream:
        made = write_headset_film(stream, np.arange(60), Fraction(30), tmp_path / "a.mp4", made_of="x")
        sent = int(stream.index["size"].sum()) - 60 * pv.METADATA.itemsize
    assert made.as_sent
    assert made.missing == ()
    assert [(time, number) for time, number, *_ in read(tmp_path / "a.mp4")] == [
        (Fraction(k, 30), k) for k in range(60)
    ]
    assert made_of_film(tmp_path / "a.mp4") == "x"
    with av.open(str(tmp_path / "a.mp4")) as source:
        assert sum(p.size for p in source.demux(video=0)) == pytest.approx(sent, rel=0.01)


def test_frames_without_a_picture_are_black_and_the_others_keep_their_number(tmp_path: Path) -> None:
    rows = np.array([-1, -1, *range(12, 40), -1, *range(40, 45)])
    with headset(tmp_path, "h264") as stream:
        made = write_headset_film(stream, rows, Fraction(30), tmp_path / "a.mp4")
    shown = read(tmp_path / "a.mp4")
    assert not made.as_sent
    assert made.missing == (0, 1, 30)
    assert [n if n is not None else -1 for _, n, *_ in shown] == rows.tolist()


def test_after_a_loss_nothing_is_shown_that_hangs_on_what_was_lost(tmp_path: Path) -> None:
    with headset(tmp_path, "h264", lost=frozenset({13, 14})) as stream:
        made = write_headset_film(stream, np.arange(58), Fraction(30), tmp_path / "a.mp4")
    assert not made.as_sent
    shown = read(tmp_path / "a.mp4")
    true = [n for n in range(60) if n not in (13, 14)]
    assert len(shown) == 58
    assert [n for _, n, *_ in shown][:13] + [n for _, n, *_ in shown][18:] == true[:13] + true[18:]
    assert all(n in (None, true[k]) for k, (_, n, *_) in enumerate(shown))


def test_a_loss_before_a_key_picture_costs_no_encoding(tmp_path: Path) -> None:
    with headset(tmp_path, "h264", lost=frozenset({18, 19})) as stream:
        made = write_headset_film(stream, np.arange(58), Fraction(30), tmp_path / "a.mp4")
    assert made.as_sent
    assert [n for _, n, *_ in read(tmp_path / "a.mp4")] == [n for n in range(60) if n not in (18, 19)]


def test_depth_that_hangs_on_a_lost_packet_is_left_out(tmp_path: Path) -> None:
    nearer = [grey_planes(40 + 4 * n, 512, 512) for n in range(40)]
    units = enumerate(video_units(nearer, crf="10"))
    packets = [(n * 333_333, depth_ahat.encode(unit, n)) for n, unit in units]
    there = [n for n in range(40) if n not in (13, 25)]
    seal_stream(tmp_path, "hololens/depth_ahat", [packets[n] for n in there], sequence=there)
    about = {"format": {"codec": "h264"}}
    stream = StoredStream("hololens/depth_ahat", tmp_path / "hololens" / "depth_ahat", about, {"streams": {}})
    found = {
        there[image.row]: int(image.depth_mm[256, 256]) for image in unbroken_depth(stream, 0, len(stream))
    }
    later = {there[image.row] for image in unbroken_depth(stream, 15, len(stream))}
    stream.close()
    assert set(found) == {*range(13), *range(20, 25), *range(30, 40)}
    assert later == {number for number in found if number >= 15}
    assert all(abs(depth - 4 * (40 + 4 * n)) <= 8 for n, depth in found.items())
