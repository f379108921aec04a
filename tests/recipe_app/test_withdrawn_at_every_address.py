"""Every address that names a recording, asked by everybody after a withdrawal: nothing of it is given."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from everybody import WHO, clients
from paused_recording import write_paused
from planted import Planted

from kitchensync.recipe_app.cooking.checklist import CONSENT_VERSION
from kitchensync.recipe_app.web.app import ROUTES
from kitchensync.storage.manifest import edit_manifest, read_manifest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
WHO_COOKED = Planted(1, 3217)
SAID = "Wilhelmina’s canary sentence"
OWN = {"/api/v1/bundle/{recording}", "/api/v1/ops/{recording}"}
"""What the tablet of the kitchen keeps, so that the withdrawal can be taken back there."""


def test_nothing_of_a_withdrawn_recording_is_given_at_any_address(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    write_paused(kitchen.data / "soup_1", [], who=lambda _: WHO_COOKED)
    kitchen.post(kitchen.operation(recording, "note", {"text": SAID}))
    sound = WHO_COOKED.wave(0.5)
    sha256 = hashlib.sha256(sound).hexdigest()
    answer = kitchen.tablet.put(
        f"/api/v1/voice/{recording}/{sha256}", content=sound, headers={"content-type": "audio/webm"}
    )
    assert answer.status_code == 200
    agreed = {"version": CONSENT_VERSION, "accepted": True, "scopes": ["annotate", "release_raw"]}
    kitchen.post(kitchen.operation(recording, "consent", agreed))
    people = clients(kitchen)
    before = _given(people, recording, sha256)
    assert before, "before, it is given to those who may"
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    with edit_manifest(kitchen.data / "soup_1") as manifest:
        assert manifest["withdrawn"]
    assert _given(people, recording, sha256) == set()
    assert read_manifest(kitchen.data / "soup_1")["withdrawn"]


def _given(people: dict[str, Any], recording: str, sha256: str) -> set[tuple[str, str]]:
    found = set()
    for route in ROUTES:
        if "{recording}" not in route.path or route.method != "GET" or route.path in OWN:
            continue
        path = route.path.replace("{recording}", recording).replace("{sha256}", sha256)
        path = re.sub(r"\{[a-z]+(:path)?\}", "0" * 64, path)
        for who in WHO:
            answer = people[who].request("GET", path)
            assert answer.status_code < 500, (path, who, answer.text)
            if SAID in answer.text or WHO_COOKED.signs_in(answer.content):
                found.add((route.path, who))
    return found
