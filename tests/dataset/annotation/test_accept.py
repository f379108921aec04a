"""`kitchensync annotate accept`: marked step times reach a release within a frame; what cannot count is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from labelled import annotation, region, task
from numbered_recording import FRAME_S
from small_recordings import FRAMES

from kitchensync.cli import main

pytestmark = pytest.mark.slow

GOOD = (region(31, 60, "S01 · Do thing 1"), region(101, 190, "S02 · Do thing 2"))


def run(*words: object) -> Any:
    return CliRunner().invoke(main, [*map(str, words), "--json"])


def exported(folder: Path, *annotations: dict[str, Any], **more: Any) -> Path:
    """Write an export of the film of `take1`."""
    one = task(*annotations, **{"fps": 1 / FRAME_S, "frames": FRAMES, "recording": "take1"} | more)
    (folder / "export.json").write_text(json.dumps([one]))
    return folder / "export.json"


def accept(data: Path, number: int, *words: object) -> Any:
    return run("annotate", "accept", data / "take1", "--annotation", number, *words)


def annotations_of(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data / "take1" / "annotations").glob("*.json")}


def released(data: Path, out: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    done = run("release", "captaincook4d", data / "take1", "--out", data.parent / out, "--media", "")
    assert done.exit_code == 0, done.stdout
    content = (data.parent / out / "annotation_json/complete_step_annotations.json").read_text()
    (one,) = json.loads(content).values()
    return one["steps"], json.loads(done.stdout)["recordings"][0]


def test_a_release_has_the_accepted_times_within_a_frame_and_says_so(data: Path) -> None:
    verdict = run("verify", data / "take1").stdout
    before, said = released(data, "touched")
    assert said["step_times"] == "touches"
    file = exported(data.parent, annotation(7, 3, *GOOD))
    done = accept(data, 7, "--file", file)
    assert done.exit_code == 0, done.stdout
    assert json.loads(done.stdout)["status"] == "WARN"
    assert "touched as done, not marked: S03" in done.stderr
    steps, said = released(data, "marked")
    assert said["step_times"] == "annotation 1"
    times = [(step["start_time"], step["end_time"]) for step in steps]
    expected = [(30 * FRAME_S, 60 * FRAME_S), (100 * FRAME_S, 190 * FRAME_S), (-1.0, -1.0), (-1.0, -1.0)]
    assert times == [pytest.approx(one, abs=0.001) for one in expected]
    assert before[0]["end_time"] != steps[0]["end_time"]
    assert run("verify", data / "take1").stdout == verdict
    assert run("export", "steps", data / "take1", "--out", data.parent / "steps.csv").exit_code == 0
    with (data.parent / "steps.csv").open(newline="") as file:
        rows = {row["step_id"]: row for row in csv.DictReader(file)}
    assert float(rows["2"]["end"]) == pytest.approx(190 * FRAME_S, abs=0.001)


def test_another_choice_keeps_all_versions(data: Path) -> None:
    file = exported(data.parent, annotation(7, 3, *GOOD), annotation(8, 4, region(1, 90, "S01 · Do thing 1")))
    assert accept(data, 7, "--file", file).exit_code == 0
    kept = {name: text for name, text in annotations_of(data).items() if name.startswith("steps")}
    assert accept(data, 8).exit_code == 0
    after = annotations_of(data)
    assert {"steps-1.json", "steps-2.json"} == kept.keys()
    assert kept.items() <= after.items()
    accepted = json.loads(after["accepted.json"])
    assert (accepted["annotation"], [one["annotation"] for one in accepted["earlier"]]) == (8, [7])
    assert accept(data, 8).exit_code == 0
    assert annotations_of(data) == after, "the same again changes nothing"


@pytest.mark.parametrize(
    ("more", "bad", "said"),
    [
        ({}, region(1, 9, "S09 · another"), "unknown label: annotation 7 region r1-9-0"),
        ({}, region(1, 9), "region without label: annotation 7 region r1-9-0"),
        ({}, region(9, 1, "S01 · Do thing 1"), "end before start: annotation 7 region r9-1-0"),
        ({}, region(1, FRAMES + 1, "S01 · Do thing 1"), "region past the end"),
        ({"fps": 24.0}, GOOD[0], "region at another rate: 24.0"),
        ({"frames": FRAMES - 1}, GOOD[0], f"its video has {FRAMES - 1} frames"),
        ({"proxy_sha256": "0" * 64}, GOOD[0], "video of another hash"),
    ],
)
def test_what_cannot_count_is_refused_and_nothing_is_accepted(
    data: Path, more: dict[str, Any], bad: dict[str, Any], said: str
) -> None:
    file = exported(data.parent, annotation(6, 3, *GOOD), annotation(7, 3, bad))
    assert accept(data, 6, "--file", file).exit_code == 0
    before = annotations_of(data)["accepted.json"]
    content = json.loads(file.read_text())
    content[0]["data"] |= more
    file.write_text(json.dumps(content))
    done = accept(data, 7, "--file", file)
    assert done.exit_code == 1
    assert said in json.loads(done.stdout)["reason"]
    assert annotations_of(data)["accepted.json"] == before


def test_cancelled_unknown_and_foreign_work_is_refused(data: Path) -> None:
    file = exported(data.parent, annotation(7, 3, *GOOD, cancelled=True))
    for number, said in ((7, "was cancelled"), (9, "no annotation 9 is kept, there are: 7")):
        done = accept(data, number, "--file", file)
        assert done.exit_code == 1
        assert said in done.stderr
    other = exported(data.parent, annotation(7, 3, *GOOD), recording="take2")
    assert "has no annotation of the recording take1" in accept(data, 7, "--file", other).stderr


def spoken(number: int, start_s: float, end_s: float, label: str, text: str) -> tuple[dict[str, Any], ...]:
    value = {"start": start_s, "end": end_s, "channel": 0}
    said = {"id": f"r{number}", "from_name": "action", "to_name": "audio", "type": "labels"}
    written = {"id": f"r{number}", "from_name": "transcription", "to_name": "audio", "type": "textarea"}
    return {**said, "value": {**value, "labels": [label]}}, {**written, "value": {**value, "text": [text]}}


def test_what_was_written_down_of_the_sound_is_in_a_release(data: Path) -> None:
    regions = [
        *spoken(1, 4.0, 5.5, "S02 · Do thing 2", "do  another"),
        *spoken(2, 1.0, 2.0, "S01 · Do thing 1", "do"),
    ]
    silent = spoken(3, 6.0, 7.0, "S01 · Do thing 1", " ")
    file = exported(data.parent, annotation(6, 3, *GOOD), annotation(7, 3, *regions, *silent))
    assert accept(data, 6, "--file", file).exit_code == 0
    steps = annotations_of(data)["accepted.json"]
    for _ in range(2):  # the same again changes nothing
        done = accept(data, 7)
        assert done.exit_code == 0, done.stdout
        said = json.loads(done.stdout)
        assert (said["version"], said["steps"], said["narrations"]) == (1, 0, 2)
    assert annotations_of(data)["accepted.json"] == steps
    released(data, "out")
    content = json.loads((data.parent / "out" / "annotation_json/fine_grained.json").read_text())
    ((first, second),) = content.values()
    assert [(one["text"], one["step"], one["source"]) for one in (first, second)] == [
        ("do", 1, "typed"),
        ("do another", 2, "typed"),
    ]
    times = [one[end] for one in (first, second) for end in ("start", "end")]
    assert times == pytest.approx([1.0, 2.0, 4.0, 5.5], abs=FRAME_S)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (spoken(1, 1.0, 2.0, "S09 · another", "do"), "unknown label: annotation 7 region r1"),
        (spoken(1, 2.0, 1.0, "S01 · Do thing 1", "do"), "end before start: annotation 7 region r1"),
        (spoken(1, 1.0, 2.0, "S01 · Do thing 1", " "), "annotation 7: has no text"),
    ],
)
def test_what_was_written_down_and_cannot_count_is_refused(
    data: Path, bad: tuple[dict[str, Any], ...], said: str
) -> None:
    done = accept(data, 7, "--file", exported(data.parent, annotation(7, 3, *bad)))
    assert done.exit_code == 1
    assert said in json.loads(done.stdout)["reason"]
    assert not (data / "take1" / "annotations" / "narration").exists()


def test_a_damaged_choice_is_named_and_never_released(data: Path) -> None:
    assert accept(data, 7, "--file", exported(data.parent, annotation(7, 3, *GOOD))).exit_code == 0
    path = data / "take1" / "annotations" / "accepted.json"
    path.write_bytes(path.read_bytes().replace(b'"end_frame": 60', b'"end_frame": 61'))
    said = json.loads(run("verify", data / "take1").stdout)
    assert {"file": "annotations/accepted.json", "stream": "annotations", "block": "file"} in said["corrupt"]
    done = run("release", "captaincook4d", data / "take1", "--out", data.parent / "out", "--media", "")
    assert done.exit_code == 1
    assert "accepted.json: is not what was written" in done.stderr
