"""How fast clips and pictures of ProMQA's examples are written, and whether each clip ends where it says.

    python -P benchmarks/data_sets/prefix_clips.py [--minutes 3] [--steps 14]

A film of 640x360 at 30000/1001, its pictures numbered, of a moving scene at about the published films' bit rate. Ten
times real time is wanted; every clip's last picture is decoded and its number compared with the stated time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *map(str, (ROOT / "tests" / "support").iterdir())]

import made_data_sets  # noqa: E402
from numbered_pictures import luma_of, number_in  # noqa: E402

from kitchensync.cli import main as kitchensync  # noqa: E402
from kitchensync.storage.exports.film import FilmWriter  # noqa: E402
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry  # noqa: E402
from kitchensync.virtual_kitchen.world.frame_counter import draw_i420  # noqa: E402

FPS = Fraction(30000, 1001)
WANTED = 10
WIDTH, HEIGHT = 640, 360


def write_film(path: Path, pictures: int) -> None:
    """Film a walk over a blurred, noisy scene, the picture's number on top."""
    chance = np.random.default_rng(1)
    scene = cv2.GaussianBlur(chance.integers(0, 255, (1080, 1920), np.uint8), (0, 0), 3)
    scene = cv2.normalize(scene, None, 26, 225, cv2.NORM_MINMAX)
    noise = chance.integers(0, 10, (8, HEIGHT, WIDTH), np.uint8)
    path.parent.mkdir(parents=True)
    with FilmWriter(path, 1 / FPS, key_every=30, crf=23) as film:
        for number in range(pictures):
            x, y = (round(600 * (1 + np.sin(number / span))) for span in (170, 230))
            planes = np.full((HEIGHT * 3 // 2, WIDTH), 128, np.uint8)
            planes[:HEIGHT] = scene[y // 2 : y // 2 + HEIGHT, x : x + WIDTH] + noise[number % 8]
            draw_i420(planes, number, HEIGHT)
            film.write(av.VideoFrame.from_ndarray(planes, format="yuv420p"), number)


def data_set(folder: Path, minutes: float, steps: int, pictures: int) -> Path:
    """Write a data set of one recording whose steps follow each other, with its graph and film; return the film."""
    each = 60 * minutes / steps
    entries = tuple(Entry(k, f"Do-Do {k}", each * (k - 1), each * k) for k in range(1, steps + 1))
    made_data_sets.write(folder, [AnnotatedRecording("1_1", 1, "Tea", 1, 1, entries)])
    texts = {"0": "START", **{str(one.step_id): one.description for one in entries}, str(steps + 1): "END"}
    graph = {"steps": texts, "edges": [[k, k + 1] for k in range(steps + 1)]}
    (folder / "task_graphs").mkdir()
    (folder / "task_graphs/tea.json").write_text(json.dumps(graph))
    film = folder / made_data_sets.FILM.format("1_1")
    write_film(film, pictures)
    return film


def last_number(film: Path) -> int | None:
    """Decode a film and return the number on its last picture."""
    number = None
    with av.open(str(film)) as source:
        source.streams.video[0].thread_type = "AUTO"
        for picture in source.decode(video=0):
            number = number_in(luma_of(picture))
    return number


def ends_as_stated(clip: Path, row: dict[str, Any], pictures: int) -> bool:
    """Return whether the last picture of a clip is the last one before the example's end, and at the stated time."""
    hours, minutes, seconds = map(int, row["end_time"].split(":"))
    shown = last_number(clip)
    behind = ceil((3600 * hours + 60 * minutes + seconds) * FPS)
    return shown == min(behind, pictures) - 1 and abs(float(shown / FPS) - row["last_frame_s"]) < 1e-4


def main() -> int:
    """Return 1 where it is slower than wanted or a clip ends elsewhere."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--minutes", type=float, default=3)
    given.add_argument("--steps", type=int, default=14)
    asked = given.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        pictures = round(60 * asked.minutes * FPS)
        film = data_set(root / "set", asked.minutes, asked.steps, pictures)
        print(f"film: {asked.minutes:g} min, {film.stat().st_size * 8e-6 / asked.minutes / 60:.2f} Mbit/s")
        holds = True
        for options in (["--clips"], ["--frames"], ["--clips", "--frames"]):
            out = root / "_".join(options) / "examples.json"
            began, worked = time.perf_counter(), time.process_time()
            done = CliRunner().invoke(
                kitchensync, ["export", "promqa", str(root / "set"), "--out", str(out), *options]
            )
            took, worked = time.perf_counter() - began, time.process_time() - worked
            if done.exit_code:
                sys.exit(done.output)
            speed = 60 * asked.minutes / took
            holds &= speed >= WANTED
            print(
                f"{' '.join(options):17} {took:6.2f} s, {worked:.2f} s of a processor: {speed:.0f} times real time"
            )
        rows = {row["clip"]: row for row in json.loads(out.read_text())}
        wrong = [name for name, row in rows.items() if not ends_as_stated(out.parent / name, row, pictures)]
        print(f"{len(rows)} clips, {len(wrong)} end elsewhere than stated")
    return int(not holds or bool(wrong) or not rows)


if __name__ == "__main__":
    sys.exit(main())
