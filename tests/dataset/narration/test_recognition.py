"""What is recognized of synthetic speech about a recipe's steps, and that noise is no text."""

from __future__ import annotations

import random

import av
import numpy as np
import pytest
from speech import HZ, kitchen_noises, spoken, write_wav

from kitchensync.recipe_app.narration.hear import hear
from kitchensync.recipe_app.narration.recognition import decode, recognize

pytestmark = pytest.mark.slow
pytest.importorskip(
    "pocketsphinx", reason="words of narrations are recognized by pocketsphinx; it is in the dev extra"
)

STEPS = [
    "Toast one slice of bread in the toaster",
    "Fill the kettle with 300 ml of water",
    "Boil the water in the kettle",
    "Spread 1 tsp of butter on the toast",
    "Place one tea bag in the cup",
    "Pour the hot water into the cup",
    "Steep the tea for 3 minutes",
    "Spread 1 tbsp of jam over the butter",
    "Remove the tea bag",
    "Serve the tea with the toast",
]
PHRASES = [
    *("toast one slice of bread", "toast one slice of bread in the toaster", "fill the kettle"),
    *(
        "fill the kettle with three hundred milliliters of water",
        "boil the water in the kettle",
        "boil the water",
    ),
    *("spread one teaspoon of butter", "spread one teaspoon of butter on the toast", "place one tea bag"),
    *(
        "place one tea bag in the cup",
        "pour the hot water",
        "pour the hot water into the cup",
        "steep the tea",
    ),
    *(
        "steep the tea for three minutes",
        "spread one tablespoon of jam",
        "remove the tea bag",
        "serve the tea",
    ),
    *("spread one tablespoon of jam over the butter", "serve the tea with the toast", "now boil the water"),
]


def test_eighteen_of_twenty_phrases_are_recognized_word_for_word() -> None:
    voices = random.Random(1)
    said = [
        spoken(phrase, voices.choice(["en-us", "en-us+f3", "en-us+m3"]), voices.choice([120, 140, 160]))
        for phrase in PHRASES
    ]
    heard = [recognize(sound, STEPS)["text"] for sound in said]
    wrong = [(text, want) for text, want in zip(heard, PHRASES, strict=True) if text != want]
    assert len(PHRASES) == 20
    assert len(wrong) <= 2, wrong


def test_silence_and_noise_of_a_kitchen_are_no_text() -> None:
    heard = {name: recognize(sound, STEPS)["text"] for name, sound in kitchen_noises()}
    assert {name: text for name, text in heard.items() if text} == {}


def test_a_torn_file_gives_what_came_before_and_another_is_refused(tmp_path) -> None:
    sound = spoken("fill the kettle")
    write_wav(tmp_path / "whole.wav", sound)
    with av.open(str(tmp_path / "whole.wav")) as source, av.open(str(tmp_path / "torn.webm"), "w") as file:
        stream = file.add_stream("libopus", rate=48_000)
        for frame in source.decode(audio=0):
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    whole = (tmp_path / "torn.webm").read_bytes()
    assert abs(len(decode(tmp_path / "torn.webm")) - len(sound)) < HZ / 10
    (tmp_path / "torn.webm").write_bytes(whole[: len(whole) * 2 // 3])
    assert len(sound) / 2 < len(decode(tmp_path / "torn.webm")) < len(sound)
    write_wav(tmp_path / "a.wav", np.concatenate([sound, sound[:0]]))
    assert hear(tmp_path / "a.wav", STEPS) | {"words": None} == {
        "engine": "pocketsphinx",
        "text": "fill the kettle",
        "words": None,
        "unknown": [],
        "duration_s": round(len(sound) / HZ, 3),
        "speech_s": hear(tmp_path / "a.wav", STEPS)["speech_s"],
        "why": "",
    }
    (tmp_path / "b.webm").write_bytes(b"no sound")
    assert hear(tmp_path / "b.webm", STEPS)["why"].startswith("not a sound")
    (tmp_path / "list.ogg").write_text("ffconcat version 1.0\nfile a.wav\n")
    assert hear(tmp_path / "list.ogg", STEPS)["why"].startswith("not a sound")
    assert hear(tmp_path / "a.wav", [])["text"] == ""
