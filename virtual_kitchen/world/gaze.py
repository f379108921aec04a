"""Where a cook looks: shifts of gaze between places of the kitchen, and nods."""

import threading

import numpy as np

from virtual_kitchen.world.rotations import Floats
from virtual_kitchen.world.seeds import generator

SLOT_S = 2.4  # one shift of gaze starts in each slot and ends in it
_BLOCK_SLOTS = 1024
_LONGEST_SHIFT_S = 1.85
_PLACES_DEG = np.array(  # yaw (left positive), pitch (up positive)
    [[0.0, -36.0], [10.0, -30.0], [62.0, -28.0], [-58.0, 8.0], [-40.0, -32.0], [25.0, -5.0]]
)  # counter, cutting board, stove, shelf, sink, window
_PLACE_WEIGHTS = np.array([0.28, 0.22, 0.2, 0.1, 0.12, 0.08])
_COLUMNS = 9  # yaw, pitch, start in slot, shift length, nod size, nod frequency, nod start, nod length, spare


class GazeShifts:
    """Minimum-jerk turns to seeded places, one in each slot, with nods now and then.

    `evaluate` gives yaw and pitch and their rates; the peak rate of a turn is 60 to about 140 deg/s.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._slots = np.empty((0, _COLUMNS))
        self._lock = threading.Lock()

    def _slots_until(self, last: int) -> Floats:
        with self._lock:
            while len(self._slots) <= last:
                self._slots = np.concatenate((self._slots, self._draw(len(self._slots) // _BLOCK_SLOTS)))
            return self._slots

    def _draw(self, block: int) -> Floats:
        """Draw one block of slots; the first slot of the world begins at rest, facing the counter."""
        rng = generator(self._seed, "gaze", block)
        slots = np.zeros((_BLOCK_SLOTS, _COLUMNS))
        place = rng.choice(len(_PLACES_DEG), _BLOCK_SLOTS, p=_PLACE_WEIGHTS)
        slots[:, :2] = np.radians(_PLACES_DEG[place] + rng.normal(0, (9.0, 5.0), (_BLOCK_SLOTS, 2)))
        slots[:, 2] = rng.uniform(0.0, 0.5, _BLOCK_SLOTS)
        slots[:, 3] = np.radians(rng.uniform(60.0, 130.0, _BLOCK_SLOTS))  # peak rate, made a length below
        previous = np.vstack((self._slots[-1:, :2] if block else slots[:1, :2], slots[:-1, :2]))
        way = np.linalg.norm(slots[:, :2] - previous, axis=1)
        slots[:, 3] = np.clip(1.875 * way / slots[:, 3], 0.35, _LONGEST_SHIFT_S)
        nods = rng.random(_BLOCK_SLOTS) < 0.25
        slots[:, 4] = np.where(nods, np.radians(rng.uniform(5.0, 12.0, _BLOCK_SLOTS)), 0.0)
        slots[:, 5] = rng.uniform(1.1, 1.9, _BLOCK_SLOTS)
        slots[:, 6] = rng.uniform(0.0, 0.9, _BLOCK_SLOTS)
        slots[:, 7] = rng.uniform(1.1, 1.5, _BLOCK_SLOTS)
        return slots

    def evaluate(self, t_s: Floats) -> tuple[Floats, Floats]:
        """Return angles and rates, each (n, 2): yaw, pitch in rad and rad/s."""
        t = np.maximum(t_s, 0.0)
        i = (t / SLOT_S).astype(np.int64)
        slots = self._slots_until(int(i.max(initial=0)))
        here, before = slots[i], slots[np.maximum(i - 1, 0)]
        in_slot = t - i * SLOT_S
        u = np.clip((in_slot - here[:, 2]) / here[:, 3], 0.0, 1.0)
        way = here[:, :2] - before[:, :2]
        angles = before[:, :2] + way * (u**3 * (10 - 15 * u + 6 * u * u))[:, None]
        rates = way * (30 * u**2 * (1 - u) ** 2 / here[:, 3])[:, None]
        nod, nod_rate = _nod(in_slot - here[:, 6], here[:, 4], here[:, 5], here[:, 7])
        angles[:, 1] += nod
        rates[:, 1] += nod_rate
        return angles, rates


def _nod(t_s: Floats, size_rad: Floats, hz: Floats, length_s: Floats) -> tuple[Floats, Floats]:
    """Return angle and rate of a windowed sine that starts and ends smoothly."""
    u = np.clip(t_s / length_s, 0.0, 1.0)
    window = 64 * (u * (1 - u)) ** 3
    window_rate = 192 * (u * (1 - u)) ** 2 * (1 - 2 * u) / length_s
    phase = 2 * np.pi * hz * t_s
    angle = size_rad * window * np.sin(phase)
    rate = size_rad * (window_rate * np.sin(phase) + window * 2 * np.pi * hz * np.cos(phase))
    return angle, rate
