"""Narrations recognized by a server or with a model of one's own: a real server on loopback, whatever it answers."""

from __future__ import annotations

import email
import io
import json
import shutil
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_server import ModelServer, Say, model_servers
from speech import HZ, spoken, write_wav

from kitchensync.recipe_app.narration.hear import hear
from kitchensync.recipe_app.narration.recognition import FOLDER

pytestmark = pytest.mark.slow
pocketsphinx = pytest.importorskip(
    "pocketsphinx", reason="words of narrations are recognized by pocketsphinx; it is in the dev extra"
)

STEPS = ["Boil the water in the kettle", "Steep the tea for 3 minutes"]
SAID = "boil the water"
HEARD = "Now I boil the water."


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Say], ModelServer]]:
    with model_servers("speech", monkeypatch) as play:
        yield play


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    write_wav(tmp_path / "a.wav", spoken(SAID))
    return tmp_path / "a.wav"


def text(said: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"text": said}).encode()


def test_a_server_gets_the_sound_and_the_steps_and_nothing_else(
    play: Callable[[Say], ModelServer], sound: Path
) -> None:
    server = play(lambda _: text(f" {HEARD}\n"))
    heard = hear(sound, STEPS, asks_server=True)
    assert (heard["text"], heard["engine"], heard["why"]) == (HEARD, "server", "")
    ((path, headers, body),) = server.asked
    assert path == "/v1/audio/transcriptions"
    message = email.message_from_bytes(
        b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n" + body
    )
    parts = {part.get_param("name", header="content-disposition"): part for part in message.get_payload()}
    assert set(parts) == {"model", "response_format", "temperature", "prompt", "file"}
    assert parts["prompt"].get_payload() == ". ".join(STEPS)
    assert parts["model"].get_payload() == "kitchen-1"
    with wave.open(io.BytesIO(parts["file"].get_payload(decode=True))) as sent:
        assert (sent.getframerate(), sent.getnchannels(), sent.getsampwidth()) == (HZ, 1, 2)
        there = np.frombuffer(sent.readframes(sent.getnframes()), np.int16)
    assert there.tobytes() in spoken(SAID).tobytes(), "the part in which somebody speaks, as it was"


def test_without_leave_or_without_speech_no_server_is_asked(
    play: Callable[[Say], ModelServer], sound: Path, tmp_path: Path
) -> None:
    server = play(lambda _: text("made up"))
    assert hear(sound, STEPS)["text"] == SAID
    write_wav(tmp_path / "still.wav", np.zeros(3 * HZ, np.int16))
    assert hear(tmp_path / "still.wav", STEPS, asks_server=True)["text"] == ""
    assert server.asked == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((200, b"\x00 junk"), "unreadable"),
        ((200, b'{"text": "boil the wat'), "unreadable"),
        ((200, b'{"words": []}'), "unreadable"),
        (text(7), "unreadable"),
        (text("a" * 601), "unreadable"),
        (text("boil \x1b[2J the water"), "unreadable"),
        ((429, b""), "busy"),
        ((500, b"oops"), "refused"),
        ((200, b"[" * 300_000), "too_long"),
    ],
)
def test_what_a_server_does_wrong_is_said_and_the_words_are_recognized_here(
    play: Callable[[Say], ModelServer], sound: Path, answer: tuple[int, bytes], kind: str
) -> None:
    play(lambda _: answer)
    heard = hear(sound, STEPS, asks_server=True)
    assert (heard["text"], heard["engine"]) == (SAID, "pocketsphinx")
    assert f"({kind})" in heard["why"]


def test_a_server_that_is_silent_or_gone_or_breaks_off_is_not_waited_for(
    play: Callable[[Say], ModelServer], sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = play(lambda _: text(HEARD))
    server.lacking = 5
    assert "(unreadable)" in hear(sound, STEPS, asks_server=True)["why"]
    monkeypatch.setenv("KITCHENSYNC_SPEECH_TIMEOUT_S", "0.5")
    server.lacking, server.after_s = 0, 2.0
    heard = hear(sound, STEPS, asks_server=True)
    assert (heard["text"], "(timed_out)" in heard["why"]) == (SAID, True)
    monkeypatch.setenv("KITCHENSYNC_SPEECH_URL", "http://127.0.0.1:9/v1")
    assert "(unreachable)" in hear(sound, STEPS, asks_server=True)["why"]
    monkeypatch.setenv("KITCHENSYNC_SPEECH_KEY_FILE", "/nowhere/key")
    heard = hear(sound, STEPS, asks_server=True)
    assert (heard["text"], heard["why"].startswith("no server used")) == (SAID, True)


def test_a_model_of_ones_own_is_taken_from_its_folder(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Path(pocketsphinx.get_model_path()) / "en-us"
    shutil.copytree(there / "en-us", tmp_path / "model" / "acoustic")
    words = (there / "cmudict-en-us.dict").read_text().splitlines()
    few = [line for line in words if line.split()[0].partition("(")[0] in ("boil", "the", "water")]
    (tmp_path / "model" / "few.dict").write_text("\n".join(few) + "\n")
    monkeypatch.setenv(FOLDER, str(tmp_path / "model"))
    heard = hear(sound, STEPS)
    assert heard["text"] == SAID
    assert {"kettle", "steep", "tea"} <= set(heard["unknown"]), "its dictionary counts"
    shutil.copy(there / "cmudict-en-us.dict", tmp_path / "model" / "more.dict")
    assert "2 dictionaries" in hear(sound, STEPS)["why"]
    (tmp_path / "model" / "more.dict").unlink()
    (tmp_path / "model" / "acoustic" / "mdef").write_bytes(b"torn")
    torn = hear(sound, STEPS)
    assert (torn["text"], "torn" in torn["why"]) == ("", True)
