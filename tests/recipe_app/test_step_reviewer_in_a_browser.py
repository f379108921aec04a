"""Steps marked on the film at the desk, by keyboard, in a real browser; what was marked is what a release says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from browser import Desk, at_the_desk, chromium
from click.testing import CliRunner
from filmed_cooking import cook_on_film
from numbered_pictures import number_in
from numbered_recording import PV_S, film_host_ns
from screens import serious
from small_recordings import HOST0_NS

from kitchensync.cli import main
from kitchensync.dataset.films.review_film import facts_of, film_of
from kitchensync.recipe_app.review.marks import initial_marks, touched_marks
from kitchensync.storage.manifest import edit_manifest
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FPS = 30000 / 1001
REACTION_S = 0.25
SHOWN = "document.getElementById('reviewer').film.shown"
LANES_LEFT, LANE = 210, 26
"""Where lanes begin, how high each is, CSS pixels."""
REPEATS = 30
"""After so many pictures the camera's film shows the same again."""


@pytest.fixture
def cooked(kitchen: Any) -> Iterator[tuple[str, Path, Kitchen]]:
    """A recording of which four steps were touched, every picture of its film numbered; its folder and truth."""
    yield cook_on_film(kitchen)
    kitchen.tools.films.close()


@pytest.fixture
def desk(kitchen: Any, cooked: tuple[str, Path, Kitchen]) -> Iterator[Desk]:
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, login)
        desk.go(f"/recordings/{cooked[0]}/steps")
        desk.page.locator("canvas.lanes").wait_for(timeout=60_000)
        yield desk
        assert desk.problems == []


def keys(desk: Desk, *pressed: str) -> None:
    for key in pressed:
        desk.page.keyboard.press(key)


def picture_on_the_screen(desk: Desk, frame: int) -> np.ndarray:
    """Seek to a picture; return what the browser shows, (height, width) green."""
    desk.page.evaluate(
        """(frame) => new Promise((resolve) => {
            const { film } = document.getElementById("reviewer");
            const drawn = (_, { mediaTime }) => {
                if (film.at(mediaTime) === frame) resolve();
                else film.video.requestVideoFrameCallback(drawn);
            };
            film.loop = null;
            film.video.pause();
            film.video.requestVideoFrameCallback(drawn);
            film.go(frame);
        })""",
        frame,
    )
    desk.page.wait_for_function(
        """(frame) => {
            const { film } = document.getElementById("reviewer");
            return film.shown === frame && !film.video.seeking;
        }""",
        arg=frame,
    )
    return picture_of(desk, 0)


def picture_of(desk: Desk, which: int) -> np.ndarray:
    """Return what a film on the page shows, (height, width) green."""
    desk.page.wait_for_function("(which) => !document.querySelectorAll('video')[which].seeking", arg=which)
    green, width, height = desk.page.evaluate(
        """(which) => {
            const video = document.querySelectorAll("video")[which];
            const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight), pen = canvas.getContext("2d");
            pen.drawImage(video, 0, 0);
            const { data, width, height } = pen.getImageData(0, 0, canvas.width, canvas.height);
            return [Array.from({ length: width * height }, (_, k) => data[4 * k + 1]), width, height];
        }""",
        which,
    )
    return np.array(green, np.int16).reshape(height, width)


def pictures_of(film: Path) -> np.ndarray:
    """Every picture of a film as another reader decodes it, (n, height, width) green."""
    with av.open(str(film)) as source:
        return np.array([one.to_ndarray(format="rgb24")[..., 1] for one in source.decode(video=0)], np.int16)


def front_shows_what_was_taken_then(desk: Desk, kitchen: Kitchen) -> None:
    """The front camera's picture beside a picture of the film is the one that was taken nearest to it."""
    for frame in (30, 101, 250):
        taken_s = (film_host_ns(kitchen, frame) - HOST0_NS) / 1e9
        picture_on_the_screen(desk, frame)
        number = number_in(picture_of(desk, 1).astype(np.uint8))
        assert number == np.abs(PV_S - taken_s).argmin()


def set_while_it_plays(desk: Desk) -> None:
    """Set a boundary while the film plays: it lies a reaction before the picture that was shown. Take it back."""
    page = desk.page
    keys(desk, "n")
    page.wait_for_function("() => !document.getElementById('reviewer').film.video.paused")
    shown = page.evaluate(
        """() => {
            const { film } = document.getElementById("reviewer"), { shown } = film;
            const pressed = new KeyboardEvent("keydown", { key: "s", code: "KeyS", bubbles: true });
            document.querySelector("canvas.lanes").dispatchEvent(pressed);
            film.video.pause();
            return shown;
        }"""
    )
    assert page.locator("#now").inner_text().split()[-1] == str(max(0, shown - round(REACTION_S * FPS)))
    keys(desk, "z")


