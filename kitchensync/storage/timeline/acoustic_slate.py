"""An acoustic slate: two seconds of chirps that spell a recording's id, for every camera with a microphone. Pure.

32 chirps of 60 ms; each is one of eight, four bands of 700 Hz between 2 and 4.8 kHz, upwards or downwards. A chirp
is heard through a moving head and two crystals, where one long waveform would lose its phase.
"""

from __future__ import annotations

import io
import wave
from hashlib import sha256

import numpy as np
import numpy.typing as npt

SYMBOLS = 32  # 96 bits of the hash: ids of a lab do not collide
SYMBOL_S = 0.06  # short: a long waveform loses its phase through a moving head and two crystals
KINDS = 8
LOWEST_HZ, BAND_HZ = 2000.0, 700.0
LOUDNESS = 0.5
PLAYED_HZ = 48_000


def symbols_of(recording: str) -> list[int]:
    """Return the 32 kinds of chirp, 0 to 7, that spell an id: 3 bits each of its SHA-256."""
    number = int.from_bytes(sha256(recording.encode()).digest()[:12], "big")
    return [number >> (3 * place) & 7 for place in range(SYMBOLS)]


def chirp(kind: int, hz: float) -> npt.NDArray[np.complex128]:
    """Return one kind of chirp (n,), analytic: its real part is what is played."""
    t_s = np.arange(round(SYMBOL_S * hz)) / hz
    low_hz = LOWEST_HZ + BAND_HZ * (kind // 2)
    upwards_hz = low_hz * t_s + BAND_HZ * t_s**2 / (2 * SYMBOL_S)
    downwards_hz = (low_hz + BAND_HZ) * t_s - BAND_HZ * t_s**2 / (2 * SYMBOL_S)
    turns = downwards_hz if kind % 2 else upwards_hz
    return np.asarray(np.hanning(len(t_s)) * np.exp(2j * np.pi * turns))


def slate_wave(recording: str, hz: float) -> npt.NDArray[np.float64]:
    """Return the sound of a recording's slate (n,), -0.5 to 0.5."""
    return LOUDNESS * np.concatenate([chirp(kind, hz).real for kind in symbols_of(recording)])


def slate_file(recording: str) -> bytes:
    """Return the same as a WAV file: mono, 16 bits, 48 kHz."""
    samples = np.rint(slate_wave(recording, PLAYED_HZ) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(samples.itemsize)
        sound.setframerate(PLAYED_HZ)
        sound.writeframes(samples.tobytes())
    return file.getvalue()
