"""A film told at the desk: speech through the browser's microphone, kept once, recognized, in its step, released."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from browser import Desk, at_the_desk, chromium
from click.testing import CliRunner
from filmed_cooking import DONE_S, cook_on_film
from screens import serious
from speech import HZ, spoken, write_wav

from kitchensync.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]
pytest.importorskip(
    "pocketsphinx", reason="words of narrations are recognized by pocketsphinx; it is in the dev extra"
)


@pytest.fixture
def cooked(kitchen: Any) -> Iterator[tuple[str, Path]]:
    """A recording that was cooked and filmed, and its folder."""
    recording, folder, _ = cook_on_film(kitchen)
    yield recording, folder
    kitchen.tools.films.close()


def go(desk: Desk, recording: str) -> None:
    desk.go(f"/recordings/{recording}/narrate")
    desk.page.locator("#talk").wait_for(timeout=60_000)


def show(desk: Desk, frame: int) -> None:
    desk.page.evaluate("(frame) => document.getElementById('narrator').film.go(frame)", frame)
    desk.page.wait_for_function(
        "(frame) => document.getElementById('narrator').film.shown === frame", arg=frame
    )


def wait_recorded(page: Any, folder: Path, seconds: float) -> None:
    """Wait until so much of the narration that is being spoken is on the disk."""
    while True:
        parts = list((folder / "annotations" / "narration").glob("*.part"))
        if parts and seconds_of(parts[0]) > seconds:
            return
        page.wait_for_timeout(100)


def test_a_film_is_told_and_what_was_said_is_released(
    kitchen: Any, cooked: tuple[str, Path], tmp_path: Path
) -> None:
    recording, folder = cooked
    steps = kitchen.tools.records.state(recording)["recording"]["steps"]
    text = " ".join(word for word in steps["1"]["text"].lower().split()[:3])
    write_wav(
        tmp_path / "said.wav",
        np.concatenate([np.zeros(HZ // 2, np.int16), spoken(text), np.zeros(9 * HZ, np.int16)]),
    )
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    with chromium(f"--use-file-for-fake-audio-capture={tmp_path / 'said.wav'}%noloop") as browser:
        desk = at_the_desk(browser, kitchen.url, login)
        page = desk.page
        go(desk, recording)
        show(desk, 60)
        page.keyboard.press("r")
        page.get_by_text("Speak now").wait_for()
        wait_recorded(page, folder, 3.5)
        page.keyboard.press("r")
        told = page.locator(".narrations input")
        told.wait_for()
        page.wait_for_function("() => document.querySelector('.narrations input')?.value", timeout=60_000)
        assert told.input_value() == text
        assert serious(page) == []
        show(desk, 200)  # told a second time, and the page is closed in the middle
        page.keyboard.press("r")
        page.get_by_text("Speak now").wait_for()
        wait_recorded(page, folder, 1.5)
        page.context.set_offline(True)
        page.close(run_before_unload=False)
        sounds = sorted((folder / "annotations" / "narration").glob("*.webm*"))
        assert sorted(path.suffix for path in sounds) == [".part", ".webm"]
        desk = at_the_desk(browser, kitchen.url, login)
        go(desk, recording)
        desk.page.get_by_text("2 narrations").wait_for()
        desk.page.get_by_role("button", name="Hear").nth(1).wait_for(timeout=60_000)
        desk.page.locator(".narrations input").nth(1).fill("boil the water")
        desk.page.locator(".narrations input").nth(1).press("Tab")
        desk.page.get_by_text("boil").first.wait_for()
        desk.tap("Submit")
        desk.page.get_by_text("Submitted").wait_for()
        assert desk.problems == []
    sounds = sorted((folder / "annotations" / "narration").glob("*.webm"))
    assert len(sounds) == 2
    assert len(list((folder / "annotations" / "narration").iterdir())) == 3
    version = json.loads((folder / "annotations" / "narration" / "narrations-1.json").read_text())
    hashes = {one["sound"]: one["sha256"] for one in version["narrations"]}
    assert hashes == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sounds}
    lasts = {
        one["frame"]: seconds_of(folder / "annotations" / "narration" / one["sound"])
        for one in version["narrations"]
    }
    assert lasts[200] > 1.0
    out = tmp_path / "out"
    released = ["release", "captaincook4d", str(folder), "--out", str(out), "--media", "", "--json"]
    assert CliRunner().invoke(main, released).exit_code == 0
    ((first, second),) = json.loads((out / "annotation_json" / "fine_grained.json").read_text()).values()
    order = kitchen.tools.records.state(recording)["recording"]["order"]
    assert (first["text"], first["source"], first["step"]) == (text, "pocketsphinx", order[0])
    assert first["start"] == pytest.approx(60 * 1001 / 30000, abs=1e-3)
    assert first["start"] < DONE_S[0] <= second["start"]
    told_second = [second[key] for key in ("text", "verb", "source", "step")]
    assert told_second == ["boil the water", "boil", "typed", order[2]]
    checked = CliRunner().invoke(main, ["release", "check", str(out), "--against", str(kitchen.data)])
    assert checked.exit_code == 0, checked.output


def seconds_of(sound: Path) -> float:
    if sound.stat().st_size < 1000:  # not yet a file that can be opened
        return 0.0
    with av.open(str(sound), format="webm") as file:
        return sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0))


def test_nobody_hears_or_changes_what_another_told(kitchen: Any, cooked: tuple[str, Path]) -> None:
    recording, _ = cooked
    one, other = kitchen.desk("annotator"), kitchen.desk("annotator")
    address = f"/api/v1/desk/recordings/{recording}/narrations"
    name = f"{5:016x}"

    def change(**said: Any) -> dict[str, Any]:
        return {
            "op_id": kitchen.operation(recording, "note", {})["op_id"],
            "change": {"narration": name, **said},
        }

    part = {"content": b"\x1aE\xdf\xa3" + bytes(50), "headers": {"content-type": "audio/webm"}}
    assert one.put(f"{address}/{name}/sound?at=0", **part).status_code == 404  # not begun
    assert one.post(address, json=change(frame=10)).json()["frame"] == 10
    assert one.put(f"{address}/{name}/sound?at=0", **part).json() == {"bytes": 54}
    assert one.put(f"{address}/{name}/sound?at=0", **part).json() == {"bytes": 54}
    assert one.put(f"{address}/{name}/sound?at=99", **part).status_code == 409
    assert other.put(f"{address}/{name}/sound?at=0", **part).status_code == 404
    assert other.get(f"{address}/{name}/sound").status_code == 404
    assert other.get(address).json()["narrations"] == []
    answer = one.post(f"{address}/{name}/end", json={}).json()
    assert (answer["text"], answer["why"][:11]) == ("", "not a sound")
    assert one.get(f"{address}/{name}/sound").content == part["content"]
    assert one.post(address, json=change(text="by hand", source="typed")).json()["text"] == "by hand"
    outside = change(frame=-1)
    assert one.post(address, json=outside).status_code == 422
