"""Find the acoustic slate of a recording in a film's sound. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import fft, signal

from kitchensync.shell.array_types import Floats
from kitchensync.storage.timeline.acoustic_slate import KINDS, SYMBOL_S, SYMBOLS, chirp, symbols_of
from kitchensync.sync.align.sound import Sound

STEP = 6
"""Samples between two places that are looked at: half a millisecond, a third of a chirp's resolution."""
LEAST_HZ = 10_000.0  # sound sampled more slowly holds no chirps
PIECE = STEP << 17  # a multiple of STEP, so that its grid continues from piece to piece
LEAST_Z = 12.0
"""Chance alone stays below 6 in an hour of sound; how far it stands above the noise, in standard deviations."""
LEAST_READ = 20
"""Of the 32 chirps, how many must be the likest of the eight: another recording's slate has some 4 of them."""


class HeardSlate(NamedTuple):
    """A recording's slate: when it begins (s of the sound), how clearly it stands out, how many chirps were read."""

    recording: str
    at_s: float
    z: float
    read: int


def find_slate(sound: Sound, recordings: Iterable[str]) -> HeardSlate | None:
    """Return the recording whose slate is heard; None without a slate, or with those of several recordings."""
    if sound.hz < LEAST_HZ:
        return None
    likeness = _likeness(sound)
    chirp_steps = round(SYMBOL_S * sound.hz) / STEP
    firsts = [round(place * chirp_steps) for place in range(SYMBOLS)]
    if likeness.shape[1] <= firsts[-1]:
        return None
    heard, count = [], likeness.shape[1] - firsts[-1]
    for recording in recordings:  # where its chirps are likest to what is heard
        kinds = symbols_of(recording)
        score = np.zeros(count, np.float32)
        for kind, first in zip(kinds, firsts, strict=True):
            score += likeness[kind, first : first + count]
        middle = float(np.median(score))
        spread = 1.4826 * float(np.median(np.abs(score - middle)))
        at = int(np.argmax(score))
        likest = np.argmax(likeness[:, [at + first for first in firsts]], axis=0)
        z, read = (float(score[at]) - middle) / max(spread, 1e-9), int(np.sum(likest == kinds))
        if z >= LEAST_Z and read >= LEAST_READ:
            heard.append(HeardSlate(recording, sound.start_s + at * STEP / sound.hz, z, read))
    return heard[0] if len(heard) == 1 else None


def _likeness(sound: Sound) -> Floats:
    """How like each kind of chirp the sound is from every STEP-th sample on: (8, n) float32, 0 to 1."""
    length = round(SYMBOL_S * sound.hz)
    chirps = np.stack([chirp(kind, sound.hz) for kind in range(KINDS)])
    band = signal.butter(4, (1900.0, 4900.0), "bandpass", fs=sound.hz, output="sos")
    size = fft.next_fast_len(PIECE + length)
    spectra = fft.fft(chirps, size).conj()
    energy = float(np.sum(np.abs(chirps[0]) ** 2))
    pieces = []
    for first in range(0, len(sound.samples) - length + 1, PIECE):
        piece = signal.sosfiltfilt(band, sound.samples[first : first + PIECE + length - 1])
        count = len(piece) - length + 1
        like = np.abs(fft.ifft(fft.fft(piece, size) * spectra)[:, :count:STEP])
        total = np.cumsum(np.concatenate([[0.0], piece**2]))
        loud = (total[length:] - total[:-length])[:count:STEP]
        pieces.append((like / np.sqrt(np.maximum(loud * energy, 1e-12))).astype(np.float32))
    return np.concatenate(pieces, axis=1) if pieces else np.empty((KINDS, 0), np.float32)
