"""A film told at the desk: speech through the browser's microphone, kept once, recognized, in its step, released."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from browser import Desk, at_the_desk, chromium
from click.testing import CliRunner
from filmed_cooking import DONE_S, cook_on_film
from numbered_recording import write_numbered
from screens import findings
from speech import HZ, kitchen_noises, spoken, write_wav

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]
pytest.importorskip(
    "pocketsphinx", reason="words of narrations are recognized by pocketsphinx; it is in the dev extra"
)


PHRASES = (
    *("fill the kettle", "fill the kettle with three hundred milliliters of water", "boil the water"),
    *(
        "boil the water in the kettle",
        "place one tea bag",
        "place one tea bag in a mug",
        "pour the hot water",
    ),
    *("pour the hot water over the tea bag", "steep the tea", "steep the tea for three minutes"),
    *("discard the tea bag", "toast one slice of bread", "toast one slice of bread in the toaster"),
    *("spread one teaspoon of butter", "spread one teaspoon of butter on the toast"),
    *("spread one tablespoon of jam", "spread one tablespoon of jam over the butter"),
    *("cut the toast", "cut the toast into two triangles", "now boil the water"),
)
"""What somebody might say of the recipe's steps."""
SPOKEN = int(os.environ.get("KITCHENSYNC_PHRASES", "4"))
"""So many of them go through the browser, each as long as it is spoken; all of them in `make phrases`."""
NOISES = ("silence", "clatter 2000")
LONGEST_MS = 115_000
LOST_S = 1.0
"""So much of what was spoken may be lost when the page dies."""


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
        assert findings(page) == []
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


