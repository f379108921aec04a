"""Films of ProMQA's examples: each shows, to its last picture, what was seen before the stated end."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from math import ceil
from pathlib import Path

import av
import numpy as np
import pytest
from cooked_recording import write_cooked
from made_videos import SOUND_HZ, numbered_planes, write_video
from numbered_pictures import luma_of, number_in
from typed_commands import typed as run

from kitchensync.dataset.examples import prefix_clips
from kitchensync.dataset.films import review_film

pytestmark = pytest.mark.slow
FPS = Fraction(30000, 1001)


def write_numbered_film(path: Path, pictures: int, between: int) -> None:
    """Write a film, `between` pictures of which lean on later ones, with a tone."""
    tone = np.sin(np.arange(ceil(pictures / FPS * SOUND_HZ / 1024) * 1024) % 1024 / 7)
    preset = "veryfast" if between else "ultrafast"
    write_video(
        path, map(numbered_planes, range(pictures)), FPS, tone, bf=str(between), g="30", preset=preset
    )


def numbers_in(film: Path) -> list[int | None]:
    with av.open(str(film)) as source:
        return [number_in(luma_of(picture)) for picture in source.decode(video=0)]


def number_on(jpeg: Path) -> int | None:
    with av.open(io.BytesIO(jpeg.read_bytes())) as source:
        (picture,) = source.decode(video=0)
        return number_in(picture.to_ndarray(format="gray"))


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A released data set of one recording, and its film."""
    root = tmp_path_factory.mktemp("released")
    write_cooked(root / "data")
    done = run("release", "captaincook4d", root / "data", "--out", root / "set", "--media", "360p")
    assert done.exit_code == 0, done.output
    (film,) = (root / "set").rglob("*_360p.mp4")
    return root / "set", film


@pytest.mark.parametrize("between", [0, 2])
def test_each_clip_ends_with_the_last_picture_before_its_end(
    released: tuple[Path, Path], tmp_path: Path, between: int
) -> None:
    folder, film = released
    with av.open(str(film)) as source:
        count = source.streams.video[0].frames
    write_numbered_film(film, count, between)
    out = tmp_path / "examples.json"
    done = run("export", "promqa", folder, "--out", out, "--clips", "--frames", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(out.read_text())
    assert len(rows) > 4
    for row in rows:
        hours, minutes, seconds = map(int, row["end_time"].split(":"))
        end_s = 3600 * hours + 60 * minutes + seconds
        shown = [k for k in range(count) if k / FPS < end_s]
        assert numbers_in(tmp_path / row["clip"]) == shown
        assert (row["clip_frames"], row["last_frame_s"]) == (len(shown), round(float(shown[-1] / FPS), 4))
        pictures = [number_on(tmp_path / one) for one in row["frames"]]
        assert pictures == sorted(shown[-1] - round(k * FPS) for k in range(int(shown[-1] / FPS) + 1))
        with av.open(str(tmp_path / row["clip"])) as clip:
            sound_s = sum(frame.samples for frame in clip.decode(audio=0)) / 48000
        assert abs(sound_s - len(shown) / FPS) < 0.1
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.mp4")}
    again = run("export", "promqa", folder, "--out", tmp_path / "again" / "examples.json", "--json")
    assert again.exit_code == 0
    assert not list((tmp_path / "again").rglob("*.mp4"))
    out.unlink()
    assert run("export", "promqa", folder, "--out", out, "--clips", "--frames").exit_code == 0
    assert made == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.mp4")}, "those are there"


def test_films_that_are_not_here_are_named(released: tuple[Path, Path], tmp_path: Path) -> None:
    folder, film = released
    away = film.rename(film.with_suffix(".away"))
    try:
        done = run("export", "promqa", folder, "--out", tmp_path / "a.json", "--clips", "--json")
    finally:
        away.rename(film)
    assert any("1 videos are missing: 1_1" in one for one in json.loads(done.stdout)["warnings"])
    assert "clip" not in json.loads((tmp_path / "a.json").read_text())[0]


def test_of_an_own_recording_the_film_of_the_desk_is_cut(
    released: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = released[0].parent / "data" / "take1"
    review_film.make(recording, 360)
    with av.open(str(review_film.film_of(recording, 360))) as source:
        whole = [picture.to_ndarray() for picture in source.decode(video=0)]
    monkeypatch.setattr(prefix_clips, "write_small_film", lambda *_, **__: pytest.fail("it is there"))
    out = tmp_path / "questions.json"
    done = run("export", "promqa", recording, "--out", out, "--clips", "--kinds", "next", "--json")
    assert done.exit_code == 0, done.output
    for row in json.loads(out.read_text()):
        with av.open(str(tmp_path / row["clip"])) as clip:
            shown = [picture.to_ndarray() for picture in clip.decode(video=0)]
        assert len(shown) == row["clip_frames"]
        assert all(map(np.array_equal, shown, whole))
