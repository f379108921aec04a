"""`kitchensync export assembly`: made cases in the published forms, targets by hand, irregular lines counted."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typed_commands import typed

from kitchensync.dataset.promqa.assembly_steps import KINDS, sample

SEQUENCE = "nusar-2021_action_both_9012-a16_9012_user_id_2021-02-01_162904"
NODES = {
    "0": "start",
    "1": "attach wheel to chassis",
    "2": "attach cabin to chassis",
    "3": "attach roof to cabin",
    "4": "attach basket to ladder",
    "100": "end",
}
"""Node 4 has no edges: it is no part of what can be next or missing."""
EDGES = [("0", "2"), ("0", "1"), ("2", "3"), ("1", "100"), ("3", "100")]
LINES = [
    "300,450,attach,wheel,chassis,correct,",
    "450,660,attach,roof,cabin,mistake,wrong order",
    "660,700,detach,roof,cabin,correction,",
    "690,800,attach,cabin,chassis,correct,",
    "800,900,attach,roof,cabin,correct,previous one is a mistake",
]

run = partial(typed, "export", "assembly")


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    nodes = [
        {"id": one, "data": {"label": label, "checked": one == "3"}, "position": {"x": 0, "y": 0}}
        for one, label in NODES.items()
    ]
    edges = [{"id": f"xy-edge__{a}-{b}", "source": a, "target": b} for a, b in EDGES]
    document = {"metadata": {"total": 1}, "examples": [{"toy_id": "a16", "nodes": nodes, "edges": edges}]}
    (tmp_path / "all.json").write_text(json.dumps(document))
    (tmp_path / "annots").mkdir()
    return tmp_path / "all.json"


def rows_of(graphs: Path, lines: list[str], *options: str) -> tuple[list[dict[str, Any]], Any]:
    (graphs.parent / "annots" / f"{SEQUENCE}.csv").write_text("\n".join(lines) + "\n")
    done = run(graphs, graphs.parent / "annots", "--out", graphs.parent / "out.json", "--force", *options)
    assert done.exit_code == 0, done.output
    return json.loads((graphs.parent / "out.json").read_text()), done


def test_a_row_for_each_moment_with_what_is_next_and_missing(graphs: Path) -> None:
    rows, done = rows_of(graphs, LINES, "--strict", "--json")
    assert json.loads(done.stdout)["rows"] == 3
    assert [(row["end"], row["history"]) for row in rows] == [
        (22.0, ["attach wheel to chassis", "attach roof to cabin"]),
        (800 / 30, ["attach wheel to chassis", "attach cabin to chassis"]),
        (30.0, ["attach wheel to chassis", "attach cabin to chassis", "attach roof to cabin"]),
    ], "none before 10 s, none while the next step is under way"
    assert [(row["next"], row["missing"]) for row in rows] == [
        ([], ["attach cabin to chassis"]),
        (["attach roof to cabin"], []),
        ([], []),
    ]
    assert [row["w_screw"] for row in rows] == [True, False, True]
    assert {row["is_screwed"] for row in rows} == {None}
    assert {(row["toy"], row["sequence"], row["irregular_lines"]) for row in rows} == {("a16", SEQUENCE, 0)}


def test_eight_candidates_with_what_the_remark_says(graphs: Path) -> None:
    first, second, third = (row["candidates"] for row in rows_of(graphs, LINES)[0])
    assert set(first) == {
        "next", "missing", "order", "past", "misadjustment", "location", "general", "current_general",
    }  # fmt: skip
    assert (first["order"], first["past"], first["location"], first["general"]) == (True, False, False, None)
    assert not any(second[kind] for kind in ("order", "past", "misadjustment", "location"))
    assert third["past"]


def test_what_is_taken_apart_is_the_latest_that_was_put_together(graphs: Path) -> None:
    lines = [
        "0,300,attach,wheel,chassis,correct,",
        "300,400,attach,roof,cabin,correct,",
        "400,500,attach,wheel,chassis,correct,",
        "500,600,detach,wheel,chassis,mistake,shouldn't have happened",
        "600,700,detach,basket,ladder,mistake,",
    ]
    rows, _ = rows_of(graphs, lines)
    both = ["attach wheel to chassis", "attach roof to cabin"]
    assert [row["history"] for row in rows[2:]] == [[*both, "attach wheel to chassis"], both, both]
    assert rows[3]["candidates"]["misadjustment"]
    assert rows[4]["w_screw"] is None, "the graph has no such step"


def test_irregular_lines_are_counted_and_nothing_is_guessed(graphs: Path) -> None:
    lines = [
        "0,300,attach,wheel,chassis,correct,",
        "300,400,attach,roof cabin,correct,",
        "400,500,attach,cabin,chassis,correct500,600,attach,roof,cabin,correct,",
        "600,700,interior,wheel,chassis,mistake,",
        "",
        "700,800,attach,cabin,chassis,mistake,wrong postion",
        "x,900,attach,roof,cabin,correct,",
        "900,800,attach,roof,cabin,correct,",
    ]
    rows, done = rows_of(graphs, lines)
    assert f"{SEQUENCE}.csv: 6 irregular lines" in done.stderr
    assert {row["irregular_lines"] for row in rows} == {6}
    assert [row["history"] for row in rows] == [
        ["attach wheel to chassis"], [], ["attach cabin to chassis"],
    ], "`interior` is a slip for `detach`; a remark that is misspelt is kept out of the answers"  # fmt: skip
    assert not rows[2]["candidates"]["location"]
    assert run(graphs, graphs.parent / "annots", "--out", graphs.parent / "b", "--strict").exit_code == 1


def test_sequences_without_a_graph_are_left_out_and_named(graphs: Path) -> None:
    annots = graphs.parent / "annots"
    (annots / "9012-b01a_9012.csv").write_text(LINES[0] + "\n")
    done = run(graphs, annots, "--out", graphs.parent / "a.json")
    assert (done.exit_code, (graphs.parent / "a.json").exists()) == (2, False)
    _, done = rows_of(graphs, LINES)
    assert "left out: 9012-b01a_9012.csv: no graph of its toy" in done.stderr


def test_fine_actions_say_what_was_screwed(graphs: Path) -> None:
    fine = graphs.parent / "fine.csv"
    fine.write_text(
        "id,video,start_frame,end_frame,action_cls\n"
        f"1,{SEQUENCE}/C10095_rgb.mp4,310,440,screw chassis with hand\n"
        f"2,{SEQUENCE}/C10095_rgb.mp4,650,665,screw cabin\n"
        f"3,{SEQUENCE}/C10095_rgb.mp4,820,850,pick up screw\n"
    )
    both = [*LINES[:1], "660,720,attach,cabin,chassis,correct,"]
    rows, _ = rows_of(graphs, both, "--fine", str(fine))
    assert [row["is_screwed"] for row in rows] == [False], (
        "the second lies in no step, the third screws nothing"
    )
    lines = ["0,300,attach,roof,cabin,correct,", "300,450,attach,wheel,chassis,correct,"]
    rows, _ = rows_of(graphs, lines, "--fine", str(fine))
    assert [(row["is_screwed"], row["label"]) for row in rows] == [(False, "correct"), (True, "correct")]
    fine.write_text("video,start\na,1\n")
    done = run(graphs, graphs.parent / "annots", "--fine", fine, "--out", graphs.parent / "x")
    assert (done.exit_code, "not a table of fine actions" in done.stderr) == (1, True)


def test_a_sample_keeps_to_its_limits_and_is_the_same_again(graphs: Path) -> None:
    lines = [
        f"{300 * n},{300 * n + 200},attach,wheel,chassis,{'mistake' if n == 5 else 'correct'},"
        for n in range(9)
    ]
    (graphs.parent / "annots" / f"other-a16-{1}.csv").write_text("\n".join(lines) + "\n")
    first, done = rows_of(graphs, lines, "--sample", "--json")
    said = json.loads(done.stdout)
    assert said["kinds"] == {"next": 4, "missing": 4, "general": 4, "current_general": 4}, (
        "no remark, no such question"
    )
    assert said["moments"] == 16
    for kind in said["kinds"]:
        for sequence in {row["sequence"] for row in first}:
            ours = [row for row in first if (row["kind"], row["sequence"]) == (kind, sequence)]
            assert len(ours) == 2
            assert "mistake" in {row["label"] for row in ours}, (
                "a mistake in the last step itself comes first"
            )
    assert rows_of(graphs, lines, "--sample")[0] == first
    assert rows_of(graphs, lines, "--sample", "--seed", "7")[0] != first


def test_a_sample_has_at_most_a_hundred_of_a_kind() -> None:
    asked = {kind: kind in ("next", "past") for kind in KINDS}
    rows = [
        {
            "sequence": f"s{n}",
            "end": float(k),
            "label": "correct",
            "candidates": asked | {"past": k == 0 and n < 9},
        }
        for n in range(70)
        for k in range(4)
    ]
    assert Counter(row["kind"] for row in sample(rows, 1)) == {"next": 100, "past": 9}


def test_rows_tell_how_long_nothing_new_begins(graphs: Path) -> None:
    lines = ["0,300,attach,wheel,chassis,correct,", "345,450,attach,cabin,chassis,correct,"]
    assert [row["free_s"] for row in rows_of(graphs, lines)[0]] == [1.5, None]
