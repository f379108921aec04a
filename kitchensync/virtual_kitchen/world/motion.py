"""Motion of the head that wears all devices, at any world time.

Head frame: x right, y up, z back (right-handed). World frame: y up, metres, z towards the cook at start.
"""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
from scipy.interpolate import CubicSpline

from kitchensync.virtual_kitchen.world import rotations
from kitchensync.virtual_kitchen.world.rotations import Floats
from kitchensync.virtual_kitchen.world.seeds import SmoothNoise, generator

SLOT_S = 2.4  # one shift of gaze starts in each slot and ends in it
_BLOCK_SLOTS = 1024
_LONGEST_SHIFT_S = 1.85  # a shift begins up to 0.5 s into a slot of SLOT_S and ends in it
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
        slots[:, 3] = np.radians(
            rng.uniform(60.0, 130.0, _BLOCK_SLOTS)
        )  # peak rate, converted to a length below
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
    """Return the angle and rate of a windowed sine that starts and ends smoothly."""
    u = np.clip(t_s / length_s, 0.0, 1.0)
    window = 64 * (u * (1 - u)) ** 3
    window_rate = 192 * (u * (1 - u)) ** 2 * (1 - 2 * u) / length_s
    phase = 2 * np.pi * hz * t_s
    angle = size_rad * window * np.sin(phase)
    rate = size_rad * (window_rate * np.sin(phase) + window * 2 * np.pi * hz * np.cos(phase))
    return angle, rate


GRAVITY_M_PER_S2 = 9.81
_EYE_HEIGHT_M = 1.62
VIEWING_POINT_M = np.array([0.0, _EYE_HEIGHT_M, 0.0])
"""Origin of the room's surfaces in the world, metres."""
_FADE_S = 0.5  # a replay that ends in motion comes to rest in this time
_STILL_KNOT_S = 0.08


class HeadMotion(Protocol):
    """A rigid head at world times `t_s` (n,) float64 >= 0; every call is a pure function of its times."""

    def angular_velocity(self, t_s: Floats) -> Floats:
        """Return (n, 3) rad/s in the head frame."""
        ...

    def orientation(self, t_s: Floats) -> Floats:
        """Return (n, 4) quaternions w, x, y, z that take head to world."""
        ...

    def position(self, t_s: Floats) -> Floats:
        """Return (n, 3) metres in the world frame."""
        ...

    def specific_force(self, t_s: Floats) -> Floats:
        """Return (n, 3) m/s^2 in the head frame: the specific force, +y 9.81 at rest and upright."""
        ...


class _Body:
    """Sway and steps of a standing cook."""

    def __init__(self, seed: int) -> None:
        self._steps = SmoothNoise(seed, "steps", 1.6, (0.35, 0.02, 0.14))
        self._bob = SmoothNoise(seed, "bob", 0.22, (0.004, 0.004, 0.004))

    def position(self, t_s: Floats) -> Floats:
        return self._steps.value(t_s) + self._bob.value(t_s) + VIEWING_POINT_M

    def specific_force(self, t_s: Floats, head_to_world: Floats) -> Floats:
        """Return R^T (a + 9.81 up), with R from quaternions (n, 4)."""
        felt = self._steps.acceleration(t_s) + self._bob.acceleration(t_s) + [0.0, GRAVITY_M_PER_S2, 0.0]
        return np.einsum("nij,ni->nj", rotations.matrices(head_to_world), felt)


class _Worn:
    """Common part of both motions: the movement of the body."""

    def __init__(self, seed: int) -> None:
        self._body = _Body(seed)

    def orientation(self, t_s: Floats) -> Floats:
        raise NotImplementedError

    def position(self, t_s: Floats) -> Floats:
        return self._body.position(t_s)

    def specific_force(self, t_s: Floats) -> Floats:
        return self._body.specific_force(t_s, self.orientation(t_s))