def an_end_that_is_open_and_a_mark_of_one_picture_are_warned_of(desk: Desk) -> None:
    """Begin a step where the film is, confirm nothing, set its end at once: it takes one Enter more; remove it."""
    left = desk.page.locator("#left")
    open_before = int(left.get_attribute("data-open") or "")
    keys(desk, "Space", "Space", "a", "Enter")
    left.get_by_text("The end is not marked yet").wait_for()
    keys(desk, "s")
    left.get_by_text("s long: Enter keeps it").wait_for()
    assert int(left.get_attribute("data-open") or "") == open_before + 1
    keys(desk, "Enter")
    desk.page.locator(f"#left[data-open='{open_before}']").wait_for()
    keys(desk, "z", "z", "z")


def test_steps_are_marked_by_keyboard_and_released(
    kitchen: Any, cooked: tuple[str, Path, Kitchen], desk: Desk, tmp_path: Path
) -> None:
    recording, folder, _ = cooked
    facts = facts_of(folder, 360)
    assert facts is not None
    page, left = desk.page, desk.page.locator("#left")
    assert facts["fps"] == [30000, 1001]
    pictures = pictures_of(film_of(folder, 360))
    assert len(pictures) == facts["frames"]
    for frame in (0, 7, 123, 299, facts["frames"] - 1):
        shown = picture_on_the_screen(desk, frame)
        assert np.abs(pictures - shown).mean(axis=(1, 2)).argmin() % REPEATS == frame % REPEATS
    front_shows_what_was_taken_then(desk, cooked[2])
    desk.tap("Sharper film (720 lines)")
    page.locator("#sharp").wait_for(state="detached", timeout=60_000)
    sharp = picture_on_the_screen(desk, 123)
    assert sharp.shape == (720, 1280)
    assert np.abs(pictures - sharp[::2, ::2]).mean(axis=(1, 2)).argmin() % REPEATS == 123 % REPEATS
    page.reload()  # with the small film, which plays on any computer
    page.locator("canvas.lanes").wait_for(timeout=60_000)
    set_while_it_plays(desk)
    given = initial_marks(recording, touched_marks(recording, facts["touches"], []))
    assert [mark["node"] for mark in given] == kitchen.tools.records.state(recording)["recording"]["order"][
        :4
    ]
    assert left.get_attribute("data-open") == "8"
    page.locator("canvas.lanes").focus()
    an_end_that_is_open_and_a_mark_of_one_picture_are_warned_of(desk)
    for _ in range(8):  # each boundary: three pictures later, and right so
        keys(desk, "n")
        if (now := page.locator("#now").inner_text()).endswith("?"):
            away = "Shift+ArrowRight" if " ends at " in now else "Shift+ArrowLeft"
            keys(desk, "Escape", away, away, away, "s")
            while "Enter keeps it" in left.inner_text():  # the film had played to near the other end
                keys(desk, away, "s")
        keys(desk, "Period", "Period", "Period")
    page.locator("#left[data-open='0']").wait_for()
    keys(desk, "z", "y")  # taken back and done again
    assert serious(page) == []
    desk.tap("Submit")
    desk.tap("Accept as the step times")
    page.get_by_text("Accepted").wait_for()
    accepted = json.loads((folder / "annotations" / "accepted.json").read_text())
    client = kitchen.client(**{"x-kitchensync-login": page.context.cookies()[0]["value"]})
    marks = client.get(f"/api/v1/desk/recordings/{recording}/marks").json()["marks"]
    marks = [mark for mark in marks if not mark["removed"]]
    assert sorted((one["node"], one["start_frame"], one["end_frame"]) for one in accepted["steps"]) == sorted(
        (mark["node"], mark["start"] + 1, mark["end"] + 1) for mark in marks
    )
    after = {mark["mark"]: mark for mark in marks}
    moved = [after[one["mark"]][end] - one[end] for one in given for end in ("start", "end") if one[end]]
    assert set(moved) == {3}
    out = tmp_path / "out"
    released = ["release", "captaincook4d", str(folder), "--out", str(out), "--media", "", "--json"]
    assert CliRunner().invoke(main, released).exit_code == 0
    (entry,) = json.loads((out / "annotation_json" / "step_annotations.json").read_text()).values()
    done = [step for step in entry["steps"] if step["start_time"] >= 0]
    by_time = sorted(done, key=lambda one: (one["start_time"], one["end_time"]))
    by_frame = sorted(
        marks, key=lambda one: (one["start"], one["end"])
    )  # two may begin with the same picture
    for step, mark in zip(by_time, by_frame, strict=True):
        assert step["start_time"] == pytest.approx(mark["start"] / FPS, abs=1 / FPS)
        assert step["end_time"] == pytest.approx((mark["end"] + 1) / FPS, abs=1 / FPS)


