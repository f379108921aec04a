"""`release stats`: the numbers of an independent program, and of small sets counted by hand."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import made_data_sets
import pytest
from typed_commands import typed

from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError

ROW = ("normal", "normal_hours", "error", "error_hours", "steps")

run = partial(typed, "release", "stats")


def test_the_shared_part_has_the_numbers_of_an_independent_program(
    shared_data: Callable[[str], Path],
) -> None:
    done = run(shared_data("captaincook4d"), "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    expected = json.loads((shared_data("captaincook4d-derived") / "expected.json").read_text())
    for key in ("recordings", "figure19", "table12", "segments", "windows"):
        assert said[key] == expected[key], key
    want = {name: {key: row[key] for key in ROW} for name, row in expected["table11"]["rows"].items()}
    assert said["table11"] == {"rows": want, "total": expected["table11"]["total"]}
    assert said["sources"]["errors"]["made, by the annotations"] == 152


def small(folder: Path) -> Path:
    """Two recordings of a minute each: in one a step is done wrong twice over, in the other one is left out."""
    twice = (TaggedError("Order Error", "early"), TaggedError("Order Error", "and late"))
    one = AnnotatedRecording(
        "1_1", 1, "Tea & <Toast>", 4, 2, (Entry(1, "Pour", 0.5, 2.0, twice), Entry(2, "Stir", 4.0, 6.9))
    )
    entries = (Entry(1, "Pour", 1.0, 3.0), Entry(2, "Stir", -1.0, -1.0))
    other = AnnotatedRecording("1_2", 1, "Tea & <Toast>", 4, 2, entries)
    made_data_sets.write(folder, [one, other])
    graph = {"steps": {"0": "START", "1": "Pour", "2": "Stir", "3": "END"}, "edges": [[0, 1], [1, 2], [2, 3]]}
    (folder / "task_graphs").mkdir()
    (folder / "task_graphs" / "tea&<toast>.json").write_text(json.dumps(graph))
    return folder


def test_a_small_set_is_counted_as_by_hand(tmp_path: Path) -> None:
    said = json.loads(run(small(tmp_path / "set"), "--json").stdout)
    row = {"normal": 1, "normal_hours": 0.0167, "error": 1, "error_hours": 0.0167, "steps": 2}
    assert said["table11"]["rows"] == {"Tea & <Toast>": row}
    counts = {name: said["figure19"][name] for name in ("uses", "entries", "recordings")}
    assert counts == {
        "uses": {"Order Error": 2},
        "entries": {"Order Error": 1},
        "recordings": {"Order Error": 1},
    }
    assert said["segments"] == {
        "seconds": 2 + 3 + 2,
        "seconds_with_errors": 2,
        "early_seconds_per_entry": 1 + 1 + 1,
        "sub_step_seconds": 2 + 2 + 2,
        "sub_step_seconds_with_errors": 2,
    }
    assert said["windows"]["2"] == {"clips": 1, "seconds": 6.4}
    assert said["windows"]["3"] == {"clips": 0, "seconds": 0}
    assert said["table12"]["average_segment_seconds"] == pytest.approx((1.5 + 2.9 + 2.0) / 3, abs=1e-4)


def test_a_film_of_unknown_length_and_sources_that_disagree_are_named(tmp_path: Path) -> None:
    folder = small(tmp_path / "set")
    videos = folder / "metadata" / "video_information.csv"
    lines = videos.read_text().splitlines()
    videos.write_text("\n".join([lines[0], lines[1].replace("1_1,2,4", "1_1,2,5")]) + "\n")
    said = json.loads(run(folder, "--json").stdout)
    assert said["films_of_unknown_length"] == ["1_2"]
    person = said["sources"]["person"]
    assert person["differ"] == ["1_1"]
    assert (person["complete_step_annotations.json"], person["video_information.csv"]) == ({"4": 1}, {"5": 1})
    assert said["sources"]["errors"]["differ"] == ["1_1"]  # a script meant as correct, done with an error
    shown = run(folder).stdout
    assert "two sources differ on person in 1 recordings" in shown
    assert "1_2" in shown


def test_the_page_is_whole_by_itself_and_its_bars_have_the_lengths_of_the_numbers(tmp_path: Path) -> None:
    folder = small(tmp_path / "set")
    done = run(folder, "--html", tmp_path / "page.html", "--csv", tmp_path / "tables")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text()
    assert not re.search(r"(src|href)=|url\(|@import|<script", page)
    assert "Tea &amp; &lt;Toast&gt;" in page
    first = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", page)[0])
    widths = [float(bar.attrib["width"]) for bar in first.iter("rect")]
    assert widths[0] == widths[1] > 0  # one recording without, one with errors
    with (tmp_path / "tables" / "recipes.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["recipe"] == "Tea & <Toast>"
    again = run(folder, "--html", tmp_path / "page.html")
    assert (again.exit_code, "is not written over" in again.stderr) == (1, True)
    assert run(folder, "--html", tmp_path / "page.html", "--force").exit_code == 0


def test_narrations_of_several_people_are_counted_and_compared(tmp_path: Path) -> None:
    folder = small(tmp_path / "set")
    spoken = folder / "annotation_json" / "fine_grained.json"
    row = {"start": 0.5, "end": 2.0, "text": "pour the water", "verb": "pour", "noun": "water", "step": 1}
    other = row | {"text": "pour tea", "noun": "tea", "speaker": 5, "source": "typed"}
    spoken.write_text(json.dumps({"1_1": [row | {"speaker": 3}, other]}))
    assert json.loads(run(folder, "--json").stdout)["narrations"]["narrations"] == 0, "not a release of ours"
    (folder / "kitchensync.jsonl").write_text("")
    done = run(folder, "--html", tmp_path / "page.html", "--json")
    said = json.loads(done.stdout)["narrations"]
    names = ("narrations", "speakers", "pairs", "word_error_rate", "same_verb", "same_noun")
    assert [said[name] for name in names] == [2, 2, 1, 0.6667, 1.0, 0.0]
    assert (
        "<td>word error rate, of the longer text</td><td>0.6667</td>" in (tmp_path / "page.html").read_text()
    )
    assert "2 narrations by 2 people" in run(folder).stdout
    for damage in ("[", '{"1_1": [{"start": "soon"}]}', '{"1_1": [{"start": NaN}]}'):
        spoken.write_text(damage)
        refused = run(folder)
        assert (refused.exit_code, "fine_grained.json" in refused.stderr) == (1, True), refused.output
