"""Head motion from a file: an array of a .npz, or the gyroscope of a real GoPro file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from virtual_kitchen.errors import BadReplay
from virtual_kitchen.world.camera_gyro import read_gyro
from virtual_kitchen.world.motion import HeadMotion, replayed_motion
from virtual_kitchen.world.rotations import Floats

_FEWEST_SAMPLES = 16


class ReplayFromShutter:
    """A head that moves as the replayed file says from world time 0, and once more from the shutter's start on.

    So media time 0 of the file that the camera hands out lies where its shutter opened, as with a real camera, and a
    client that never presses the shutter sees the motion too. At that moment the head leaps to the first pose.
    `begin` must name a world time that no device has been asked for yet.
    """

    def __init__(self, motion: HeadMotion, first_s: float) -> None:
        """Wrap a motion over media time that begins at first_s."""
        self._motion, self._first_s = motion, first_s
        self._begin_world_s = float("inf")

    def begin(self, world_s: float) -> None:
        """Let media time 0 be this world time; later calls change nothing."""
        if self._begin_world_s == float("inf"):
            self._begin_world_s = world_s

    def _media_s(self, t_s: Floats) -> Floats:
        world_s = np.asarray(t_s, np.float64)
        media_s = world_s - self._begin_world_s
        return np.where(media_s >= self._first_s, media_s, world_s)

    def angular_velocity(self, t_s: Floats) -> Floats:
        """Return (n, 3) rad/s in the head frame."""
        return self._motion.angular_velocity(self._media_s(t_s))

    def orientation(self, t_s: Floats) -> Floats:
        """Return (n, 4) quaternions w, x, y, z that take head to world."""
        return self._motion.orientation(self._media_s(t_s))

    def position(self, t_s: Floats) -> Floats:
        """Return (n, 3) metres in the world frame."""
        return self._motion.position(self._media_s(t_s))

    def specific_force(self, t_s: Floats) -> Floats:
        """Return (n, 3) m/s^2 in the head frame."""
        return self._motion.specific_force(self._media_s(t_s))


@dataclass(frozen=True, slots=True)
class Replay:
    """A motion whose time 0 is world time 0; `camera_file` is what the camera hands out, if it is a real one.

    With a camera file the motion begins anew when the shutter opens (`ReplayFromShutter`).
    """

    motion: HeadMotion
    camera_file: Path | None


def read_replay(text: str, seed: int) -> Replay:
    """Read `FILE.npz:NAME` (arrays NAME_t in s, NAME_w in rad/s) or `FILE.MP4`; raise `BadReplay`."""
    if text.lower().endswith((".mp4", ".lrv", ".360")):
        path = _existing(text)
        t_s, rad_per_s = read_gyro(path)
        return Replay(ReplayFromShutter(_motion(text, seed, t_s, rad_per_s), float(t_s[0])), path)
    file, separator, name = text.rpartition(":")
    if not separator or not file.lower().endswith(".npz"):
        raise BadReplay(f"replay {text!r} is neither FILE.npz:NAME nor FILE.MP4")
    t_s, rad_per_s = _arrays(_existing(file), name)
    return Replay(_motion(text, seed, t_s - t_s[:1], rad_per_s), None)


def _existing(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise BadReplay(f"replay file {text} does not exist")
    return path


def _arrays(path: Path, name: str) -> tuple[Floats, Floats]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = sorted(key[:-2] for key in archive.files if key.endswith("_t"))
            if name not in names or f"{name}_w" not in archive.files:
                raise BadReplay(f"{path} has no motion {name!r}: choose from {', '.join(names)}")
            return archive[f"{name}_t"].astype(np.float64), archive[f"{name}_w"].astype(np.float64)
    except (OSError, ValueError) as error:
        raise BadReplay(f"{path} is not a readable .npz: {error}") from error


def _motion(text: str, seed: int, t_s: Floats, rad_per_s: Floats) -> HeadMotion:
    fits = t_s.ndim == 1 and len(t_s) >= _FEWEST_SAMPLES and rad_per_s.shape == (len(t_s), 3)
    if (
        not fits
        or not np.isfinite(t_s).all()
        or not np.isfinite(rad_per_s).all()
        or np.any(np.diff(t_s) <= 0)
    ):
        raise BadReplay(
            f"replay {text}: needs at least {_FEWEST_SAMPLES} finite samples (n,), (n, 3) with rising times"
        )
    return replayed_motion(t_s, rad_per_s, seed)
