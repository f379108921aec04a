"""`kitchensync export localization`: the published files again, and what is said of their faults."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import made_data_sets
import pytest
from typed_commands import typed

from kitchensync.storage.options import outputs
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError

PUBLISHED = ("combined/recordings.json", "normal/environment.json", "normal/recordings.json")

run = partial(typed, "export", "localization")


def split_of(folder: Path, made: list[AnnotatedRecording], kind: str = "recordings") -> Path:
    ids = [one.recording_id for one in made]
    parts = {"train": ids[2:], "val": ids[1:2], "test": ids[:1]}
    folder.mkdir(exist_ok=True)
    (folder / f"{kind}_data_split_combined.json").write_text(json.dumps(parts))
    return folder


@pytest.fixture
def made(tmp_path: Path) -> list[AnnotatedRecording]:
    """Three recordings; the first has an error, and its last step was not done."""
    found = made_data_sets.recordings(3)[:3]
    first = found[0]
    skipped = Entry(77, "Do-Do not", -1.0, -1.0)
    spilt = replace(first.entries[0], errors=(TaggedError("Other", "spilt"),))
    found[0] = replace(first, entries=(spilt, *first.entries[1:], skipped))
    made_data_sets.write(tmp_path / "set", found)
    return found


def test_the_published_files_come_out_byte_for_byte(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, published = shared_data("captaincook4d"), shared_data("captaincook4d-derived") / "actionformer"
    done = run(folder, "--splits", folder / "data_splits", "--out", tmp_path, "--json")
    assert done.exit_code == 0, done.output
    for name in PUBLISHED:
        assert (tmp_path / name).read_bytes() == (published / name).read_bytes()
    said = json.loads(done.stdout)
    assert (said["schema"], said["status"]) == ("export-localization/1", "WARN")
    expected = json.loads((published.parent / "expected.json").read_text())["actionformer"]
    wanted = {f"{name}.json": found["negative_segments"] for name, found in expected.items()}
    assert {name: said["not_done"][name] for name in wanted} == wanted
    assert "combined/recordings: 200 steps that were not done are at -1 s" in done.stderr
    assert "152 recordings with errors are marked as having none" in done.stderr
    assert not [name for name in said["files"] if "recipes" in name], "the published lists are empty"


def test_a_better_file_leaves_out_what_was_not_done_and_marks_recordings(
    made: list[AnnotatedRecording], tmp_path: Path
) -> None:
    splits = split_of(tmp_path / "splits", made)
    done = run(tmp_path / "set", "--splits", splits, "--out", tmp_path / "out", "--drop-missing", "--strict")
    assert done.exit_code == 0, done.output
    database = json.loads((tmp_path / "out/combined/recordings.json").read_text())["database"]
    by_id = {one.recording_id: one for one in made}
    assert [(one, body["subset"]) for one, body in database.items()] == [
        (made[2].recording_id, "Training"),
        (made[1].recording_id, "Validation"),
        (made[0].recording_id, "Test"),
    ]
    for one, body in database.items():
        entries = [entry for entry in by_id[one].entries if entry.start_s >= 0]
        assert [found["label_id"] for found in body["annotations"]] == [entry.step_id for entry in entries]
        assert body["has_error"] == any(entry.errors for entry in entries)
    assert any(body["has_error"] for body in database.values())


def test_faults_are_warned_of_and_strict_lets_them_fail(
    made: list[AnnotatedRecording], tmp_path: Path
) -> None:
    splits = split_of(tmp_path / "splits", made)
    (splits / "recipes_data_split_combined.json").write_text('{"train": [], "val": [], "test": []}')
    (splits / "steps_data_split_combined.json").write_text('{"train": {"1_1": [0]}, "val": {}, "test": {}}')
    given = (tmp_path / "set", "--splits", splits, "--out", tmp_path / "out")
    done = run(*given)
    assert done.exit_code == 0
    for words in (
        "1 steps that were not done",
        "holds no recording",
        "divides steps",
        "marked as having none",
    ):
        assert words in done.stderr
    database = json.loads((tmp_path / "out/combined/recordings.json").read_text())["database"]
    assert not any(body["has_error"] for body in database.values()), "as published"
    assert database[made[0].recording_id]["annotations"][-1]["segment(frames)"] == [-30.0, -29.0]
    assert run(*given, "--strict").exit_code == 1
    assert {path.name for path in (tmp_path / "out/combined").iterdir()} == {"recordings.json"}


def test_pictures_are_counted_at_the_rate_that_is_given(
    made: list[AnnotatedRecording], tmp_path: Path
) -> None:
    splits = split_of(tmp_path / "splits", made)
    done = run(tmp_path / "set", "--splits", splits, "--out", tmp_path / "out", "--fps", "30000/1001")
    assert done.exit_code == 0, done.output
    said = json.loads((tmp_path / "out/combined/recordings.json").read_text())
    assert said["version"] == "CaptainCookDataset-30000/1001fps-353Steps"
    entry = made[1].entries[1]
    found = said["database"][made[1].recording_id]["annotations"][1]
    rate = 30000 / 1001
    assert found["segment(frames)"] == [math.floor(entry.start_s * rate), math.ceil(entry.end_s * rate)]
    for wrong in ("0", "-1", "fast", "1/0"):
        assert run(tmp_path / "set", "--splits", splits, "--out", tmp_path, "--fps", wrong).exit_code == 2


def test_a_step_after_the_end_of_its_film_is_named(made: list[AnnotatedRecording], tmp_path: Path) -> None:
    late = Entry(5, "Do-Do late", 50.0, 61.5)
    made[2] = replace(made[2], entries=(*made[2].entries, late))
    made_data_sets.write(tmp_path / "set", made)
    done = run(tmp_path / "set", "--splits", split_of(tmp_path / "s", made), "--out", tmp_path / "out")
    assert f"1 steps end after their video: {made[2].recording_id} step 5" in done.stderr


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"train": ["9_99"], "val": [], "test": []}, "9_99 is not in the data set"),
        ({"train": ["ID", "ID"], "val": [], "test": []}, "is in it twice"),
        ({"train": ["ID"], "tset": []}, "unknown key 'tset'"),
        ({"train": "all"}, "not a list"),
        ({}, "no <kind>_data_split_<type>.json that holds a recording"),
    ],
)
def test_a_split_that_does_not_fit_is_refused_in_one_line(
    made: list[AnnotatedRecording], tmp_path: Path, parts: object, words: str
) -> None:
    splits = tmp_path / "splits"
    splits.mkdir()
    text = json.dumps(parts).replace("ID", made[0].recording_id)
    (splits / "recordings_data_split_combined.json").write_text(text)
    done = run(tmp_path / "set", "--splits", splits, "--out", tmp_path / "out")
    assert done.exit_code in (1, 2)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_film_of_unknown_length_is_refused(made: list[AnnotatedRecording], tmp_path: Path) -> None:
    (tmp_path / "set/metadata/video_information.csv").unlink()
    done = run(tmp_path / "set", "--splits", split_of(tmp_path / "s", made), "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "the length of its video is not known" in done.stderr


def test_a_file_that_differs_needs_force_and_a_full_disk_leaves_nothing(
    made: list[AnnotatedRecording], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (tmp_path / "set", "--splits", split_of(tmp_path / "s", made), "--out", tmp_path / "out")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(outputs, "sync_path", full)
        done = run(*given)
    assert done.exit_code == 1
    assert "cannot be written (no space left on device)" in done.stderr
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert run(*given).exit_code == 0
    assert run(*given).exit_code == 0, "what is there as it should be is left alone"
    file = tmp_path / "out/combined/recordings.json"
    whole = file.read_bytes()
    file.write_text("mine")
    refused = run(*given)
    assert (refused.exit_code, file.read_text()) == (1, "mine")
    assert "--force" in refused.stderr
    assert run(*given, "--force").exit_code == 0
    assert file.read_bytes() == whole
