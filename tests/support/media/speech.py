"""Speech made by a program that shares nothing with the recognizer, and sounds of a kitchen without any."""

from __future__ import annotations

import shutil
import subprocess
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, lfilter

HZ = 16_000


def spoken(text: str, voice: str = "en-us", words_per_minute: int = 140) -> np.ndarray:
    """Return a text as speech, half a second of quiet around it, (n,) int16; skip where no speaker is installed."""
    speaker = shutil.which("espeak-ng")
    if speaker is None:
        pytest.skip("no synthetic speaker: `make system` installs espeak-ng")
    command = [speaker, "-v", voice, "-s", str(words_per_minute), "--stdout", text]
    wav = subprocess.run(command, capture_output=True, check=True).stdout
    rate = int.from_bytes(wav[24:28], "little")
    sound = np.frombuffer(wav[44 : len(wav) // 2 * 2], np.int16)
    at_hz = np.interp(np.arange(0, len(sound), rate / HZ), np.arange(len(sound)), sound)
    quiet = np.zeros(HZ // 2)
    whole = np.concatenate([quiet, at_hz, quiet])
    return (whole + np.random.default_rng(len(text)).normal(0, 30, len(whole))).astype(np.int16)


def kitchen_noises(seconds: float = 3.0) -> Iterator[tuple[str, np.ndarray]]:
    """Yield silence, hissing, rumbling, clattering, humming and beeping, each at three levels, (n,) int16."""
    rng, count = np.random.default_rng(7), round(seconds * HZ)
    t_s = np.arange(count) / HZ
    yield "silence", np.zeros(count, np.int16)
    for level in (100, 2000, 9000):
        fall = np.exp(-np.arange(3000) / 400) * np.sin(np.arange(3000) * rng.uniform(0.3, 2))
        clatter = np.zeros(count)
        for at in rng.integers(0, count - 3000, 12):
            clatter[at : at + 3000] += 3 * level * fall
        made = {
            "hiss": lfilter(*butter(2, [1000, 4000], "band", fs=HZ), rng.normal(0, 3 * level, count)),
            "rumble": lfilter(*butter(2, 300, fs=HZ), rng.normal(0, 4 * level, count)),
            "clatter": clatter,
            "hum": level * sum(np.sin(2 * np.pi * hz * t_s) for hz in (50, 100, 150)),
            "beep": level * np.sin(2 * np.pi * 2000 * t_s) * ((2 * t_s).astype(int) % 2),
        }
        for name, sound in made.items():
            yield f"{name} {level}", np.clip(sound, -32000, 32000).astype(np.int16)


def write_wav(path: Path, sound: np.ndarray) -> None:
    """Write a sound as a WAV file of 16 kHz."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(HZ)
        file.writeframes(sound.tobytes())