def test_films_are_served_in_parts_to_whom_the_address_was_given(
    kitchen: Any, cooked: tuple[str, Path, Kitchen], desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, folder, _ = cooked
    one, other = kitchen.desk("annotator"), kitchen.desk("researcher")
    film = f"/api/v1/desk/recordings/{recording}/film"
    address = one.get(film).json()["address"]
    monkeypatch.setattr("kitchensync.recipe_app.review.marks.BLANK_OF", 1)
    told = [
        (touch["start"] is None, touch["end"] is None) for touch in one.get(film).json()["facts"]["touches"]
    ]
    assert told == [(False, True), (True, False), (False, True), (True, False)], (
        "an open boundary is not told"
    )
    monkeypatch.undo()
    content = film_of(folder, 360).read_bytes()
    part = one.get(address, headers={"range": "bytes=1000-1999"})
    assert (part.status_code, part.content) == (206, content[1000:2000])
    assert other.get(address).status_code == 404
    assert kitchen.client().get(address).status_code == 401
    mine = {"op_id": kitchen.operation(recording, "note", {})["op_id"]}
    (mark, *_) = one.get(f"/api/v1/desk/recordings/{recording}/marks").json()["marks"]
    edited = {key: mark[key] for key in ("mark", "node")} | {"start": 17, "end": 40}
    marks = f"/api/v1/desk/recordings/{recording}/marks"
    assert one.post(marks, json={**mine, "edits": [edited]}).status_code == 200
    assert [m["start"] for m in one.get(marks).json()["marks"] if m["mark"] == mark["mark"]] == [17]
    assert [m["start"] for m in other.get(marks).json()["marks"] if m["mark"] == mark["mark"]] != [17]
    refused = one.post(f"{marks}/submit", json={})
    assert (refused.status_code, "not submitted" in refused.json()["error"]) == (409, True)
    kitchen.now_ns += 3_000_000_000
    kitchen.post(kitchen.operation(recording, "pause", {}))  # told late: the film is made anew, dark there
    assert one.get(address).status_code == 404
    assert one.post(film, json={}).json()["state"] in ("waiting", "making")
    while one.get(film).json()["state"] in ("waiting", "making"):
        time.sleep(0.1)
    facts = facts_of(folder, 360)
    assert facts is not None
    assert [last for _, last in facts["hidden"]] == [facts["frames"] - 1]
    assert pictures_of(film_of(folder, 360))[-1].max() < 20
    address = one.get(film).json()["address"]
    with edit_manifest(folder) as manifest:
        manifest["withdrawn"] = {"host_ns": 1}
    assert one.get(address).status_code == 409
    assert one.get(film).status_code == 409


def edits_of(kitchen: Any, recording: str, *marks: dict[str, Any]) -> dict[str, Any]:
    kept = ("mark", "node", "start", "end", "checked", "removed", "missing")
    op_id = kitchen.operation(recording, "note", {})["op_id"]
    return {"op_id": op_id, "edits": [{key: mark[key] for key in kept} for mark in marks]}


def test_two_annotators_alone_then_compared_then_ruled(
    kitchen: Any, cooked: tuple[str, Path, Kitchen], desk: Desk
) -> None:
    recording, folder, _ = cooked
    api = f"/api/v1/desk/recordings/{recording}"
    ann, ben, stranger = kitchen.desk("annotator"), kitchen.desk("annotator"), kitchen.desk("annotator")
    me = {one: one.get("/api/v1/me").json()["person"]["id"] for one in (ann, ben)}
    desk.go(f"/recordings/{recording}/round")
    for one in me.values():
        desk.page.locator(f"input[value='{one}']").check()
    desk.tap("Only these people")
    desk.page.locator("tbody tr").nth(1).wait_for()
    assert stranger.get(f"{api}/marks").status_code == 403
    pages = {
        who: kitchen.desk(who).get(f"/desk/recordings/{recording}/steps").text
        for who in ("annotator", "researcher")
    }
    assert ["data-errors" in pages[who] for who in pages] == [False, True]
    given = ann.get(f"{api}/marks").json()["marks"]
    both = {"checked": ["start", "end"]}
    touches = facts_of(folder, 360)["touches"]  # type: ignore[index]
    whole = [
        mark | {"start": t["start"], "end": t["end"]} | both for mark, t in zip(given, touches, strict=True)
    ]
    planted = [whole[0] | {"start": whole[0]["start"] + 9}, *whole[1:]]
    for one, other, marks in ((ann, ben, whole), (ben, ann, planted)):
        assert one.post(f"{api}/marks", json=edits_of(kitchen, recording, *marks)).status_code == 200
        hidden = [
            other.get(f"{api}/marks/of/{me[one]}"),
            other.get(f"{api}/round"),
            other.get(f"{api}/ruling"),
        ]
        assert [answer.status_code for answer in hidden] == [409, 401, 401]
        assert str(marks[0]["start"]) not in "".join(answer.text for answer in hidden)
        assert one.post(f"{api}/marks/submit", json={}).status_code == 200
    theirs = ann.get(f"{api}/marks/of/{me[ben]}").json()["marks"]
    assert theirs[0]["start"] == planted[0]["start"]
    desk.go(f"/recordings/{recording}/round")
    row = desk.page.locator("tr", has_text="0.30 s").inner_text()
    assert row.split("\t")[1:4] == ["0.00 s", "0.30 s", "0.30 s"]
    assert serious(desk.page) == []
    desk.page.get_by_text("Rule on 1 boundary").click()
    page = desk.page
    page.locator("#left[data-open='1']").wait_for(timeout=60_000)
    page.locator("canvas.lanes").focus()
    keys(desk, "n", "2")
    page.locator("#left[data-open='0']").wait_for()
    desk.tap("Make these the step times")
    page.get_by_text("Accepted").wait_for()
    accepted = json.loads((folder / "annotations" / "accepted.json").read_text())
    found = {(one["start_frame"], one["end_frame"]) for one in accepted["steps"]}
    assert found == {(mark["start"] + 1, mark["end"] + 1) for mark in planted}


def test_a_boundary_is_dragged_and_buttons_do_what_keys_do(
    kitchen: Any, cooked: tuple[str, Path, Kitchen], desk: Desk
) -> None:
    page, canvas = desk.page, desk.page.locator("canvas.lanes")
    client = kitchen.client(**{"x-kitchensync-login": page.context.cookies()[0]["value"]})
    address = f"/api/v1/desk/recordings/{cooked[0]}"
    facts = client.get(f"{address}/film").json()["facts"]
    nodes = [step["node"] for step in facts["steps"]]

    def marked() -> dict[str, Any]:
        return {mark["mark"]: mark for mark in client.get(f"{address}/marks").json()["marks"]}

    before = marked()
    mark = next(mark for mark in before.values() if mark["start"] is not None and mark["start"] > 60)
    box = canvas.bounding_box()
    assert box is not None
    wide, high = canvas.evaluate("(it) => [it.clientWidth, it.clientHeight]")
    per_px = facts["frames"] / (wide - LANES_LEFT)
    y = box["y"] + high - LANE * (len(nodes) - nodes.index(mark["node"])) + LANE / 2
    x = box["x"] + LANES_LEFT + mark["start"] / per_px
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 10, y)
    page.mouse.move(x - 40, y, steps=4)
    assert marked() == before, "nothing is kept before the pointer is let go"
    page.mouse.up()
    while (after := marked())[mark["mark"]]["start"] == mark["start"]:
        page.wait_for_timeout(50)
    assert after[mark["mark"]]["start"] == pytest.approx(mark["start"] - 40 * per_px, abs=per_px + 1)
    assert after[mark["mark"]]["checked"] == ["start"]
    assert {key: after[key] for key in after if key != mark["mark"]} == {
        key: before[key] for key in before if key != mark["mark"]
    }
    while page.evaluate(SHOWN) != after[mark["mark"]]["start"]:
        page.wait_for_timeout(50)
    page.mouse.click(box["x"] + LANES_LEFT + 200 / per_px, box["y"] + 10)  # on the ruler
    while abs(page.evaluate(SHOWN) - 200) > per_px + 1:
        page.wait_for_timeout(50)
    assert page.locator("#left").get_attribute("data-open") == "7"
    desk.tap("Undo")
    page.locator("#left[data-open='8']").wait_for()
    desk.tap("Next open one")
    desk.tap("Set it here")
    page.locator("#left[data-open='7']").wait_for()
    while page.get_by_text("saving").count():
        page.wait_for_timeout(50)
    assert sum(len(mark["checked"]) for mark in marked().values()) == 1
