"""Pictures and films that somebody made up to take memory or time end in one refusal."""

from __future__ import annotations

import os
import socket
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
import segno
from made_up_pictures import black

from kitchensync.dataset.errors import BadOperation
from kitchensync.recipe_app.exchange import dump_pictures
from kitchensync.recipe_app.exchange.adopt import NotAdopted, adopt
from kitchensync.recipe_app.exchange.dump_pictures import frames_in
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.process_apart import Bounds

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_a_small_file_of_many_pixels_is_refused_before_it_costs_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = black(tmp_path / "bomb.png", 40_000)
    assert bomb.stat().st_size < 300_000
    few = Bounds(30.0, 640 << 20, dump_pictures.PICTURE.environment)
    monkeypatch.setattr(dump_pictures, "PICTURE", few)
    with pytest.raises(BadOperation, match="more than 50 megapixels"):
        frames_in(bomb, film=False, name="bomb.png")


def test_a_picture_that_takes_too_much_memory_or_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = black(tmp_path / "large.png", 6_000)
    monkeypatch.setattr(dump_pictures, "PICTURE", Bounds(30.0, 150 << 20))
    with pytest.raises(BadOperation, match="too much memory"):
        frames_in(picture, film=False, name="large.png")
    monkeypatch.setattr(dump_pictures, "PICTURE", Bounds(0.01, 1 << 30))
    with pytest.raises(BadOperation, match="takes longer"):
        frames_in(picture, film=False, name="large.png")


def test_a_code_is_still_read_in_a_picture_as_a_telephone_takes_it(tmp_path: Path) -> None:
    text = f"KS1p:0123456789abcdef:1/1:{zlib.crc32(b'aGVsbG8'):08x}:aGVsbG8"
    assert dump_pictures.frame_of(text)
    segno.make(text).save(str(tmp_path / "code.png"), scale=8, border=4)
    code = cv2.imread(str(tmp_path / "code.png"), cv2.IMREAD_GRAYSCALE)
    picture = np.full((3000, 5000), 200, np.uint8)
    picture[500 : 500 + code.shape[0], 900 : 900 + code.shape[1]] = code
    cv2.imwrite(str(tmp_path / "photo.jpg"), picture)
    assert frames_in(tmp_path / "photo.jpg", film=False, name="photo.jpg") == [text]


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0" + bytes(100), b"BM" * 40])
def test_what_is_no_picture_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(BadOperation, match="no frame of a dump"):
        frames_in(tmp_path / "x.png", film=False, name="x.png")


def test_a_list_of_other_files_is_no_film(tmp_path: Path) -> None:
    (tmp_path / "secret.mp4").write_bytes(b"x")
    for name, text in (
        ("a.mp4", "#EXTM3U\n#EXTINF:1,\nsecret.mp4\n#EXT-X-ENDLIST\n"),
        ("b.mp4", "ffconcat version 1.0\nfile secret.mp4\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(NotAdopted, match="cannot be read as a video"):
            adopt(tmp_path, "r", [tmp_path / name], consent="c", participant="p", tell=lambda *_: None)
        with pytest.raises(BadOperation, match="no frame of a dump"):
            frames_in(tmp_path / name, film=True, name=name)


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
    """OpenEXR is switched off; a film that is a playlist makes no connection, so that no TLS is spoken."""
    assert "OPENCV_IO_ENABLE_OPENEXR" not in os.environ
    (tmp_path / "a.exr").write_bytes(b"\x76\x2f\x31\x01" + bytes(200))
    with pytest.raises(BadOperation):
        frames_in(tmp_path / "a.exr", film=False, name="a.exr")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"https://127.0.0.1:{server.getsockname()[1]}/part.ts"
        playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{address}\n#EXT-X-ENDLIST\n"
        for name, text in (("a.m3u8", playlist), ("a.ffconcat", f"ffconcat version 1.0\nfile {address}\n")):
            (tmp_path / name).write_text(text)
            with pytest.raises(BadOperation):
                frames_in(tmp_path / name, film=True, name=name)
        with pytest.raises(BlockingIOError):
            server.accept()
