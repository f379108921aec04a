"""Indexes of unknown videos are checked against the file before memory is allocated for them."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from made_data_sets import small_film
from made_videos import promise_samples

from kitchensync.sensors.errors import UnreadableMedia
from kitchensync.sensors.gopro.files import media
from kitchensync.sensors.gopro.files.media import open_container, open_media
from kitchensync.sensors.gopro.mp4.boxes import MAX_SAMPLES
from kitchensync.sensors.gopro.mp4.sample_tables import box, read_chapter


@pytest.fixture
def film(tmp_path: Path) -> Path:
    small_film(tmp_path / "film.mp4", seconds=1)
    return tmp_path / "film.mp4"


def test_more_samples_than_any_video_has_are_refused(film: Path) -> None:
    promise_samples(film, MAX_SAMPLES + 1)
    with pytest.raises(OSError, match="the limit is"):
        open_container(film)
    with pytest.raises(UnreadableMedia, match="the limit is"):
        open_media(film)
    with pytest.raises(UnreadableMedia, match="box stsz of track 1: claims"):
        read_chapter(film)


def test_samples_of_one_size_fit_into_the_file(film: Path) -> None:
    promise_samples(film, film.stat().st_size + 4096)
    with pytest.raises(UnreadableMedia, match="box stsz of track 1: claims"):
        read_chapter(film)


def test_a_fragment_is_limited_too(film: Path) -> None:
    run = box("trun", struct.pack(">II", 0, MAX_SAMPLES + 1))
    with film.open("ab") as file:
        file.write(box("moof", box("traf", run)))
    with pytest.raises(OSError, match="the limit is"):
        open_container(film)


def test_a_table_has_no_more_entries_than_bytes(film: Path) -> None:
    table = box("stbl", box("stco", struct.pack(">III", 0, 1 << 30, 48)))
    with film.open("ab") as file:
        file.write(box("trak", box("mdia", box("minf", table))))
    with pytest.raises(OSError, match="box stco: claims 1073741824 entries"):
        open_container(film)


def test_sound_without_coding_has_a_sample_for_each_value(film: Path) -> None:
    """An hour of sound has 170 million samples, but libav allocates memory only for the chunks."""
    sound = box("stsz", struct.pack(">III", 0, 4, 172_800_000)) + box(
        "stts", struct.pack(">IIII", 0, 1, 9, 1)
    )
    with film.open("ab") as file:
        file.write(box("free", b"") + box("udta", box("trak", box("mdia", box("minf", box("stbl", sound))))))
    with open_container(film) as container:
        assert container.streams.video


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "film.mp4")
    for opened in (open_media, open_container, read_chapter):
        with pytest.raises((UnreadableMedia, OSError), match="not a file"):
            opened(tmp_path / "film.mp4")


def test_excessive_telemetry_is_not_read(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MOST_PAYLOADS", 3)
    content = film.read_bytes().replace(b"avc1\0\0\0\0", b"gpmd\0\0\0\0", 1)
    film.write_bytes(content)
    with pytest.raises(UnreadableMedia, match="box stsz of track gpmd: 10 payloads"):
        _ = open_media(film).payloads
