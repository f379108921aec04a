"""Pictures and films that somebody made up to take memory or time end in one refusal."""

from __future__ import annotations

import os
import struct
from fractions import Fraction
from pathlib import Path

import av
import pytest
from made_up_pictures import black
from root_folders import product_files

from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.cooking import recipe_pictures
from kitchensync.recipe_app.cooking.recipe_pictures import small_jpeg
from kitchensync.recipe_app.exchange.adopt import NotAdopted, adopt
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.shell.process_apart import Bounds

pytestmark = pytest.mark.slow


def test_a_small_file_of_many_pixels_is_refused_before_it_costs_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = black(tmp_path / "bomb.png", 40_000)
    assert bomb.stat().st_size < 300_000
    few = Bounds(30.0, 640 << 20, recipe_pictures.PICTURE.environment)
    monkeypatch.setattr(recipe_pictures, "PICTURE", few)
    with pytest.raises(BadOperation, match="more than 50 megapixels"):
        small_jpeg(bomb)


def test_a_picture_that_takes_too_much_memory_or_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = black(tmp_path / "large.png", 6_000)
    for few in (Bounds(30.0, 150 << 20), Bounds(0.01, 1 << 30)):
        monkeypatch.setattr(recipe_pictures, "PICTURE", few)
        with pytest.raises(BadOperation, match="too much memory"):
            small_jpeg(picture)


def test_a_list_of_other_files_is_no_film(tmp_path: Path) -> None:
    (tmp_path / "secret.mp4").write_bytes(b"x")
    for name, text in (
        ("a.mp4", "#EXTM3U\n#EXTINF:1,\nsecret.mp4\n#EXT-X-ENDLIST\n"),
        ("b.mp4", "ffconcat version 1.0\nfile secret.mp4\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(NotAdopted, match="cannot be read as a video"):
            adopt(tmp_path, "r", [tmp_path / name], consent="c", participant="p", tell=lambda *_: None)


def film_of(picture: Path, path: Path) -> Path:
    """A film whose three pictures are this PNG, as it lies there."""
    width, height = struct.unpack_from(">II", picture.read_bytes(), 16)
    with av.open(str(path), "w", format="mov") as film:
        stream = film.add_stream("png", rate=1)
        stream.width, stream.height, stream.pix_fmt = width, height, "rgb24"
        for number in range(3):
            packet = av.Packet(picture.read_bytes())
            packet.stream, packet.pts, packet.dts, packet.time_base = stream, number, number, Fraction(1)
            film.mux(packet)
    return path


def test_a_film_of_huge_pictures_is_neither_adopted_nor_decoded_where_it_lies_already(tmp_path: Path) -> None:
    film = film_of(black(tmp_path / "large.png", 8_000), tmp_path / "large.mov")
    with pytest.raises(NotAdopted, match="more than 50 megapixels"):
        adopt(tmp_path / "data", "take", [film], consent="c", participant="p", tell=lambda *_: None)
    with open_media(film).container() as opened, pytest.raises(av.FFmpegError):
        next(opened.decode(video=0))
    small = film_of(black(tmp_path / "small.png", 500), tmp_path / "small.mov")
    with open_media(small).container() as opened:
        assert next(opened.decode(video=0)).width == 500


def test_the_old_libraries_inside_opencv_are_not_reached(tmp_path: Path) -> None:
    """OpenEXR is switched off; OpenCV's own FFmpeg, the one that carries OpenSSL, opens no video."""
    assert "OPENCV_IO_ENABLE_OPENEXR" not in os.environ
    (tmp_path / "a.exr").write_bytes(b"\x76\x2f\x31\x01" + bytes(200))
    with pytest.raises(BadOperation):
        small_jpeg(tmp_path / "a.exr")
    assert [path for path in product_files() if "VideoCapture" in path.read_text(encoding="utf-8")] == []
