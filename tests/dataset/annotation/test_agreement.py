"""How well two annotations agree: figures computed by hand, and moment by moment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from labelled import annotation, region, task

from kitchensync.cli import main
from kitchensync.dataset.annotation.forms.agreement_of_people import agreement, kappa

A = {"stir": [(0.0, 4.0)], "pour": [(5.0, 10.0)], "cut": [(12.0, 14.0)]}
B = {"stir": [(1.0, 4.5)], "pour": [(5.0, 8.0)], "wash": [(16.0, 20.0)]}


def test_figures_by_hand() -> None:
    found = agreement(A, B, 20.0)
    assert (found["labels"], found["labels_on_both_sides"], found["boundaries"]) == (4, 2, 4)
    # Errors: stir 1.0 and 0.5, pour 0.0 and 2.0.
    assert found["boundary_error_median_s"] == 0.75
    assert found["boundary_error_p95_s"] == found["boundary_error_max_s"] == 2.0
    # stir: 1 to 4 of 0 to 4.5; pour: 5 to 8 of 5 to 10; cut and wash: one side only.
    assert found["mean_iou"] == pytest.approx((3 / 4.5 + 3 / 5) / 4)
    # Seconds alike: stir 3, pour 3, nothing 0.5 (4.5 to 5) + 2 (10 to 12) + 2 (14 to 16) = 10.5 of 20.
    # By chance: stir 4 x 3.5, pour 5 x 3, nothing 9 x 9.5, of 400.
    chance = (4 * 3.5 + 5 * 3 + 9 * 9.5) / 400
    assert found["kappa"] == pytest.approx((10.5 / 20 - chance) / (1 - chance))
    assert found["by_boundary"][0] == {"label": "pour", "boundary": "start", "error_s": 0.0}


def test_nothing_against_nothing_has_no_figures() -> None:
    found = agreement({}, {}, 10.0)
    assert [found[k] for k in ("mean_iou", "kappa", "boundary_error_median_s")] == [None, None, None]
    assert agreement(A, A, 20.0)["kappa"] == pytest.approx(1.0)


SPANS = st.dictionaries(
    st.sampled_from("abc"),
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda s: (s[0], s[0] + s[1])), max_size=3
    ),
)


@given(SPANS, SPANS)
def test_kappa_equals_that_of_single_seconds(first: dict, second: dict) -> None:
    def at(spans: dict, second: int) -> frozenset[str]:
        return frozenset(n for n, many in spans.items() if any(s <= second < e for s, e in many))

    sides = [[at(spans, t) for t in range(40)] for spans in (first, second)]
    same = sum(x == y for x, y in zip(*sides, strict=True)) / 40
    counts = [Counter(side) for side in sides]
    chance = sum(counts[0][k] * counts[1][k] for k in counts[0]) / 1600
    expected = None if chance == 1 else (same - chance) / (1 - chance)
    assert kappa(first, second, 40.0) == (expected if expected is None else pytest.approx(expected))


def test_people_of_one_export_and_of_two_are_compared(shared_data: Callable[[str], Path]) -> None:
    config, tasks = shared_data("labelling/config.xml"), shared_data("labelling/tasks.json")
    words = ["annotate", "agree", str(tasks), "--config", str(config), "--fps", "30000/1001"]
    (first, *others) = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)["pairs"]
    expected = json.loads(shared_data("labelling/expected.json").read_text())["recordings"]["1_7"][
        "agreement"
    ]
    assert (first["recording"], first["first"], first["second"], len(others)) == ("1_7", "1", "2", 2)
    assert {key: first[key] for key in expected} == pytest.approx(expected, abs=1e-8)
    shown = CliRunner().invoke(main, words).stdout
    assert shown.splitlines()[1].split()[:5] == ["1_7", "1", "2", "0.684", "1.235"]
    errors = sorted(one["error_s"] for one in first["by_boundary"])
    assert (len(errors), first["boundary_error_p95_s"]) == (20, errors[18]), "19 of 20 are at most that"


def test_two_exports_are_compared_and_one_person_alone_is_refused(tmp_path: Path) -> None:
    for number, frames in ((1, (1, 25)), (2, (6, 30))):
        one = task(annotation(number, number, region(*frames, "S01 · stir")), frames=50)
        (tmp_path / f"{number}.json").write_text(json.dumps([one]))
    files = [str(tmp_path / "1.json"), str(tmp_path / "2.json")]
    (pair,) = json.loads(CliRunner().invoke(main, ["annotate", "agree", *files, "--json"]).stdout)["pairs"]
    assert (pair["first"], pair["second"]) == ("1.json:1", "2.json:2")
    # Frames alike: 6 to 25 with the step, 31 to 50 without; by chance half of the time.
    assert pair["kappa"] == pytest.approx((40 / 50 - 0.5) / 0.5)
    alone = CliRunner().invoke(main, ["annotate", "agree", files[0]])
    assert alone.exit_code == 1
    assert "1.json: no video was marked by two people" in alone.stderr
