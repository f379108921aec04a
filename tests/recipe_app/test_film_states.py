"""Who waits for the video of a recording is told where it is, from the camera's card to the browser."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
from filmed_cooking import cook_on_film
from small_recordings import write_manifest
from waiting import until

from kitchensync.dataset.source.own_recording import NotReleasable, OwnRecording
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.recipe_app.cooking.film_states import prepare_ended
from kitchensync.storage.consent import Purpose
from kitchensync.storage.manifest import edit_manifest, write_json

CARD = "it was not copied from the camera"


@dataclasses.dataclass
class Recorder:
    """A recorder that tells what a test lets it tell."""

    cameras: dict[str, Any] = dataclasses.field(default_factory=dict)

    def report(self, recording: str) -> dict[str, Any]:
        """Nothing is wrong."""
        return {"health": "stopped", "reasons": [], "alarm": "", "host_ns": 0}

    def live(self, recording: str) -> dict[str, Any] | None:
        """Tell of the cameras while there are some."""
        return {"host_ns": 5 * 10**9, "cameras": self.cameras} if self.cameras else None

    def room(self) -> list[dict[str, Any]]:
        """No recorder answers."""
        return []


@pytest.fixture
def recorder(kitchen: Any) -> Recorder:
    made = Recorder()
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, watch=made)
    kitchen.record("soup_1", "stopped")
    return made


def camera(state: str, *, fetched: int = 0, since_ns: int | None = None) -> dict[str, Any]:
    return {"state": state, "fetched_bytes": fetched, "promised_bytes": 1000, "fetching_since_ns": since_ns}


def own_film(kitchen: Any, recording: str) -> dict[str, Any]:
    answer: dict[str, Any] = kitchen.tablet.get(f"/api/v1/recordings/{recording}/film").json()
    return answer


def ended(kitchen: Any, devices: dict[str, str]) -> tuple[str, Path]:
    """A recording that Basil cooked and reviews, and its folder without a video."""
    recording = str(kitchen.choose()["recording"])
    kitchen.post(kitchen.operation(recording, "end", {}))
    folder = kitchen.data / "take1"
    (folder / "gopro").mkdir(parents=True)
    write_manifest(folder, {}, devices)
    kitchen.tools.records.give_folder(recording, "take1", actor="")
    return recording, folder


def put_media(folder: Path, state: str) -> None:
    write_json(folder / "gopro" / "media.json", {"schema": "media/1", "state": state})


def test_only_what_no_camera_filmed_has_no_video(kitchen: Any, recorder: Recorder) -> None:
    recording, folder = ended(kitchen, {"hololens": "hololens"})
    assert own_film(kitchen, recording) == {"state": "absent"}
    with edit_manifest(folder) as manifest:
        manifest["devices"]["gopro"] = {"kind": "gopro"}
    put_media(folder, "failed")
    assert own_film(kitchen, recording) == {"state": "absent"}, "its shutter was never opened"
    put_media(folder, "pending")
    assert own_film(kitchen, recording) == {"state": "failed", "why": CARD, "on_card": True}


def test_a_video_that_is_being_copied_says_how_long_that_takes(kitchen: Any, recorder: Recorder) -> None:
    recording, folder = ended(kitchen, {"gopro": "gopro"})
    put_media(folder, "pending")
    with edit_manifest(folder) as manifest:
        manifest["state"] = "recording"
    assert own_film(kitchen, recording) == {"state": "waiting", "wait": "recording"}
    with edit_manifest(folder) as manifest:
        manifest["state"] = "complete"
    recorder.cameras = {"gopro": camera("stopping")}
    assert own_film(kitchen, recording) == {"state": "copying", "done": 0, "whole": 1000, "left_s": None}
    recorder.cameras = {"gopro": camera("fetching", fetched=250, since_ns=3 * 10**9)}
    told = {"state": "copying", "done": 250, "whole": 1000, "left_s": 6.0}  # 250 bytes in 2 s
    assert own_film(kitchen, recording) == told
    own = OwnRecording(OpenedRecording(folder, purpose=Purpose.LOOK), {}, [])
    with own, pytest.raises(NotReleasable, match="has not been copied from the camera"):
        own.check_filmed()


def test_one_that_stayed_on_the_card_is_tried_again(kitchen: Any, recorder: Recorder) -> None:
    recording, folder = ended(kitchen, {"gopro": "gopro"})
    put_media(folder, "pending")
    address = f"/api/v1/recordings/{recording}/film"
    assert kitchen.tablet.post(address, json={}).json()["state"] in ("waiting", "copying")
    failed = until(lambda: (said := own_film(kitchen, recording))["state"] == "failed" and said, "its end")
    assert "does not know the address of gopro" in failed["why"]


@pytest.mark.slow
def test_who_waits_has_it_synchronized_and_made_after_what_is_recorded_now(
    kitchen: Any, recorder: Recorder
) -> None:
    recording, folder, _ = cook_on_film(kitchen)
    kitchen.post(kitchen.operation(recording, "end", {}))
    shutil.rmtree(folder / "sync")
    kitchen.record("soup_1")
    prepare_ended(kitchen.tools)
    assert kitchen.tools.films.state(folder, 360) == {"state": "none"}, "it is in nobody's way"
    seen = []

    def state() -> tuple[str, str | None]:
        said = own_film(kitchen, recording)
        assert said["state"] != "failed", said
        seen.append(said["state"])
        return said["state"], said.get("wait")

    until(lambda: state() == ("waiting", "recording"), "it waits")
    kitchen.record("soup_1", "stopped")
    until(lambda: state()[0] == "ready", "the video")
    assert "synchronizing" in seen
