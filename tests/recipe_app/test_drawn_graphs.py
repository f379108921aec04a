"""Graphs drawn by two people alone: agreement by hand, blindness over HTTP, only what differs is ruled on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browser import at_the_desk, chromium
from filmed_cooking import cook_on_film
from screens import findings

from kitchensync.dataset.films.review_film import facts_of
from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.recipe_app.review.drawn_graphs import (
    agreement_of_fastening,
    agreement_of_graphs,
    differing,
    graph_with,
    holding,
)
from kitchensync.recipe_app.review.recorded_evidence import edge_row, evidence_of
from kitchensync.task_graphs.formats.assembly import format_assembly, parse_assembly, ticks
from kitchensync.task_graphs.model import END, START, Graph, Step

STEPS = (Step(0, START), *(Step(n, f"cut-step {n}") for n in range(1, 5)), Step(5, END))
RECIPE = Graph("r", STEPS, ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5)))
FIRST = frozenset({(1, 2), (2, 3), (1, 3)})
SECOND = frozenset({(1, 2), (2, 3), (3, 4)})


def test_agreement_is_what_was_counted_by_hand() -> None:
    found = agreement_of_graphs(RECIPE, [FIRST, SECOND])
    shares = {name: (one["precision"], one["recall"]) for name, one in found.items()}
    # with ends: 0-1, 0-4, 3-5, 4-5 of the first against 0-1, 4-5 of the second; all that follow: 3 against 6
    assert shares == {
        "raw": (pytest.approx(2 / 3), pytest.approx(2 / 3)),
        "raw_with_ends": (pytest.approx(4 / 7), pytest.approx(4 / 5)),
        "reduced": (1, pytest.approx(2 / 3)),
        "closure": (1, pytest.approx(3 / 6)),
    }
    assert found["closure"]["f1"] == pytest.approx(2 / 3)


def test_marks_of_fastening_agree_in_as_many_steps_as_were_counted_by_hand() -> None:
    one, two, three = frozenset({1, 2}), frozenset({2, 3}), frozenset({2})
    assert agreement_of_fastening(RECIPE, [one, two]) == pytest.approx(2 / 4)
    assert agreement_of_fastening(RECIPE, [one, two, three]) == pytest.approx((2 + 3 + 3) / 12)
    assert agreement_of_fastening(RECIPE, [frozenset(), frozenset()]) is None
    assert differing([one, two]) == [1, 3]
    assert holding([one, two], {1: False, 3: True}) == [2, 3]
    fastening = graph_with(RECIPE, RECIPE.inner_edges, [2, 3])
    assert [node for node, is_fastened in ticks(fastening).items() if is_fastened] == [2, 3]
    assert not any(ticks(graph_with(fastening, RECIPE.inner_edges)).values()), (
        "what was marked is marked anew"
    )


def test_only_what_differs_is_ruled_on() -> None:
    assert differing([FIRST, SECOND]) == [(1, 3), (3, 4)]
    with pytest.raises(NotNow):
        holding([FIRST, SECOND], {(1, 3): True})
    ruled = {(1, 3): False, (3, 4): True, (1, 2): False}
    assert holding([FIRST, SECOND], ruled) == [(1, 2), (2, 3), (3, 4)]
    with pytest.raises(BadOperation):
        graph_with(RECIPE, [(1, 2), (2, 1)])


def cooked(order: list[int], **error: bool) -> dict[str, Any]:
    """The state of a recording whose steps were touched in this order."""
    steps = {str(step.node): {"label": step.label} for step in STEPS}
    runs = {str(node): {"runs": [{"start": k * 10, "end": k * 10 + 5}]} for k, node in enumerate(order)}
    return {"recording": {"steps": steps}, "steps": runs, "errors": {"e": error} if error else {}}


def test_an_edge_is_contradicted_by_who_made_no_error() -> None:
    states = {
        "a": cooked([1, 2, 3, 4]),
        "b": cooked([2, 1, 3, 4]),
        "c": cooked([2, 1, 4, 3], removed=False),
        "d": cooked([2, 1, 3, 4], removed=True),
        "e": cooked([1, 2]),
    }
    found = {one["edge"]: one for one in map(edge_row, evidence_of(RECIPE, states))}
    assert next(iter(found)) == (1, 2), "the most contradicted first"
    assert found[1, 2] == {"edge": (1, 2), "kept": 2, "seen": 4, "broken_by": ["b", "d"]}
    assert found[3, 4] == {"edge": (3, 4), "kept": 3, "seen": 3, "broken_by": []}
    without = graph_with(RECIPE, [(2, 3), (3, 4)])
    assert not any(one.is_challenged for one in evidence_of(without, states)), (
        "the new version is judged anew"
    )


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_draw_alone_a_third_rules_and_the_recipe_has_a_new_version(kitchen: Any) -> None:
    address = "/api/v1/desk/recipes/tea_and_toast/graphs"
    ann, ben, third = (kitchen.desk("researcher") for _ in range(3))
    people = [one.get("/api/v1/me").json()["person"]["id"] for one in (ann, ben)]
    assert kitchen.desk("annotator").get(address).status_code == 401
    assert third.post(f"{address}/assign", json={"people": people}).status_code == 200
    said = ann.get(address).json()
    a, b, c, d = (node for node, _ in said["steps"][:4])
    recordings = cook_backwards(kitchen)
    seen = {tuple(one["edge"]): one["broken_by"] for one in ann.get(address).json()["contradicted"]}
    assert seen
    assert all({*broken} == {*recordings} for broken in seen.values())
    page = (
        third.get("/desk/recipes/tea_and_toast").text.partition('id="contradicted"')[2].partition("</ul>")[0]
    )
    assert (page.count("<li>"), "/steps" in page) == (len(seen), False), (
        "who broke it is told where it is asked"
    )
    first = {"seen": said["hash"], "edges": [[a, b], [c, d]], "fastened": [a, b]}
    assert third.post(address, json=first).status_code == 403
    assert ann.post(address, json=first | {"seen": "0" * 64}).status_code == 409
    for wrong in ({"edges": [[a, b], [b, a]]}, {"edges": [[a, 999]]}, {"fastened": [999]}):
        assert ann.post(address, json=first | wrong).status_code == 422
    with chromium() as browser:
        ann_at_the_desk = at_the_desk(browser, kitchen.url, ann.headers["x-kitchensync-login"])
        draw(ann_at_the_desk, [(a, b), (c, d)], fastened=(a, b), then="Submitted.")
        for client in (ben, third):  # what one drew is not told before all have submitted
            seen = client.get(address).json()
            assert (seen["mine"], seen["fastened"]) == ([], [])
            assert not {"drawn", "differing", "agreement", "fastening"} & {*seen}
        assert third.post(f"{address}/accept", json={}).status_code == 409
        ben_at_the_desk = at_the_desk(browser, kitchen.url, ben.headers["x-kitchensync-login"])
        draw(ben_at_the_desk, [(a, b), (b, c)], fastened=(b, c), then="4 answers to rule on")
        assert ann.post(address, json=first).status_code == 409
        assert ann.post(f"{address}/rule", json={"edge": [c, d], "holds": True}).status_code == 409
        assert third.post(f"{address}/rule", json={"edge": [a, b], "holds": False}).status_code == 422
        assert third.post(f"{address}/rule-fastening", json={"step": b, "holds": True}).status_code == 422
        assert third.post(f"{address}/accept", json={}).status_code == 409
        rule(at_the_desk(browser, kitchen.url, third.headers["x-kitchensync-login"]))
    fresh = third.get(address).json()  # of the new version nobody has drawn anything
    assert (fresh["hash"] != said["hash"], fresh["people"], fresh["complete"]) == (True, [], False)
    still = [one["edge"] for one in fresh["contradicted"]]
    place = kitchen.tools.records.state(recordings[0])["recording"]["order"].index
    broken = [[u, v] for u, v in ((a, b), (c, d)) if place(u) < place(v)]  # they were cooked backwards
    assert still == broken, "judged by the new version"
    newest = kitchen.tools.shelf.get("tea_and_toast").graph
    assert set(newest.inner_edges) == {(a, b), (c, d)}
    (written,) = parse_assembly(format_assembly([newest]), name="written").graphs
    assert sorted(node for node, is_fastened in ticks(written).items() if is_fastened) == [a, b, c]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_film_of_a_recording_is_watched_beside_the_drawing(kitchen: Any) -> None:
    recording, folder, _ = cook_on_film(kitchen)
    kitchen.post(kitchen.operation(recording, "finish", {}))
    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, kitchen.desk("researcher").headers["x-kitchensync-login"])
        desk.go("/recipes/tea_and_toast/graphs")
        desk.page.get_by_role("button", name="Watch it").press("Enter")
        desk.page.locator(".recorded video").wait_for(timeout=60_000)
        frames = "(video) => (video.readyState > 1 ? Math.round(video.duration * 30000 / 1001) : 0)"
        facts = facts_of(folder, 360)
        assert facts is not None
        assert desk.page.locator(".recorded video").evaluate(frames) == facts["frames"]
        assert findings(desk.page) == []
        assert desk.problems == []
    kitchen.tools.films.close()


def cook_backwards(kitchen: Any) -> list[str]:
    """Cook twice, the last step first; return the recordings."""
    found = []
    for _ in range(2):
        recording = str(kitchen.choose()["recording"])
        for node in reversed(kitchen.tools.records.state(recording)["recording"]["order"]):
            kitchen.now_ns += 10**9
            kitchen.post(kitchen.operation(recording, "done", {"node": node}))
        kitchen.post(kitchen.operation(recording, "finish", {}))
        found.append(recording)
    return found


def draw(desk: Any, edges: list[tuple[int, int]], fastened: tuple[int, ...], then: str) -> None:
    """Draw and submit by keyboard alone."""
    page = desk.page
    desk.go("/recipes/tea_and_toast/graphs")
    for number, (before, after) in enumerate(edges):
        page.get_by_label("This step").select_option(str(after))
        page.get_by_label("waits for", exact=True).select_option(str(before))
        page.get_by_role("button", name="Add this edge").focus()
        page.keyboard.press("Enter")
        page.locator("#graphs .rows:not(#contradicted) li").nth(number).wait_for()
    page.locator("#screws summary").press("Enter")
    for number, node in enumerate(fastened):
        page.get_by_role("checkbox", name=re.compile(f"^{node} ")).press("Space")
        page.locator("#screws input:checked").nth(number).wait_for()
    assert page.locator("#contradicted li").count() > 0
    assert findings(page) == []
    page.get_by_role("button", name="Submit").focus()
    page.keyboard.press("Enter")
    page.get_by_text(then, exact=then.endswith(".")).wait_for()
    assert desk.problems == []


def rule(desk: Any) -> None:
    """Reject the first edge that differs, accept the second and both screws, make a version of it; by keyboard."""
    page = desk.page
    desk.go("/recipes/tea_and_toast/graphs")
    for number, answer in enumerate(("no", "yes", "yes", "yes")):
        page.get_by_text(re.compile(rf"^{4 - number} answers? to rule on$")).wait_for()
        page.get_by_label(answer, exact=True).nth(number).press("Space")
    page.get_by_text("0 answers to rule on").wait_for()
    page.get_by_text("Steps marked alike as fastened with a screw").wait_for()
    assert findings(page) == []
    page.get_by_role("button", name="Make it the newest version").press("Enter")
    page.get_by_text("It is the recipe's newest version.").wait_for()
    assert desk.problems == []