@pytest.mark.timeout(150 + 15 * SPOKEN)
@pytest.mark.slow
def test_what_the_microphone_hears_is_kept_once_as_its_words_and_noise_as_none(
    kitchen: Any, cooked: tuple[str, Path], tmp_path: Path
) -> None:
    recording, folder = cooked
    said = tmp_path / "said.wav"
    assert len(PHRASES) == 20
    sounds = [(text, spoken(text)) for text in PHRASES[:: 20 // SPOKEN]]
    noises = dict(kitchen_noises(2.0))
    sounds += [("", noises[name]) for name in NOISES]
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    write_wav(said, sounds[0][1])
    with chromium(f"--use-file-for-fake-audio-capture={said}%noloop") as browser:
        desk = at_the_desk(browser, kitchen.url, login)
        go(desk, recording)
        for number, (_, sound) in enumerate(sounds):
            write_wav(
                said, np.concatenate([sound, np.zeros(60 * HZ, np.int16)])
            )  # read when the microphone opens
            show(desk, 10 * number)
            desk.page.keyboard.press("r")
            desk.page.get_by_text("Speak now").wait_for()
            wait_recorded(desk.page, folder, len(sound) / HZ)
            desk.page.keyboard.press("r")
            desk.page.get_by_role("button", name="Hear").nth(number).wait_for(timeout=60_000)
        desk.tap("Submit")
        desk.page.get_by_text("Submitted").wait_for()
        assert desk.problems == []
    kept = json.loads((folder / "annotations" / "narration" / "narrations-1.json").read_text())["narrations"]
    assert [one["frame"] for one in kept] == [10 * number for number in range(len(sounds))]
    wrong = [(one["text"], text) for one, (text, _) in zip(kept, sounds, strict=True) if one["text"] != text]
    assert len(wrong) <= max(1, len(sounds) // 10), wrong
    assert all(text for _, text in wrong), "noise is no text"
    files = {path.name: path for path in (folder / "annotations" / "narration").glob("*.webm*")}
    assert sorted(files) == sorted(one["sound"] for one in kept), "each sound is there once"
    for one, (_, sound) in zip(kept, sounds, strict=True):
        assert seconds_of(files[one["sound"]]) > len(sound) / HZ


def test_a_killed_tab_loses_what_it_had_not_sent_and_that_is_less_than_a_second(
    kitchen: Any, cooked: tuple[str, Path], tmp_path: Path
) -> None:
    recording, folder = cooked
    write_wav(tmp_path / "said.wav", np.zeros(60 * HZ, np.int16))
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    with chromium(f"--use-file-for-fake-audio-capture={tmp_path / 'said.wav'}") as browser:
        desk = at_the_desk(browser, kitchen.url, login)
        page = desk.page
        page.add_init_script("""
            const recorder = MediaRecorder.prototype, start = recorder.start;
            window.parts_s = [];
            recorder.start = function (...given) {
                let last = performance.now();
                this.addEventListener("dataavailable", () => {
                    window.parts_s.push((performance.now() - last) / 1000);
                    last = performance.now();
                });
                return start.apply(this, given);
            };
        """)
        go(desk, recording)
        page.keyboard.press("r")
        wait_recorded(page, folder, 4.0)
        parts_s = page.evaluate("window.parts_s")
        with suppress(Exception):  # nobody answers: the process of the page is gone
            page.goto("chrome://crash", timeout=3000)
        (part,) = (folder / "annotations" / "narration").glob("*.part")
        assert len(parts_s) > 4
        assert np.median(parts_s) < LOST_S / 1.5, "each part is sent when it is there: one is lost"
        assert seconds_of(part) > sum(parts_s) - LOST_S


def test_who_talks_as_long_as_a_narration_may_be_is_told_that_it_ended(
    kitchen: Any, cooked: tuple[str, Path], tmp_path: Path
) -> None:
    recording, folder = cooked
    write_wav(tmp_path / "said.wav", np.zeros(60 * HZ, np.int16))
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    with chromium(f"--use-file-for-fake-audio-capture={tmp_path / 'said.wav'}") as browser:
        desk = at_the_desk(browser, kitchen.url, login)
        desk.page.clock.install()
        go(desk, recording)
        desk.page.keyboard.press("r")
        desk.page.get_by_text("Speak now").wait_for()
        wait_recorded(desk.page, folder, 1.0)
        desk.page.clock.fast_forward(LONGEST_MS)
        desk.page.get_by_text("A narration is two minutes at most").wait_for()
        assert desk.page.locator("#talk").get_attribute("aria-pressed") == "false"
        assert desk.page.locator("#now").inner_text() == "1 narration"
        assert desk.page.locator("#submit").is_enabled()
        assert desk.problems == []
    assert [path.suffix for path in (folder / "annotations" / "narration").iterdir()] == [".webm"]


@pytest.mark.parametrize("text", ["", "typed meanwhile"])
@pytest.mark.parametrize(
    ("media_type", "ending"), [("audio/mp4", ".m4a"), ("audio/webm;codecs=opus", ".webm")]
)
def test_a_torn_narration_is_finished_as_what_it_was_recorded_as(
    text: str, media_type: str, ending: str, kitchen: Any, tmp_path: Path
) -> None:
    recording = str(kitchen.choose()["recording"])
    write_numbered(kitchen.data, "take1")
    with edit_manifest(kitchen.data / "take1") as manifest:
        manifest["consent_scopes"] = ["annotate"]
    kitchen.tools.records.give_folder(recording, "take1", actor="")
    who = kitchen.desk("annotator")
    address, name = f"/api/v1/desk/recordings/{recording}/narrations", f"{5:016x}"
    begun = {"narration": name, "frame": 10, "text": text}
    op_id = kitchen.operation(recording, "note", {})["op_id"]
    assert who.post(address, json={"op_id": op_id, "change": begun}).status_code == 200
    assert who.post(f"{address}/{name}/end", json={}).status_code == 404
    part = {"content": bytes(54), "headers": {"content-type": media_type}}
    assert who.put(f"{address}/{name}/sound?at=0", **part).json() == {"bytes": 54}
    ended = who.post(f"{address}/{name}/end", json={}).json()
    assert (ended["ending"], ended["text"]) == (ending, text)
    sound = who.get(f"{address}/{name}/sound")
    assert (sound.content, sound.headers["content-type"]) == (bytes(54), media_type.partition(";")[0])


def seconds_of(sound: Path) -> float:
    if sound.stat().st_size < 1000:  # not yet a file that can be opened
        return 0.0
    with av.open(str(sound), format="webm") as file:
        return sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0))


def test_nobody_hears_or_changes_what_another_told(kitchen: Any, cooked: tuple[str, Path]) -> None:
    recording, folder = cooked
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
    sounds = folder / "annotations" / "narration"
    (half,) = sounds.glob(f"*-{name}.webm")
    half.with_name(f"{half.name}.part").write_bytes(b"torn")
    assert one.post(address, json=change(removed=True)).status_code == 404, "it is gone"
    assert not list(sounds.glob(f"*-{name}*")), "what was spoken goes with it"
    assert one.put(f"{address}/{name}/sound?at=0", **part).status_code == 404
