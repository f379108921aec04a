"""Files of ELAN: out and back without loss, read by another program, and what is none of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.cli import main
from kitchensync.dataset.annotation.forms.elan import TIMES, parse_elan, write_elan
from kitchensync.dataset.annotation.forms.marked_steps import Marked, TimedMark, task_of_marks

MINUTE_NS = 60 * 10**9


def marked(*spans: tuple[str, int, int], by: str = "ann") -> Marked:
    return Marked(
        "take1", tuple(TimedMark(label, start, end, by, "") for label, start, end in spans), "f" * 64
    )


def told(found: Marked) -> set[tuple[str, int, int, str]]:
    return {(one.label, one.start_ns, one.end_ns, one.by) for one in found.marks}


OVERLAPPING = marked(
    ("stir & <mix> 🍳", 1_033_366_667, 9_000_000_001),
    ("pour", 5_000_000_000, 7_500_000_499),
    ("cut", 8_999_999_999, 12_000_000_000),
    ("wash", 12_000_000_000, 13_000_000_000),
    ("x" * 282, 6_000_000_000, 6_000_000_001),
)


def written(path: Path, one: Marked) -> Path:
    content, times = write_elan(one, "films/take1.mp4", utc_s=1_700_000_000)
    path.write_bytes(content)
    path.with_name(path.name + TIMES).write_bytes(times)
    return path


def test_steps_that_overlap_go_out_and_back_to_the_nanosecond(tmp_path: Path) -> None:
    path = written(tmp_path / "take1.eaf", OVERLAPPING)
    back = parse_elan(path.read_bytes(), path.with_name("take1.eaf.times.json").read_bytes(), path.name)
    assert told(back) == told(OVERLAPPING)
    assert (back.recording, back.proxy_sha256) == ("take1", "f" * 64)
    plain = parse_elan(path.read_bytes(), None, path.name)
    assert (
        max(
            abs(one[1] - other[1]) for one, other in zip(sorted(told(plain)), sorted(told(back)), strict=True)
        )
        <= 500_000
    )


def test_another_reader_takes_the_file_and_no_tier_overlaps_itself(tmp_path: Path) -> None:
    elan = pytest.importorskip(
        "pympi.Elan", reason="pympi-ling reads ELAN's files; it comes with the dev extra"
    )
    file = elan.Eaf(str(written(tmp_path / "take1.eaf", OVERLAPPING)))
    tiers = {name: sorted(file.get_annotation_data_for_tier(name)) for name in file.get_tier_names()}
    assert list(tiers) == ["steps of ann", "steps of ann 2", "steps of ann 3"]
    for spans in tiers.values():
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    expected = {(label, (start + 500_000) // 10**6) for label, start, _, _ in told(OVERLAPPING)}
    assert {(one[2], one[0]) for spans in tiers.values() for one in spans} == expected
    file.to_file(str(tmp_path / "again.eaf"))
    again = parse_elan((tmp_path / "again.eaf").read_bytes(), None, "again.eaf")
    assert told(again) == told(parse_elan((tmp_path / "take1.eaf").read_bytes(), None, "take1.eaf"))


def test_what_was_moved_in_elan_is_where_elan_says(tmp_path: Path) -> None:
    path = written(tmp_path / "take1.eaf", marked(("stir", 1_033_366_667, 9_000_000_001)))
    path.write_bytes(path.read_bytes().replace(b'"1033"', b'"2000"'))
    back = parse_elan(path.read_bytes(), (tmp_path / "take1.eaf.times.json").read_bytes(), path.name)
    assert told(back) == {("stir", 2_000_000_000, 9_000_000_000, "ann")}


SPANS = st.lists(
    st.tuples(st.text("abc<&", min_size=1), st.integers(0, MINUTE_NS), st.integers(0, MINUTE_NS))
)


@pytest.mark.slow
@given(SPANS)
def test_any_steps_go_out_and_back(spans: list[tuple[str, int, int]]) -> None:
    one = marked(*((label, start, start + more) for label, start, more in spans))
    assert told(parse_elan(*write_elan(one, "take1.mp4", utc_s=0), "take1.eaf")) == told(one)


def run(verb: str, *words: object) -> Any:
    return CliRunner().invoke(main, ["annotate", verb, *map(str, words), "--json"])


def test_the_command_reads_elan_and_names_what_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "config.xml").write_text('<View><Label value="stir"/></View>')
    path = written(tmp_path / "take1.eaf", marked(("stir", 10**9, 2 * 10**9 + 1), ("pour", 0, 1)))
    found = json.loads(run("read", path, "--config", tmp_path / "config.xml").stdout)["recordings"]["take1"]
    assert found["annotators"] == {"ann": {"stir": [[1.0, 2.000000001]]}}
    assert found["problems"] == ["unknown label"]


def test_marks_in_seconds_become_frames_that_hold_them() -> None:
    task = task_of_marks(marked(("stir", 40_000_000, 80_000_000), ("pour", 0, 0)), Fraction(25), 9)
    ranges = [entry["value"]["ranges"] for entry in task.annotations[0].result]
    assert ranges == [[{"start": 2, "end": 2}], [{"start": 1, "end": 1}]]


THREE = marked(("stir", 10**9, 2 * 10**9), ("pour", 2 * 10**9, 4 * 10**9), ("cut", 4 * 10**9, 7 * 10**9))
SOUND = '<MEDIA_DESCRIPTOR MEDIA_URL="a.wav" MIME_TYPE="audio/x-wav" TIME_ORIGIN="500" />'


def changed(*pairs: tuple[str, str]) -> Marked:
    text = write_elan(THREE, "take1.mp4", utc_s=0)[0].decode()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return parse_elan(text.encode(), None, "take1.eaf")


def test_elans_time_begins_where_its_film_says_and_a_sound_file_does_not_matter() -> None:
    moved = changed(('MIME_TYPE="video/mp4"', 'MIME_TYPE="video/mp4" TIME_ORIGIN="12000"'))
    twelve = 12 * 10**9
    assert told(moved) == {(one, a + twelve, b + twelve, by) for one, a, b, by in told(THREE)}
    beside = changed(("<MEDIA_DESCRIPTOR", f"{SOUND}<MEDIA_DESCRIPTOR"))
    assert (beside.recording, told(beside)) == ("take1", told(THREE))


def test_exact_times_hold_where_the_file_got_a_time_origin() -> None:
    content, times = write_elan(marked(("stir", 1_033_366_667, 9_000_000_001)), "take1.mp4", utc_s=0)
    content = content.replace(b"MIME_TYPE", b'TIME_ORIGIN="1000" MIME_TYPE')
    assert told(parse_elan(content, times, "take1.eaf")) == {("stir", 2_033_366_667, 10_000_000_001, "ann")}


def test_slots_without_a_time_divide_what_lies_between_their_neighbours() -> None:
    """Where annotations follow on each other; an annotation with an end that nothing tells is named."""
    shared = [("ts3", "ts2"), ("ts5", "ts4")]
    refs = [(f'TIME_SLOT_REF1="{old}"', f'TIME_SLOT_REF1="{new}"') for old, new in shared]
    bare = [
        (f'TIME_SLOT_ID="ts{n}" TIME_VALUE="{ms}"', f'TIME_SLOT_ID="ts{n}"')
        for n, ms in ((2, 2000), (4, 4000))
    ]
    assert told(changed(*refs, *bare)) == {
        ("stir", 10**9, 3 * 10**9, "ann"),
        ("pour", 3 * 10**9, 5 * 10**9, "ann"),
        ("cut", 5 * 10**9, 7 * 10**9, "ann"),
    }
    open_end = changed(('TIME_SLOT_ID="ts6" TIME_VALUE="7000"', 'TIME_SLOT_ID="ts6"'))
    assert (open_end.untimed, len(open_end.marks)) == (("annotation a3",), 2)


def test_an_annotation_without_a_time_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    text = write_elan(THREE, "take1.mp4", utc_s=0)[0].decode().replace('TIME_VALUE="7000"', "")
    (tmp_path / "take1.eaf").write_text(text)
    found = json.loads(run("read", tmp_path / "take1.eaf").stdout)["recordings"]["take1"]
    assert found["annotators"] == {"ann": {"stir": [[1.0, 2.0]], "pour": [[2.0, 4.0]]}}
    assert found["findings"] == [{"word": "no time", "where": "annotation a3"}]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("a.eaf", lambda text: text.replace("ANNOTATION_DOCUMENT", "HTML"), "is not an ELAN file"),
        (
            "a.eaf",
            lambda text: text.replace("MIME_TYPE", 'TIME_ORIGIN="x" MIME_TYPE'),
            "TIME_ORIGIN: 'x' is no",
        ),
        ("a.eaf", lambda text: text.replace('"1000"', '"-1"'), "not a number of milliseconds"),
        ("a.eaf", lambda _: '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares entities"),
    ],
)
def test_what_is_no_such_file_is_refused(
    tmp_path: Path, name: str, change: Callable[[str], str], said: str
) -> None:
    text = write_elan(marked(("stir", 10**9, 2 * 10**9)), "take1.mp4", utc_s=0)[0].decode()
    (tmp_path / name).write_text(change(text))
    ran = run("read", tmp_path / name)
    assert ran.exit_code == 1
    assert said in ran.stderr
