"""`kitchensync measure`: answers of another program again, identities of the equations, bad cases."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typed_commands import typed

from kitchensync.dataset.measures.coherence import (
    best_question,
    best_threshold,
    measures,
    success_probability,
)
from kitchensync.dataset.measures.span_agreement import agreement

SPANS = st.lists(st.tuples(st.integers(-20, 60), st.integers(-20, 60)), max_size=6)
P = st.floats(0, 1)
TURN = st.fixed_dictionaries(
    dict.fromkeys(("p_yes", "p_no", "prev_p_yes", "prev_p_no", "vqa"), P)
    | {"answer": st.sampled_from(["Yes", "No"])}
)

run = partial(typed, "measure")


def alike(ours: Any, theirs: Any, place: str = "") -> None:
    """Compare every leaf, numbers to 1e-9."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), place
        for key in theirs:
            alike(ours[key], theirs[key], f"{place}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), place
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            alike(one, other, f"{place}[{number}]")
    elif isinstance(theirs, float) and not isinstance(ours, bool):
        assert ours == pytest.approx(theirs, abs=1e-9), place
    else:
        assert ours == theirs, place


def asked(cases: Any, drop: str) -> Any:
    """The same cases without the answers."""
    for case in cases:
        case.pop(drop, None)
        for body in case.get("predictions", {}).values():
            body.pop(drop, None)
    return cases


@pytest.mark.parametrize(
    ("verb", "folder", "file", "key"),
    [
        ("spans", "span-measures", "random_cases.json", "answer"),
        ("coherence", "coherence-measures", "random_dialogs.json", "measures"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_every_leaf_is_that_of_another_program(
    shared_data: Callable[[str], Path], tmp_path: Path, verb: str, folder: str, file: str, key: str,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    text = (shared_data(folder) / file).read_text()
    (tmp_path / "cases.json").write_text(json.dumps(asked(json.loads(text), key)))
    done = run(verb, tmp_path / "cases.json", *options)
    assert done.exit_code == 0
    assert all(line.startswith("kitchensync: WARN: ") for line in done.stderr.splitlines())
    alike(json.loads(done.stdout), json.loads(text))


def test_published_spans_have_the_published_values(shared_data: Callable[[str], Path]) -> None:
    file = shared_data("span-measures") / "published_cases.json"
    for case in json.loads(run("spans", file).stdout):
        for body in case["predictions"].values():
            assert body["answer"]["iou"] == pytest.approx(body["iou"], abs=6e-4)


def covered(spans: list[tuple[int, int]]) -> set[int]:
    return {moment for start, end in spans for moment in range(start, end)}


@given(SPANS, SPANS)
def test_spans_are_sets_of_moments(predicted: list[tuple[int, int]], true: list[tuple[int, int]]) -> None:
    found, ours, theirs = agreement(predicted, true), covered(predicted), covered(true)
    both, either = len(ours & theirs), len(ours | theirs)
    assert found["iou"] == pytest.approx(both / either if either else 0)
    assert found["iop"] == pytest.approx(both / len(ours) if ours else 0)
    assert found["iog"] == pytest.approx(both / len(theirs) if theirs else 0)
    assert found["dropped"] == sum(end <= start for start, end in predicted)
    back = agreement(true, predicted)
    assert (found["iou"], found["iop"], found["iog"]) == (back["iou"], back["iog"], back["iop"])


@given(SPANS.filter(covered))
def test_the_truth_scores_one_and_nothing_scores_zero(true: list[tuple[int, int]]) -> None:
    assert [agreement(true, true)[key] for key in ("iou", "iop", "iog")] == [1, 1, 1]
    assert [agreement([], true)[key] for key in ("iou", "iop", "iog", "dropped")] == [0, 0, 0, 0]


@given(st.lists(TURN, min_size=1, max_size=6), st.lists(P, min_size=6, max_size=6), st.sampled_from([0, 1]))
def test_identities_of_the_coherence_measures(
    turns: list[dict[str, Any]], success: list[float], label: int
) -> None:
    success = success[: len(turns)]
    found = measures(turns, success, label, 0.1)
    gains, doubt = [], 1.0
    for p in success:
        bits = [-q * math.log2(q) for q in (p, 1 - p) if q > 0]
        gains.append(doubt - sum(bits))
        doubt = sum(bits)
    assert found["information_gain"] == pytest.approx(sum(gains), abs=1e-9), "what each turn gains adds up"
    assert found["example_relevance"] == pytest.approx(np.mean(found["relevance"]))
    for turn, adjusted, bits in zip(
        turns, found["reference_adjusted"], found["informativeness"], strict=True
    ):
        assert abs(adjusted) in (pytest.approx(bits), 0)
        assert (adjusted == 0) or not 0.4 < turn["vqa"] < 0.6
    assert all(0 <= value <= 1 for value in [*found["relevance"], *found["informativeness"]])
    swapped = [turn | {"answer": {"Yes": "No", "No": "Yes"}[turn["answer"]],
                       **{f"{k}_yes": turn[f"{k}_no"] for k in ("p", "prev_p")},
                       **{f"{k}_no": turn[f"{k}_yes"] for k in ("p", "prev_p")}} for turn in turns]  # fmt: skip
    assert measures(swapped, success, label, 0.1) == found, "Yes and No are names"
    assert found["decision"] == (success[-1] <= 0.5)


def test_means_by_hand(tmp_path: Path) -> None:
    cases = [
        {"truth": [[0, 10]], "predictions": {"a": {"spans": [[0, 5], [9, 9]]}, "b": {"spans": []}}},
        {"truth": [[0, 10]], "predictions": {"a": {"spans": [[0, 20]]}}},
    ]
    (tmp_path / "c.json").write_text(json.dumps(cases))
    said = json.loads(run("spans", tmp_path / "c.json", "--summary").stdout)
    assert said["models"]["a"] == {"samples": 2, "iou": 0.5, "iop": 0.75, "iog": 0.75, "dropped": 1}
    assert said["models"]["b"] == {"samples": 1, "iou": 0, "iop": 0, "iog": 0, "dropped": 0}
    turn = {"p_yes": 1, "p_no": 0, "prev_p_yes": 1, "prev_p_no": 0.5, "answer": "Yes", "vqa": 1}
    dialogs = [
        {"label": 0, "turns": [turn], "success": [0.9]},
        {"label": 1, "turns": [turn], "success": [0.9]},
    ]
    (tmp_path / "d.json").write_text(json.dumps(dialogs))
    said = json.loads(run("coherence", tmp_path / "d.json", "--summary").stdout)
    assert (said["dialogs"], said["accuracy"]) == (2, 0.5)
    assert said["example_relevance"] == 0.5
    assert said["example_informativeness"] == 0, "certain, and for one of two against the label"
    assert (said["consistency"], said["verifiability"]) == (0.25, 0.25)
    assert said["decision_error"] == pytest.approx(0.5)


def test_what_counts_as_unsure_can_be_said(tmp_path: Path) -> None:
    turn = {"p_yes": 1, "p_no": 0, "prev_p_yes": 1, "prev_p_no": 0, "answer": "Yes", "vqa": 0.65}
    (tmp_path / "d.json").write_text(json.dumps([{"label": 0, "turns": [turn], "success": [1]}]))
    for unsure, value in (("0.1", 1.0), ("0.2", 0.0)):
        (said,) = json.loads(run("coherence", tmp_path / "d.json", "--unsure", unsure).stdout)
        assert said["measures"]["example_informativeness"] == value


def test_what_published_code_does_against_its_paper_is_named_and_can_be_put_right(tmp_path: Path) -> None:
    sure = {"p_yes": 1, "p_no": 0, "prev_p_yes": 1, "prev_p_no": 0.4, "answer": "Yes", "vqa": 1}
    dialog = {"label": 1, "turns": [sure, sure | {"vqa": 0.5}], "success": [0.6, 0.4]}
    (tmp_path / "d.json").write_text(json.dumps([dialog, {"label": 0, "turns": [sure], "success": [0.855]}]))
    done = run("coherence", tmp_path / "d.json")
    assert "in 1 dialogs an unsure turn counts 0" in done.stderr
    assert json.loads(done.stdout)[0]["measures"]["example_informativeness"] == 0
    right = run("coherence", tmp_path / "d.json", "--corrected")
    assert right.stderr == ""
    assert json.loads(right.stdout)[0]["measures"]["example_informativeness"] == -1
    means = json.loads(run("coherence", tmp_path / "d.json", "--corrected", "--summary").stdout)
    assert means["verifiability"] == pytest.approx(0.6 / 2), "what informs against its label proves nothing"
    assert means["best_threshold"] == 0.15, "the lowest that lets 0.145 pass and catches 0.6"
    against = {
        "label": 1,
        "turns": [sure],
        "success": [0.4],
    }  # it decides right, and every answer said the opposite
    (tmp_path / "n.json").write_text(json.dumps([against]))
    done = run("coherence", tmp_path / "n.json", "--summary")
    assert json.loads(done.stdout)["verifiability"] == pytest.approx(-0.6)
    assert "in 1 dialogs verifiability is negative" in done.stderr
    assert run("coherence", tmp_path / "n.json", "--summary", "--corrected").stderr == ""
    twice = [{"truth": [[0, 4], [2, 6]], "predictions": {"a": {"spans": [[0, 6]]}}}]
    (tmp_path / "s.json").write_text(json.dumps(twice))
    done = run("spans", tmp_path / "s.json")
    assert "1 lists have overlapping spans" in done.stderr
    assert json.loads(done.stdout)[0]["predictions"]["a"]["answer"]["iou"] == 1


def test_the_best_threshold_is_by_rates_as_published_or_by_how_many_are_right() -> None:
    decided = [(0.1, 0)] * 8 + [(0.45, 0)] * 2 + [(0.4, 1)]
    assert best_threshold(decided) == 0.11, "2 of 10 false alarms, nothing missed"
    assert best_threshold(decided, by_accuracy=True) == 0.46, "one decision is wrong instead of two"
    assert best_threshold(decided[:10], by_accuracy=True) is None


def test_the_best_question_of_each_turn(tmp_path: Path) -> None:
    turn = {"p_yes": 1, "p_no": 0, "prev_p_yes": 1, "prev_p_no": 0, "answer": "Yes", "vqa": 1}
    asked_ = [{"prev_p_yes": 0.9, "prev_p_no": 0.8}, {"prev_p_yes": 0.9, "prev_p_no": 0.3}, {"prev_p_yes": 0.5,
              "prev_p_no": 0.5}]  # fmt: skip
    dialog = {"label": 0, "turns": [turn | {"candidates": asked_}, turn], "success": [0.5, 0.52]}
    (tmp_path / "d.json").write_text(json.dumps([dialog]))
    (said,) = json.loads(run("coherence", tmp_path / "d.json").stdout)
    assert said["measures"]["best_questions"] == [1, None]


@given(st.lists(st.fixed_dictionaries({"prev_p_yes": P, "prev_p_no": P}), min_size=1, max_size=6))
def test_no_question_is_better_than_the_best(found: list[dict[str, float]]) -> None:
    def value(one: dict[str, float]) -> float:
        doubts = [-sum(q * math.log2(q) for q in (p, 1 - p) if q > 0) for p in one.values()]
        return abs(one["prev_p_yes"] - one["prev_p_no"]) * (1 - min(doubts))

    best = best_question(found)
    assert best is not None
    assert value(found[best]) == pytest.approx(max(map(value, found)), abs=1e-12)


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_an_entailment_model_is_asked_about_success_alone(no: float, yes: float) -> None:
    heard = []

    def model(premise: str, hypothesis: str) -> tuple[float, float]:
        heard.append((premise, hypothesis))
        return no, yes

    p = success_probability(model, "Stir", ["The pan is hot.", "It was stirred."])
    assert p == pytest.approx(math.exp(yes) / (math.exp(yes) + math.exp(no)))
    assert heard == [
        ("The pan is hot. It was stirred.", 'The procedure "Stir" has been successfully completed.')
    ]


GOOD = {"p_yes": 0, "p_no": 0, "prev_p_yes": 0, "prev_p_no": 0, "answer": "Yes", "vqa": 0}


@pytest.mark.parametrize(
    ("verb", "text", "words"),
    [
        ("spans", "{", "no JSON"),
        ("spans", "{}", "not a list"),
        ("spans", '[{"truth": [[0, NaN]], "predictions": {}}]', "no JSON"),
        ("spans", '[{"truth": [[0]], "predictions": {}}]', "a span of 1 numbers"),
        ("spans", '[{"truth": [["a", 1]], "predictions": {}}]', "not a number"),
        ("spans", '[{"truth": [], "predictions": {"a": {}}}]', "[0]: predictions: a: spans: not a list"),
        ("coherence", '[{"label": 2, "turns": [{}], "success": [0]}]', "neither 0 nor 1"),
        ("coherence", '[{"label": 1, "turns": [], "success": []}]', "0 turns"),
        ("coherence", json.dumps([{"label": 1, "turns": [GOOD], "success": [1.2]}]), "not from 0 to 1"),
        ("coherence", json.dumps([{"label": 1, "turns": [GOOD | {"answer": "?"}], "success": [1]}]), "neither Yes"),
    ],
)  # fmt: skip
def test_a_bad_case_is_one_line_with_its_place(tmp_path: Path, verb: str, text: str, words: str) -> None:
    (tmp_path / "c.json").write_text(text)
    done = run(verb, tmp_path / "c.json", "--json")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert words in done.stderr
    said = json.loads(done.stdout)
    assert (said["schema"], said["status"]) == (f"measure-{verb}/1", "refused")
