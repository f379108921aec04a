"""Sound against sound: two microphones with their own colour, noise and clock; the lag is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from kitchensync.sync.align.sound import Sound, align_sounds, phase_lag

HZ = 12_000


def kitchen_noise(rng, seconds):
    """Clatter: short bursts of filtered noise over a quiet hum."""
    count = int(seconds * HZ)
    out = 0.01 * rng.normal(size=count)
    for at in rng.integers(0, count - HZ, int(seconds * 1.5)):
        length = int(rng.uniform(0.02, 0.4) * HZ)
        burst = rng.normal(size=length) * np.exp(-np.linspace(0, 5, length))
        out[at : at + length] += rng.uniform(0.2, 1.0) * burst
    return out


def heard(world, rng, start_s, seconds, *, drift=0.0, band=(150.0, 5000.0), noise=0.02):
    """What a microphone with its own crystal, colour and noise makes of it."""
    t = start_s + np.arange(int(seconds * HZ)) / HZ * (1.0 + drift)
    taken = np.interp(t * HZ, np.arange(len(world)), world)
    coloured = signal.sosfilt(signal.butter(1, band, "bandpass", fs=HZ, output="sos"), taken)
    return np.clip(coloured + noise * rng.normal(size=len(t)), -0.5, 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_two_microphones_in_one_kitchen(seed):
    rng = np.random.default_rng(seed)
    world = kitchen_noise(rng, 100.0)
    start, drift = rng.uniform(2, 8), rng.uniform(-40e-6, 40e-6)
    headset = Sound(0.0, heard(world, rng, 0.0, 90.0))
    camera = Sound(-0.021, heard(world, rng, start - 0.021, 80.0, drift=drift, band=(300.0, 4500.0)))
    found = align_sounds(headset, camera)
    assert found.is_usable
    times = np.array([5.0, 40.0, 75.0])
    truth = start + drift * (times + 0.021)
    assert np.abs(found.line.at(times) - truth).max() < 0.5e-3


@pytest.mark.parametrize("seed", range(4))
def test_two_kitchens_are_refused(seed):
    rng = np.random.default_rng(100 + seed)
    one, other = (Sound(0.0, heard(kitchen_noise(rng, 70.0), rng, 0.0, 60.0)) for _ in range(2))
    assert not align_sounds(one, other).is_usable


def test_the_lag_of_one_window_is_known_to_a_part_of_a_sample():
    rng = np.random.default_rng(5)
    wide = signal.resample_poly(rng.normal(size=8 * HZ + 200), 4, 1)
    one, other = wide[40 : 40 + 32 * HZ : 4], wide[43 : 43 + 32 * HZ : 4]
    lag, sharp = phase_lag(one, other, HZ)
    assert lag == pytest.approx(0.75 / HZ, abs=0.1 / HZ)
    assert sharp > 9


def test_silence_and_short_sounds_say_nothing():
    short, silent = Sound(0.0, np.zeros(5 * HZ)), Sound(0.0, np.zeros(60 * HZ))
    assert align_sounds(short, silent) is None
    assert not align_sounds(silent, silent).is_usable
