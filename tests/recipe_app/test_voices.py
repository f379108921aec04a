"""The sound of a voice note comes out as it went in, to those who may hear it, and nothing of it runs."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from kitchensync.recipe_app.store import tables

pytestmark = pytest.mark.slow

SOUND = bytes(range(256)) * 4


def said(kitchen: Any, recording: str, content: bytes = SOUND, kind: str = "audio/webm;codecs=opus") -> str:
    """Leave a voice note as a tablet does; return its address at the desk."""
    digest = hashlib.sha256(content).hexdigest()
    body = {"sha256": digest, "media_type": "audio/webm;codecs=opus", "seconds": 2.4}
    kitchen.post(kitchen.operation(recording, "voice", body))
    sent = kitchen.tablet.put(
        f"/api/v1/voice/{recording}/{digest}", content=content, headers={"content-type": kind}
    )
    assert sent.status_code == 200
    return f"/api/v1/desk/recordings/{recording}/voice/{digest}"


def test_a_sound_comes_out_byte_for_byte(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    address = said(kitchen, recording)
    for role in ("researcher", "admin"):
        desk = kitchen.desk(role)
        answer = desk.get(address)
        assert (answer.status_code, answer.content) == (200, SOUND)
        assert answer.headers["content-type"] == "audio/webm"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"].startswith('attachment; filename="voice-')
        assert answer.headers["content-disposition"].endswith('.webm"')
        assert f'src="{address}"' in desk.get(f"/desk/recordings/{recording}").text


def test_a_sound_is_in_the_file_of_everything(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    kitchen.agree(recording, "release_raw")
    said(kitchen, recording)
    said(kitchen, kitchen.choose()["recording"], b"of another recording")
    address = f"/desk/recordings/{recording}/export.json"
    content = json.loads(kitchen.desk("researcher").get(address).text)
    (sound,) = content["sounds"]
    assert base64.b64decode(sound["base64"]) == SOUND
    (voice,) = content["state"]["voices"]
    assert (sound["sha256"], sound["media_type"]) == (voice["sha256"], voice["media_type"])


def test_who_may_not_read_a_recording_hears_nothing_of_it(kitchen: Any) -> None:
    address = said(kitchen, kitchen.choose()["recording"])
    for client in (kitchen.client(), kitchen.tablet, kitchen.desk("operator")):
        answer: httpx.Response = client.get(address)
        assert answer.status_code == 401
        assert SOUND[:9] not in answer.content


def test_a_sound_belongs_to_its_recording(kitchen: Any) -> None:
    first, second = kitchen.choose()["recording"], kitchen.choose()["recording"]
    address, desk = said(kitchen, first), kitchen.desk("researcher")
    digest = address.rpartition("/")[2]
    for wrong in (
        address.replace(digest, "0" * 64),
        address.replace(first, second),
        address.replace(first, "0" * 8),
    ):
        assert desk.get(wrong).status_code == 404
    assert desk.get(address).status_code == 200
    kitchen.post(kitchen.operation(first, "withdraw", {}))
    assert desk.get(address).status_code == 404
    assert "<audio" not in desk.get(f"/desk/recordings/{first}").text


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["audio/svg+xml", "audio/x; charset=utf-8", "AUDIO/HTML", "application/json"]
)
def test_what_is_no_sound_that_browsers_play_is_mere_bytes(kitchen: Any, kind: str) -> None:
    """The tablet states the type; a page of ours must never run what it sent."""
    content = b"<script>alert(1)</script>"
    answer = kitchen.desk("researcher").get(said(kitchen, kitchen.choose()["recording"], content, kind))
    assert (answer.status_code, answer.content) == (200, content)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].endswith('.bin"')


def remove(kitchen: Any, recording: str) -> None:
    """Press *Remove* beside the last voice note."""
    (*_, note) = (op for op in kitchen.tools.records.ops(recording) if op["kind"] == "voice")
    kitchen.post(kitchen.operation(recording, "undo", {"undoes": [note["op_id"]]}))


def test_a_removed_sound_is_gone(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    kitchen.agree(recording, "release_raw")
    kept, address = said(kitchen, recording, b"this one stays"), said(kitchen, recording)
    remove(kitchen, recording)
    desk, digest = kitchen.desk("researcher"), address.rpartition("/")[2]
    assert desk.get(address).status_code == 404
    assert kitchen.tablet.get(f"/api/v1/voice/{recording}/{digest}").status_code == 404
    (sound,) = json.loads(desk.get(f"/desk/recordings/{recording}/export.json").text)["sounds"]
    assert base64.b64decode(sound["base64"]) == b"this one stays"
    with kitchen.database.reading() as connection:
        assert connection.execute(select(tables.voice.c.content)).scalars().all() == [b"this one stays"]
    assert desk.get(kept).content == b"this one stays"


def test_a_sound_that_comes_after_it_was_removed_is_not_kept(kitchen: Any) -> None:
    recording, digest = kitchen.choose()["recording"], hashlib.sha256(SOUND).hexdigest()
    body = {"sha256": digest, "media_type": "audio/webm", "seconds": 2.4}
    kitchen.post(kitchen.operation(recording, "voice", body))
    remove(kitchen, recording)
    address = f"/api/v1/voice/{recording}/{digest}"
    sent = kitchen.tablet.put(address, content=SOUND, headers={"content-type": "audio/webm"})
    assert sent.status_code == 200, "the tablet need not keep it either"
    assert kitchen.tablet.get(address).status_code == 404
    with kitchen.database.reading() as connection:
        assert connection.execute(select(tables.voice.c.content)).all() == []
