"""`release check` on a small data set: nothing to say of what was written, and every planted fault is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from recipe_app.graphs.formats.annotations import Entry, TaggedError
from recipe_app.releases.check import check
from recipe_app.releases.data_set import Cooked, numbered, text_files
from recipe_app.releases.entries import Told
from recipe_app.releases.numbering import Numbering
from recipe_app.releases.sums import hashes_of, sums_of

STEPS = {"1": {"label": "Fill-Fill a pot"}, "2": {"label": "Boil-Boil water"}}


def cooked(number: int, numbering: Numbering) -> Cooked:
    told = [
        Told(
            Entry(
                numbering.step(step["label"]),
                step["label"],
                float(place),
                place + 1.5,
                (TaggedError("Other", "spilt"),) * (number == 2),
            ),
            int(node),
        )
        for place, (node, step) in enumerate(STEPS.items())
    ]
    edges = [[0, 1], [1, 2], [2, 3]]
    return Cooked(f"uuid-{number}", "tea", "Tea", "Basil", "north", number == 2, STEPS, edges, told, 5.0)


@pytest.fixture
def data_set(tmp_path: Path) -> Path:
    numbering = Numbering()
    members = [numbered(cooked(number, numbering), numbering) for number in (1, 2)]
    texts = text_files(members, numbering)
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    seal(tmp_path)
    return tmp_path


def seal(folder: Path) -> None:
    names = [
        p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS"
    ]
    (folder / "SHA256SUMS").write_text(sums_of(hashes_of(folder, names)))


def test_what_was_written_is_as_it_must_be(data_set: Path) -> None:
    found = check(data_set, words=frozenset({"Basil", "uuid-1"}))
    assert (found.differences, found.names) == ([], [])
    stated = dict(reversed(line.split("  ")) for line in (data_set / "SHA256SUMS").read_text().splitlines())
    assert stated == {name: hashlib.sha256((data_set / name).read_bytes()).hexdigest() for name in stated}
    complete = json.loads((data_set / "annotation_json/complete_step_annotations.json").read_text())
    assert list(complete) == ["1_1", "1_26"]


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return plant


TIMES, COMPLETE = "annotation_csv/step_annotations.csv", "annotation_json/complete_step_annotations.json"
LENGTHS, GRAPH = "metadata/video_information.csv", "task_graphs/tea.json"
FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "another time in one of the files": (replaced(TIMES, '"1.5"', '"1.6"'), TIMES),
    "an end behind the film": (replaced(LENGTHS, "5.00", "2.00"), "1_1[1]"),
    "a step that the graph lacks": (replaced(GRAPH, "Boil-Boil water", "Cook-Cook water"), GRAPH),
    "an id of another form": (replaced(COMPLETE, "1_26", "take-2"), "annotation_json"),
    "a graph that is not there": (lambda folder: (folder / GRAPH).unlink(), GRAPH),
    "a file of something else": (lambda folder: (folder / "notes.txt").write_text("x"), "notes.txt"),
    "a name": (replaced("kitchensync.jsonl", "entry", "Basil"), "kitchensync.jsonl"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("sealed", [False, True])
def test_a_planted_fault_is_found_and_named(data_set: Path, fault: str, sealed: bool) -> None:
    plant, named = FAULTS[fault]
    plant(data_set)
    if sealed:
        seal(data_set)  # what a careless hand would do: checksums of the faulty files
    found = check(data_set, words=frozenset({"Basil"}))
    assert named in json.dumps([found.differences, found.names])
