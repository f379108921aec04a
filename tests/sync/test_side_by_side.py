"""The film shows the picture that the index names: every picture carries its own number as black and white blocks."""

from __future__ import annotations

import json
from fractions import Fraction

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from made_videos import video_units, write_video
from small_recordings import seal_stream, write_manifest

from kitchensync.cli import main
from kitchensync.sensors.hololens.streams import pv

WIDTH, HEIGHT, BITS = 320, 180, 8
PV, FILM, ROWS = 90, 80, 80
TICKS0, STEP = 10**15, 333_667


def numbered(number: int) -> np.ndarray:
    """A picture whose eight upright stripes are the bits of its number."""
    bits = [(number >> k) & 1 for k in range(BITS)]
    row = np.repeat(np.array(bits, np.uint8) * 190 + 30, WIDTH // BITS)
    return np.broadcast_to(row[None, :, None], (HEIGHT, WIDTH, 3))


def number_in(panel: np.ndarray) -> int | None:
    """Read the number of a panel (h, w, 3); None when it is an empty one."""
    stripes = panel[40:-40].mean(axis=(0, 2)).reshape(BITS, -1)[:, 20:60].mean(axis=1)
    light = stripes > 130
    if np.abs(stripes - 63).max() < 25:
        return None
    return int((light * (1 << np.arange(BITS))).sum())


def write_pv(recording):
    units = video_units(map(numbered, range(PV)), key_every=30, crf="12")
    metadata = np.zeros((), pv.METADATA)
    seal_stream(
        recording,
        "hololens/pv",
        [(TICKS0 + n * STEP, pv.encode(unit, metadata)) for n, unit in enumerate(units)],
    )


def write_film(path, first: int):
    shown = (numbered(100 + first + n) for n in range(FILM // 2))
    write_video(path, shown, Fraction(30000, 1001), g="25", bf="2", crf="12")


@pytest.fixture(scope="module")
def take(tmp_path_factory):
    """Front camera from row 5 on as master; a camera of two chapters from row 12 on, with a hole."""
    path = tmp_path_factory.mktemp("films") / "take"
    write_pv(path)
    write_film(path / "gopro" / "GH010001.MP4", 0)
    write_film(path / "gopro" / "GH020001.MP4", FILM // 2)
    streams = {"hololens/pv": {"format": {"codec": "h264"}}, "hololens/gyroscope": {}}
    write_manifest(path, streams, {"hololens": "hololens", "gopro": "gopro"})
    shown = np.arange(ROWS) - 12 + (np.arange(ROWS) > 40)  # one picture of the camera is skipped
    here = (shown >= 0) & (shown < FILM) & (np.arange(ROWS) != 60)
    columns = {
        "master_i": np.arange(5, 5 + ROWS, dtype=np.int32),
        "master_ticks": TICKS0 + (np.arange(5, 5 + ROWS)) * STEP,
        "gopro_i": np.where(here, shown % (FILM // 2), -1).astype(np.int32),
        "gopro_file": np.where(here, shown // (FILM // 2), -1).astype(np.int16),
        "gopro_dt_us": np.where(here, -4200, 0).astype(np.int32),
        "gyroscope_i0": np.arange(ROWS),
        "gyroscope_i1": np.arange(ROWS) + 1,
    }
    files = ["gopro/GH010001.MP4", "gopro/GH020001.MP4"]
    about = json.dumps({"name": "pv", "clock_of": "hololens", "files": files})
    (path / "sync").mkdir()
    pq.write_table(
        pa.table(columns).replace_schema_metadata({"kitchensync": about}), path / "sync" / "index.parquet"
    )
    poses = {"master_i": columns["master_i"], "master_ticks": columns["master_ticks"]}
    pq.write_table(pa.table(poses), path / "sync" / "poses.parquet")
    return path, np.where(here, 100 + shown, -1)


def run(*arguments):
    return CliRunner().invoke(main, ["side-by-side", *map(str, arguments)])


def read(path):
    with av.open(str(path)) as container:
        return [(frame.time, frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]


@pytest.mark.slow
def test_every_panel_shows_the_picture_that_the_index_names(take, tmp_path):
    recording, expected = take
    result = run(recording, "--out", tmp_path / "film.mp4")
    assert result.exit_code == 0, result.output
    frames = read(tmp_path / "film.mp4")
    assert len(frames) == ROWS
    assert [t for t, _ in frames] == pytest.approx(np.arange(ROWS) * STEP / 1e7, abs=2e-5)
    for row, (_, picture) in enumerate(frames):
        left, right = picture[24:384, :640], picture[24:384, 640:]
        assert number_in(left) == 5 + row
        assert number_in(right) == (expected[row] if expected[row] >= 0 else None), row
    assert list(tmp_path.iterdir()) == [tmp_path / "film.mp4"]


def test_a_part_and_one_stream(take, tmp_path):
    assert (
        run(
            take[0], "--out", tmp_path / "a.mp4", "--streams", "gopro", "--from", "1.0", "--to", "1.2"
        ).exit_code
        == 0
    )
    frames = read(tmp_path / "a.mp4")
    rows = [k for k in range(ROWS) if 1.0 <= k * STEP / 1e7 <= 1.2]
    assert [number_in(picture[24:384]) for _, picture in frames] == [take[1][k] for k in rows]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--streams", "depth_ahat"], "no pictures of depth_ahat in the index; there are: pv, gopro"),
        (["--from", "90"], "the index covers 0 to 2.6 s"),
    ],
)
def test_what_cannot_be_filmed_is_said(take, tmp_path, more, words):
    result = run(take[0], "--out", tmp_path / "film.mp4", *more)
    assert result.exit_code == 1
    assert words in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_recording_without_an_index_says_what_to_do(take, tmp_path):
    (tmp_path / "bare").mkdir()
    write_manifest(tmp_path / "bare", {}, {})
    result = run(tmp_path / "bare", "--out", tmp_path / "film.mp4")
    assert result.exit_code == 1
    assert "run `kitchensync sync` first" in result.output
    (tmp_path / "in the way").write_bytes(b"")
    result = run(take[0], "--out", tmp_path / "in the way" / "film.mp4")
    assert result.exit_code == 1
    assert len(result.output.strip().splitlines()) == 1
