"""Evidence marked on the film: what holds of two passes, blindness over HTTP, and from film to export by keyboard."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, chromium
from click.testing import CliRunner
from filmed_cooking import cook_on_film
from hypothesis import given
from hypothesis import strategies as st
from screens import findings

from kitchensync.cli import main
from kitchensync.dataset.films.review_film import facts_of
from kitchensync.dataset.grounding.object_questions import MULTI_HOP, NEEDLE
from kitchensync.recipe_app.review.film_evidence import AGREED_IOU, Pass, clip_frames, record_of, standing

ITEM = {
    "item": "q", "node": 0, "question_id": "q", "recording": "r", "clip_start": 2.0, "clip_end": 6.0, "task": "Tea",
    "qa_type": "Readiness Assessment", "question": "?", "answer": "a", "texts": ["x"], "spans": [[2.0, 6.0]],
    "about": [0],
}  # fmt: skip
STANDS = """() => {
    const { film } = document.getElementById("reviewer");
    return film.video.paused && !film.video.seeking && film.shown === film.wanted;
}"""
SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=4)


def pictures(spans: Any) -> set[int]:
    return {at for start, end in spans for at in range(int(start), int(end))}


@given(SPANS, SPANS, st.booleans())
def test_what_holds_of_two_passes_is_what_both_marked(
    one: list[tuple[int, int]], other: list[tuple[int, int]], is_same: bool
) -> None:
    both = [tuple((start, start + length) for start, length in spans) for spans in (one, other)]
    passes = [Pass("a", both[0]), Pass("a" if is_same else "b", both[1])]
    first, second = map(pictures, both)
    found = standing(passes, None)
    iou = len(first & second) / len(first | second) if first | second else 0.0
    assert found.iou == pytest.approx(iou, abs=1e-12)
    if not first and not second:
        assert found.state == "rejected"
    elif is_same and iou >= AGREED_IOU:
        assert found.state == "accepted"
        assert found.holds is not None
        assert pictures(found.holds.spans) == first & second
    else:
        assert found.state == "to_rule"
    for ruling, holds in (("neither", None), ("first", passes[0])):
        ruled = standing(passes, ruling)
        assert (ruled.holds == holds) if found.state == "to_rule" else (ruled == found)


def test_evidence_is_in_seconds_of_the_clip_and_labelled_by_how_many_moments_it_is() -> None:
    fps = Fraction(10)
    assert clip_frames(ITEM, fps) == (20, 59)
    assert clip_frames({"clip_start": 1.04, "clip_end": 1.51}, fps) == (10, 15)
    passes = [Pass("a", ((20.0, 30.0), (40.0, 60.0))), Pass("b", ((50.0, 60.0),))]
    row = record_of(ITEM, passes, standing(passes, "first"), fps)
    assert (row["evidence"], row["reasoning"]) == ([[0.0, 1.0], [2.0, 4.0]], MULTI_HOP)
    assert row["iou"] == pytest.approx(1 / 3)
    assert [one["evidence"] for one in row["passes"]] == [[[0.0, 1.0], [2.0, 4.0]], [[3.0, 4.0]]]
    row = record_of(ITEM, passes, standing(passes, "second"), fps)
    assert (row["evidence"], row["reasoning"], row["answer"]) == ([[3.0, 4.0]], NEEDLE, "b")
    assert "evidence" not in record_of(ITEM, passes, standing(passes, "neither"), fps)


def marked(kitchen: Any, recording: str, client: Any, edits: list[dict[str, Any]], **answers: str) -> Any:
    body = {"op_id": kitchen.operation(recording, "note", {})["op_id"], "edits": edits, "answers": answers}
    return client.post(f"/api/v1/desk/recordings/{recording}/evidence", json=body)


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_from_film_to_marked_evidence_to_export_in_a_browser(kitchen: Any, tmp_path: Path) -> None:
    recording, folder, _ = cook_on_film(kitchen)
    address = f"/api/v1/desk/recordings/{recording}/evidence"
    out = tmp_path / "questions.json"
    words = ["export", "windows", str(folder), "--questions", "--sample", "3", "--sizes", "2,3"]
    done = CliRunner().invoke(main, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    written = json.loads(out.read_text())
    written[0] |= {"question": "Is the water hot?"}
    theirs = [one | {"recording": "take2"} for one in written * 1000]
    out.write_text(json.dumps([*theirs, *written, written[0] | {"question": "?", "dropped": "commonsense"}]))
    ann, ben, third = (kitchen.desk("researcher") for _ in range(3))
    people = [one.get("/api/v1/me").json()["person"]["id"] for one in (ann, ben, third)]
    assert kitchen.desk("annotator").get(address).status_code == 401
    assert third.post(f"{address}/assign", json={"people": people}).status_code == 422
    assert third.post(f"{address}/assign", json={"people": people[:2]}).status_code == 200
    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, ann.headers["x-kitchensync-login"])
        desk.go(f"/recordings/{recording}/evidence")
        page = desk.page
        page.get_by_label("Questions that export windows wrote").set_input_files(out)
        assert findings(page) == []
        page.get_by_role("button", name="Ask what can be asked").focus()
        page.keyboard.press("Enter")
        page.locator("canvas.lanes").wait_for(timeout=60_000)
        said = ann.get(address).json()
        assert [one["question"] for one in said["questions"]] == [one["question"] for one in written]
        facts = facts_of(folder, 360)
        assert facts is not None
        fps = facts["fps"][0] / facts["fps"][1]
        assert marked(kitchen, recording, third, [], **{said["questions"][0]["item"]: "x"}).status_code == 403
        strange = said["marks"][0] | {"node": 77}
        assert marked(kitchen, recording, ben, [strange]).status_code == 422
        mark_by_keyboard(page)
        page.get_by_label("Question", exact=True).select_option("0")
        page.get_by_label("The answer").fill("It boiled.")
        page.get_by_label("The answer").press("Tab")
        assert findings(page) == []
        submit(page)
        page.get_by_text("Submitted. You can go on").wait_for()
        mine = ann.get(address).json()
        for other in (ben, third):  # blind: nothing of another's pass before both have submitted
            seen = other.get(address)
            assert seen.json().keys().isdisjoint({"standing", "mean_iou"})
            assert "It boiled." not in seen.text
            assert all(mark["start"] is None for mark in seen.json()["marks"])
        assert third.post(f"{address}/accept", json={}).status_code == 409
        assert "outside the clip" in submitted_outside(kitchen, recording, ben, facts["frames"])
        desk = at_the_desk(browser, kitchen.url, ben.headers["x-kitchensync-login"])
        desk.go(f"/recordings/{recording}/evidence")
        page = desk.page
        page.locator("canvas.lanes").wait_for(timeout=60_000)
        mark_by_keyboard(page, later=3)
        submit(page)
        page.locator("#standing").wait_for()  # the last one sees at once what both said
        other = ben.get(address).json()
        found = third.get(address).json()
        overlaps = overlaps_of(mine["marks"], other["marks"])
        assert [one["iou"] for one in found["standing"]] == pytest.approx(overlaps, abs=1e-12)
        assert found["mean_iou"] == pytest.approx(sum(overlaps) / 3, abs=1e-12)
        assert found["to_rule"] == sum(one["state"] == "to_rule" for one in found["standing"]) > 0
        desk = at_the_desk(browser, kitchen.url, third.headers["x-kitchensync-login"])
        desk.go(f"/recordings/{recording}/evidence")
        page = desk.page
        page.locator("#standing").wait_for(timeout=60_000)
        assert page.locator("#standing").get_by_text("overlap of all, mean").count() == 1
        page.locator("#standing input[value=first]").first.focus()
        for left in reversed(range(found["to_rule"])):
            page.keyboard.press("Space")
            page.get_by_text(f"{left} answer{'' if left == 1 else 's'} to rule on").wait_for()
        assert findings(page) == []
        page.get_by_role("button", name="Keep with the recording").focus()
        page.keyboard.press("Enter")
        page.get_by_text("Kept in annotations/").wait_for()
        assert desk.problems == []
    kitchen.tools.films.close()
    exported(folder, tmp_path, mine, fps)


def submitted_outside(kitchen: Any, recording: str, client: Any, frames: int) -> str:
    """Try to submit marks as long as the film, which is refused; take them back. Return what was answered."""
    given = client.get(f"/api/v1/desk/recordings/{recording}/evidence").json()["marks"]
    whole = [mark | {"start": 0, "end": frames - 1, "checked": ["start", "end"]} for mark in given]
    assert marked(kitchen, recording, client, whole).status_code == 200
    refused = client.post(f"/api/v1/desk/recordings/{recording}/evidence/submit", json={})
    assert refused.status_code == 409
    assert marked(kitchen, recording, client, given).status_code == 200
    return str(refused.text)


def overlaps_of(*people: list[dict[str, Any]]) -> list[float]:
    """Return for each question the pictures that both marked in those that either marked, one by one."""
    found = []
    for node in range(3):
        one, other = (
            {at for m in marks if m["node"] == node and m["end"] for at in range(m["start"], m["end"] + 1)}
            for marks in people
        )
        found.append(len(one & other) / len(one | other) if one | other else 0.0)
    return found


def mark_by_keyboard(page: Any, later: int = 0) -> None:
    """Mark a moment of each question, in the first one two, the last one as not told by the film.

    The first of all begins so many seconds after the place that the page shows.
    """
    page.locator("canvas.lanes").focus()
    for _ in range(later):
        press(page, "Shift+ArrowRight")
    while page.locator("#left").get_attribute("data-open") != "0":
        node = page.locator("#step").input_value()
        if node == "2":
            page.keyboard.press("d")
            continue
        for keys in (
            (["s", "Enter"], ["s"], ["a"], ["s", "Enter"])
            if node == "0"
            else (["s", "Enter"], ["s", "Enter"])
        ):
            press(page, "Shift+ArrowRight")
            for key in keys:
                page.keyboard.press(key)


def press(page: Any, key: str) -> None:
    """Press a key that goes to another picture; wait until that is shown."""
    page.keyboard.press(key)
    page.wait_for_function(STANDS)


def submit(page: Any) -> None:
    page.get_by_role("button", name="Submit").focus()
    page.keyboard.press("Enter")


def exported(folder: Path, root: Path, mine: dict[str, Any], fps: float) -> None:
    """What the desk kept is what `export windows --verified` writes; each recording is in one part alone."""
    kept = json.loads((folder / "annotations" / "evidence-1.json").read_text())["questions"]
    assert len(kept) == 3
    for split, code in ((["take1"], 0), ([], 0)):
        (root / "split.json").write_text(json.dumps({"train": [], "val": [], "test": split}))
        out = root / f"verified{len(split)}.json"
        words = [
            *("export", "windows", str(folder), "--verified", "--split", str(root / "split.json")),
            *("--json",),
        ]
        done = CliRunner().invoke(main, [*words, "--out", str(out)])
        assert done.exit_code == code, done.output
        rows, said = json.loads(out.read_text()), json.loads(done.stdout)
        assert said["by_split"] == ({"test": len(rows)} if split else {})
    rows = json.loads((root / "verified1.json").read_text())
    assert [row["question_id"] for row in rows] == [one["question_id"] for one in kept if one["valid"]]
    assert said["rejected"] == 3 - len(rows)
    assert said["mean_iou"] == pytest.approx(sum(one["iou"] for one in kept) / 3), "of all, as at the desk"
    for number, row in enumerate(rows):
        assert (row["id"], row["recording"], row["source"], row["view"]) == (
            number, "take1", "KitchenSync", "Egocentric")  # fmt: skip
        node = next(k for k, one in enumerate(mine["questions"]) if one["question_id"] == row["question_id"])
        spans = sorted(
            (m["start"], m["end"] + 1) for m in mine["marks"] if m["node"] == node and not m["removed"]
        )
        from_start = [[max(0.0, at / fps - row["clip_start"]) for at in span] for span in spans]
        assert row["passes"][0]["evidence"] == [pytest.approx(span, abs=1e-3) for span in from_start]
        assert row["reasoning"] == (MULTI_HOP if len(row["evidence"]) > 1 else NEEDLE)
    measured = json.loads(
        CliRunner().invoke(main, ["measure", "spans", str(root / "verified1.cases.json")]).stdout
    )
    assert [one["question_id"] for one in measured] == [one["question_id"] for one in kept]
    for case, one in zip(measured, kept, strict=True):
        assert case["truth"] == one["passes"][0]["evidence"]
        first, second = (
            {at for start, end in told["evidence"] for at in range(round(start * 1000), round(end * 1000))}
            for told in one["passes"]
        )
        iou = len(first & second) / len(first | second) if first | second else 0.0
        assert case["predictions"]["second"]["answer"]["iou"] == pytest.approx(iou, abs=1e-9)
    first = next(row for row in rows if row["question_id"] == mine["questions"][0]["question_id"])
    assert (first["answer"], first["reasoning"], first["question"]) == (
        "It boiled.",
        MULTI_HOP,
        "Is the water hot?",
    )
