"""Published ids: given once, the same in every later release, never twice."""

from __future__ import annotations

import pytest

from kitchensync.dataset.source.numbering import Numbering, parse_numbering
from kitchensync.task_graphs.errors import BadGraph


def test_ids_stay_when_recordings_are_added() -> None:
    first = Numbering()
    given = [first.recording(f"u{n}", 3, errors_planned=n % 2 == 1) for n in range(60)]
    again = parse_numbering(first.as_text(), "table")
    assert [again.recording(f"u{n}", 3, errors_planned=n % 2 == 1) for n in range(60)] == given
    assert again.recording("another", 3, errors_planned=True) not in given
    assert len(set(given)) == 60


def test_the_number_tells_whether_errors_were_planned_as_in_the_published_set() -> None:
    numbering = Numbering()
    correct = [numbering.recording(f"c{n}", 1, errors_planned=False) for n in range(25)]
    wrong = [numbering.recording(f"w{n}", 1, errors_planned=True) for n in range(25)]
    assert correct == [f"1_{n}" for n in range(1, 26)]
    assert wrong == [f"1_{n}" for n in range(26, 51)]
    assert numbering.recording("c25", 1, errors_planned=False) == "1_1001"
    assert numbering.recording("w25", 1, errors_planned=True) == "1_1026"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema": "other"}',
        '{"schema": "release-numbering/1", "recordings": {"a": "1_1", "b": "1_1"}, "activities": {}, "steps": {}, '
        '"persons": {}, "environments": {}}',
        '{"schema": "release-numbering/1", "recordings": {}, "activities": {"x": "1"}, "steps": {}, "persons": {}, '
        '"environments": {}}',
    ],
)
def test_a_table_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadGraph, match="not a table of published ids"):
        parse_numbering(text, "table.json")
