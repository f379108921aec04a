"""Clues of videos that were cut without encoding agree with the true times of telemetry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from strange_films import REAL_FILM, StrangeFilm, expected_of_real_film, film_maker, write_cases

from kitchensync.cli import main
from kitchensync.sensors.errors import UnreadableMedia
from kitchensync.sensors.gopro.files.clip import Clip, open_clip
from kitchensync.sensors.gopro.files.clip_clues import clip_clues, picture_surplus
from kitchensync.sensors.gopro.files.clue import disagreements
from kitchensync.sensors.gopro.files.inspect import inspect
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.join import join
from kitchensync.storage.verify.suitable_uses import spans_in_words
from kitchensync.sync.recording.clip_rates import still_spans

AGREE = ("whole", "cut-late-told", "cut-early-told", "cut-hidden-told", "payload-missing", "turned-180")
CHAPTERS = ("chapters", "chapters-payload-early", "chapters-payload-late")


@pytest.fixture(scope="module")
def films(
    shared_data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, StrangeFilm]:
    maker = film_maker(shared_data)
    files = write_cases(maker, shared_data(REAL_FILM), tmp_path_factory.mktemp("strange"))
    for name, expected in expected_of_real_film(shared_data).items():
        if name in files:
            assert files[name].truth == expected["files"], name
    return files


def clues_of(clip: Clip) -> dict[str, bool | None]:
    return {clue.name: clue.agrees for clue in clip_clues(clip)}


@pytest.mark.parametrize("name", AGREE)
def test_telemetry_is_placed_by_edit_lists(films: dict[str, StrangeFilm], name: str) -> None:
    (path,), truth = films[name]
    media, true = open_media(path), truth["GX010001.MP4"]
    assert len(media.frame_pts) == true["pictures"]
    assert media.gyroscope().t_s[0] == pytest.approx(true["gyro_first_minus_picture_first_s"], abs=1e-4)
    assert disagreements(clip_clues(Clip([media]))) == []
    summary = inspect(path)
    assert summary["video"]["frames"] == true["pictures"]
    assert summary["gyro_first_minus_shut_first_us"] == true["gyro_first_minus_shut_first_us"]
    assert summary["gyro_first_minus_picture_first_us"] / 1e6 == pytest.approx(
        true["gyro_first_minus_picture_first_s"], abs=1e-4
    )


@pytest.mark.parametrize(
    ("name", "wrong", "surplus"),
    [
        ("cut-late", {"counts", "beginning"}, -19),
        ("cut-early", {"counts", "beginning"}, 11),
        ("cut-together", {"beginning"}, 1),
        ("cut-end", {"counts"}, 80),
    ],
)
def test_an_unmarked_cut_is_found_by_its_clues(
    films: dict[str, StrangeFilm], name: str, wrong: set[str], surplus: int
) -> None:
    (path,), _ = films[name]
    clip = open_clip(path)
    assert {clue for clue, agrees in clues_of(clip).items() if agrees is False} == wrong
    assert picture_surplus(clip) == surplus
    summary = inspect(path)
    assert "gyro_first_minus_picture_first_us" not in summary
    assert {clue["name"] for clue in summary["clues"] if clue["agrees"] is False} == wrong
    shown = CliRunner().invoke(main, ["gopro", "inspect", str(path)]).stdout
    assert "from frame 0" not in shown
    assert "agrees" in shown


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_payload_in_another_chapter_moves_no_frame(
    films: dict[str, StrangeFilm], tmp_path: Path, name: str
) -> None:
    paths, truth = films[name]
    clip = open_clip(paths[0])
    assert clip.lost_before_s == [0.0, 0.0]
    assert clip.telemetry_starts_s == pytest.approx([0.0, 180 * 1001 / 30000])
    assert disagreements(clip_clues(clip)) == []
    assert join(paths, tmp_path / "one.MP4").frames == 315
    if name != "chapters":  # alone, a chapter lacks what its neighbour holds
        assert clues_of(Clip([open_media(paths[1])]))["counts"] is False
    assert truth["GX020001.MP4"]["pictures"] == len(clip.chapters[1].frame_pts)


@pytest.mark.parametrize(
    ("name", "spans"),
    [
        ("gyro-zero", "from 0:00 to 0:11"),
        ("gyro-zero-from-half", "from 0:05 to 0:11"),
        ("gyro-frozen", "from 0:05 to 0:11"),
        ("whole", ""),
    ],
)
def test_spans_of_a_still_gyroscope_are_known(films: dict[str, StrangeFilm], name: str, spans: str) -> None:
    track = open_media(films[name].paths[0]).gyroscope()
    assert spans_in_words(still_spans(track.t_s, track.xyz)) == spans


@pytest.mark.slow
@pytest.mark.parametrize(("hide", "bframes"), [(5, 0), (5, 2)])
def test_hidden_frames_do_not_count(
    shared_data: Callable[[str], Path], tmp_path: Path, hide: int, bframes: int
) -> None:
    maker = film_maker(shared_data)
    film = maker.dressed(
        maker.tables.read(shared_data(REAL_FILM)), tmp_path, bframes=bframes, width=320, height=180
    )
    first = maker.keys(film)[4]
    new, truth = maker.cut(film, first, maker.payload_at(film, first + hide), hide=hide, told=True)
    maker.tables.write(new, tmp_path / "GX010001.MP4")
    media = open_media(tmp_path / "GX010001.MP4")
    assert len(media.frame_pts) == truth["pictures"]
    assert media.hidden_frames == hide
    assert disagreements(clip_clues(Clip([media]))) == []
    with media.pictures() as pictures:
        for number in (0, 1, 30, truth["pictures"] - 1):
            assert maker.number_of(pictures.grey(number)) == truth["first_picture"] + number


def test_a_chapter_without_telemetry_is_a_clue(
    films: dict[str, StrangeFilm], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    maker = film_maker(shared_data)
    first, second = films["chapters"].paths
    film = maker.tables.read(first)
    film["gpmd"].samples = []
    maker.tables.write(film, tmp_path / "GX010001.MP4")
    clip = Clip([open_media(tmp_path / "GX010001.MP4"), open_media(second)])
    assert disagreements(clip_clues(clip)) == ["GX010001.MP4: no telemetry with timestamps"]
    assert picture_surplus(clip) == 0


def test_frames_without_duration_are_refused_by_name(
    films: dict[str, StrangeFilm], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    maker = film_maker(shared_data)
    film = maker.tables.read(films["whole"].paths[0])
    for sample in film["vide"].samples:
        sample.duration = 0
    maker.tables.write(film, tmp_path / "GX010001.MP4")
    with pytest.raises(UnreadableMedia, match="have no duration"):
        open_media(tmp_path / "GX010001.MP4").gyroscope()
    assert any("have no duration" in message for message in inspect(tmp_path / "GX010001.MP4")["damage"])


def test_two_edits_of_one_track_are_named(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    maker = film_maker(shared_data)
    film = maker.tables.read(shared_data(REAL_FILM))
    film["vide"].edits = [(2000, 0), (None, 90_000)]
    maker.tables.write(film, tmp_path / "GX010001.MP4")
    assert clues_of(open_clip(tmp_path / "GX010001.MP4"))["edit lists"] is False