class SimulatedMotion(_Worn):
    """Seeded cooking: gaze shifts, nods, slow sway and tremor, all with exact derivatives.

    Orientation is Ry(yaw) Rx(pitch) Rz(roll); the angular velocity follows from the Euler rates.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._gaze = GazeShifts(seed)
        degrees = np.radians
        self._sway = SmoothNoise(seed, "sway", 0.45, tuple(degrees((4.0, 3.0, 3.5))))
        self._fidget = SmoothNoise(seed, "fidget", 0.13, tuple(degrees((0.5, 0.5, 0.45))))
        self._tremor = SmoothNoise(seed, "tremor", 0.03, tuple(degrees((0.02, 0.02, 0.02))))

    def angular_velocity(self, t_s: Floats) -> Floats:
        """Return (n, 3) rad/s: Rz^T (Rx^T (0, yaw', 0) + (pitch', 0, 0)) + (0, 0, roll')."""
        t_s = np.asarray(t_s, np.float64)
        _, gaze_rates = self._gaze.evaluate(t_s)
        rates = self._sway.rate(t_s) + self._fidget.rate(t_s) + self._tremor.rate(t_s)
        rates[:, :2] += gaze_rates
        _, pitch, roll = self._angles(t_s).T
        x, y = rates[:, 1], rates[:, 0] * np.cos(pitch)
        z = rates[:, 2] - rates[:, 0] * np.sin(pitch)
        return np.stack((np.cos(roll) * x + np.sin(roll) * y, np.cos(roll) * y - np.sin(roll) * x, z), axis=1)

    def orientation(self, t_s: Floats) -> Floats:
        angles = self._angles(np.asarray(t_s, np.float64))
        yaw, pitch, roll = (rotations.about_axis(axis, angles[:, i]) for i, axis in enumerate((1, 0, 2)))
        return rotations.multiply(rotations.multiply(yaw, pitch), roll)

    def _angles(self, t_s: Floats) -> Floats:
        """Return yaw, pitch, roll (n, 3) in rad."""
        angles = self._sway.value(t_s) + self._fidget.value(t_s) + self._tremor.value(t_s)
        angles[:, :2] += self._gaze.evaluate(t_s)[0]
        return angles


class ReplayedMotion(_Worn):
    """A measured motion from world time 0 to `end_s`; afterwards the head holds still.

    The rate is the derivative of a cubic spline through its running integral, so it can be sampled at any rate.
    A still head has a seeded tremor of 0.02 deg that never repeats, so that no two time windows look alike.
    """

    def __init__(self, seed: int, t_s: Floats, rad_per_s: Floats) -> None:
        super().__init__(seed)
        self.end_s = float(t_s[-1])
        step_s = float(np.median(np.diff(t_s)))
        t_s, rad_per_s = _brought_to_rest(
            np.asarray(t_s, np.float64), np.asarray(rad_per_s, np.float64), step_s
        )
        turned = np.concatenate(
            (
                np.zeros((1, 3)),
                np.cumsum((rad_per_s[1:] + rad_per_s[:-1]) / 2 * np.diff(t_s)[:, None], axis=0),
            )
        )
        self._turned = CubicSpline(t_s, turned)
        self._rate = self._turned.derivative()
        self._rest_s = float(t_s[-1])
        self._grid_s, self._grid = _integrated(self._turned, t_s[0], self._rest_s, step_s / 4)
        self._tremor = SmoothNoise(seed, "still", _STILL_KNOT_S, (np.radians(0.03),) * 3)

    def angular_velocity(self, t_s: Floats) -> Floats:
        t_s = np.asarray(t_s, np.float64)
        moving = self._rate(np.clip(t_s, self._grid_s[0], self._rest_s))
        _, tremor_rate = self._still(t_s)
        return np.where((t_s < self._rest_s)[:, None], moving, tremor_rate)

    def orientation(self, t_s: Floats) -> Floats:
        t_s = np.asarray(t_s, np.float64)
        at = np.clip(t_s, self._grid_s[0], self._rest_s)
        step = np.clip(np.searchsorted(self._grid_s, at, side="right") - 1, 0, len(self._grid) - 1)
        onward = rotations.from_vectors(self._turned(at) - self._turned(self._grid_s[step]))
        tremor, _ = self._still(t_s)
        q = rotations.multiply(rotations.multiply(self._grid[step], onward), rotations.from_vectors(tremor))
        return q / np.linalg.norm(q, axis=1, keepdims=True)

    def _still(self, t_s: Floats) -> tuple[Floats, Floats]:
        """Return tremor angles and rates (n, 3), rising from zero; small enough to add as vectors."""
        since = np.maximum(t_s - self._rest_s, 0.0)
        angle, rate = self._tremor.value(since), self._tremor.rate(since)
        rise = (since / (since + _FADE_S))[:, None]
        rise_rate = (_FADE_S / (since + _FADE_S) ** 2)[:, None]
        return angle * rise**2, rate * rise**2 + angle * 2 * rise * rise_rate


def _brought_to_rest(t_s: Floats, rad_per_s: Floats, step_s: float) -> tuple[Floats, Floats]:
    """Append a raised-cosine fade to zero; prepend some samples of the first rate for times just below 0."""
    count = max(4, round(_FADE_S / step_s))
    after = t_s[-1] + step_s * np.arange(1, count + 1)
    fade = 0.5 * (1 + np.cos(np.pi * np.arange(1, count + 1) / count))
    before = t_s[0] - step_s * np.arange(8, 0, -1)
    times = np.concatenate((before, t_s, after))
    rates = np.concatenate((np.repeat(rad_per_s[:1], 8, axis=0), rad_per_s, rad_per_s[-1] * fade[:, None]))
    return times, rates


def _integrated(turned: CubicSpline, start_s: float, end_s: float, step_s: float) -> tuple[Floats, Floats]:
    """Return grid times and their orientations, upright at the first; steps are rotation vectors."""
    grid_s = np.linspace(start_s, end_s, int(np.ceil((end_s - start_s) / step_s)) + 1)
    steps = rotations.from_vectors(np.diff(turned(grid_s), axis=0))
    upright = np.array([[1.0, 0.0, 0.0, 0.0]])
    return grid_s, rotations.running_product(np.concatenate((upright, steps)))


def simulated_motion(seed: int) -> HeadMotion:
    """Return seeded cooking motion, valid for any time."""
    return SimulatedMotion(seed)


def replayed_motion(t_s: Floats, rad_per_s: Floats, seed: int = 0) -> HeadMotion:
    """Return the motion of measured rates: `t_s` (m,) rising world seconds, `rad_per_s` (m, 3) in the head frame."""
    return ReplayedMotion(seed, t_s, rad_per_s)
