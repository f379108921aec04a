"""Films turned, of full range or of ten bits: what is written of them is upright, with the greys of the scene."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import av
import cv2
import numpy as np
import pytest
from strange_films import REAL_FILM, film_maker

from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.sensors.gopro.mp4.join import join
from kitchensync.sensors.shown_picture import shown_pixels
from kitchensync.storage.exports.cut_films import numbered_jpegs
from kitchensync.storage.exports.film import FilmWriter, write_small_film

OPTIONS: dict[str, dict[str, Any]] = {
    "limited": {},
    "full": {"full_range": True},
    "180": {"turned": 180},
    "90": {"turned": 90},
    "270 full": {"turned": 270, "full_range": True},
    "b": {"bframes": 2},
}


@pytest.fixture(scope="module")
def maker(shared_data: Callable[[str], Path]) -> ModuleType:
    return film_maker(shared_data)


@pytest.fixture(params=OPTIONS, scope="module")
def dressed(
    request: pytest.FixtureRequest,
    maker: ModuleType,
    shared_data: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, bool]:
    """A camera's film whose pictures carry number, greys and corners; whether it is higher than wide."""
    options, folder = OPTIONS[request.param], tmp_path_factory.mktemp("dressed")
    film = maker.dressed(maker.tables.read(shared_data(REAL_FILM)), folder, width=480, height=272, **options)
    maker.tables.write(film, folder / "GX010001.MP4")
    return folder / "GX010001.MP4", options.get("turned", 0) in (90, 270)


def check(maker: ModuleType, rgb: np.ndarray, number: int, *, is_high: bool) -> None:
    """Upright, of the right number, with the right greys: by how the picture was made."""
    height, width = rgb.shape[:2]
    assert (height > width) == is_high
    assert maker.number_of(rgb.mean(axis=2)) == number
    assert np.abs(np.array(maker.greys_of(rgb.mean(axis=2))) - maker.GREYS).max() <= 5
    for (name, colour), at in zip(
        maker.CORNERS.items(), [(6, 6), (6, width - 6), (height - 6, 6), (height - 6, width - 6)], strict=True
    ):
        assert np.abs(rgb[at].astype(int) - colour).max() <= 25, name


def shown_by_a_player(path: Path) -> list[np.ndarray]:
    """Pictures as their tags say, without our reader: BT.709, limited, and the matrix of the header."""
    with av.open(str(path)) as film:
        stream = film.streams.video[0]
        assert (stream.codec_context.color_range, stream.codec_context.colorspace) == (1, 1)
        return [frame.to_ndarray(format="rgb24") for frame in film.decode(stream) if not frame.rotation]


@pytest.mark.slow
def test_a_small_film_is_upright_with_the_right_greys(
    maker: ModuleType, dressed: tuple[Path, bool], tmp_path: Path
) -> None:
    path, is_high = dressed
    small = write_small_film(open_clip(path), tmp_path / "small.mp4", height=240)
    pictures = shown_by_a_player(tmp_path / "small.mp4")
    assert len(pictures) == small.frames == 315
    assert pictures[0].shape[:2] == (small.height, small.width) == (240, small.width)
    for number in (0, 7, 314):
        check(maker, pictures[number], number, is_high=is_high)


@pytest.mark.parametrize("name", ["discard_first_keyframe.mp4", "bt601_full_range.mp4"])
def test_a_film_of_others_keeps_what_it_shows_and_its_light(
    shared_data: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    true = json.loads(shared_data("strangers/expected.json").read_text())["torchcodec"][name]
    clip = open_clip(shared_data(f"strangers/torchcodec/{name}"))
    small = write_small_film(clip, tmp_path / "small.mp4", height=true["size"][1])
    assert small.frames == true["shown_pictures"]
    assert clip.chapters[0].hidden_frames == true["stored_pictures"] - true["shown_pictures"]
    light = [rgb.mean() for rgb in shown_by_a_player(tmp_path / "small.mp4")]
    assert len(light) == true["shown_pictures"]
    for number, expected in zip((0, len(light) // 2, -1), true["brightness_of_shown"], strict=True):
        assert light[number] == pytest.approx(expected, abs=6)


@pytest.mark.slow
def test_pictures_by_number_and_stills_are_upright(maker: ModuleType, dressed: tuple[Path, bool]) -> None:
    path, is_high = dressed
    with open_clip(path).pictures() as pictures:
        check(maker, pictures.number(40).rgb, 40, is_high=is_high)
        small = pictures.number(41, 200).rgb
        assert small.shape[1] == 200
        assert (small.shape[0] > 200) == is_high
    ((number, jpeg),) = numbered_jpegs(path, {42})
    still = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    check(maker, still[:, :, ::-1], number, is_high=is_high)


@pytest.mark.slow
def test_the_camera_s_own_film_keeps_its_turn(
    maker: ModuleType, dressed: tuple[Path, bool], tmp_path: Path
) -> None:
    path, _ = dressed
    whole = maker.tables.read(join([path], tmp_path / "whole.MP4").path)
    assert whole["vide"].matrix == maker.tables.read(path)["vide"].matrix


def test_a_film_of_ten_bits_becomes_one_of_eight(maker: ModuleType, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "ten.mp4"), "w") as out:
        stream = out.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p10le"
        stream.codec_context.color_range = stream.codec_context.colorspace = 1
        for number in range(3):
            frame = av.VideoFrame.from_ndarray(maker.picture(number, 320, 180), "rgb24")
            frame = frame.reformat(format="yuv420p10le", dst_colorspace=1, dst_color_range=1)
            frame.pts, frame.time_base = number, Fraction(1, 30)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    with av.open(str(tmp_path / "ten.mp4")) as film, FilmWriter(tmp_path / "eight.mp4") as written:
        for number, frame in enumerate(film.decode(video=0)):
            assert frame.format.name == "yuv420p10le"
            written.write(frame, 3000 * number)
    for number, rgb in enumerate(shown_by_a_player(tmp_path / "eight.mp4")):
        check(maker, rgb, number, is_high=False)


@pytest.mark.parametrize("size", [(181, 321), (180, 321), (181, 320)])
def test_odd_sizes_lose_at_most_a_line(maker: ModuleType, tmp_path: Path, size: tuple[int, int]) -> None:
    with FilmWriter(tmp_path / "odd.mp4") as film:
        film.write(maker.picture(5, size[1], size[0]), 0)
    (rgb,) = shown_by_a_player(tmp_path / "odd.mp4")
    assert rgb.shape == (180, 320, 3)
    check(maker, rgb, 5, is_high=False)


@pytest.mark.parametrize("turns", range(4))
def test_pixels_are_turned_and_scaled_as_pictures_are(turns: int) -> None:
    stored = np.arange(4 * 6).reshape(4, 6)
    shown = np.rot90(stored, turns).repeat(3, 0).repeat(3, 1)
    for y, x in np.ndindex(stored.shape):
        size = (shown.shape[1], shown.shape[0])
        across, down = shown_pixels(np.array([x, y], float), (6, 4), turns, size)
        middle = np.argwhere(shown == stored[y, x]).mean(0)
        assert np.allclose([down, across], middle)
