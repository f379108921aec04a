"""Head motion from a file: an array of a .npz, or the gyroscope of a real GoPro file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from kitchensync.virtual_kitchen.errors import BadReplay
from kitchensync.virtual_kitchen.world.motion import HeadMotion, replayed_motion
from kitchensync.virtual_kitchen.world.rotations import Floats

GYRO_RULE = (
    "media time of gyro sample k = (STMP_gyro,first - STMP_shut,first)/1e6 + k/rate; "
    "rate = samples in all payloads but the last / (STMP_gyro,last - STMP_gyro,first)"
)
VIDEO_SUFFIXES = (".mp4", ".lrv", ".360")
NUMBER_TYPES = {
    "b": "i1",
    "B": "u1",
    "s": ">i2",
    "S": ">u2",
    "l": ">i4",
    "L": ">u4",
    "J": ">u8",
    "f": ">f4",
    "d": ">f8",
}


@dataclass(frozen=True)
class _Block:
    stamp_us: int | None
    values: np.ndarray
    axes: str | None
    output_axes: str | None
    matrix: np.ndarray | None


def read_gyro(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the gyroscope of a GoPro MP4 as (t_s (n,), rad_per_s (n, 3)), both float64.

    t_s is media time, 0 at the file's first frame: sample k is at (STMP_gyro,first - STMP_shut,first)/1e6 + k/rate,
    with rate = samples in all payloads but the last over the time from the first payload's stamp to the last one's.
    The first time may be negative: the gyroscope starts a few milliseconds before the first frame.
    rad_per_s is in head axes (x right, y up, z back), from the camera's X left, Y back, Z up.

    Raises BadReplay when the file cannot be read, or has no gyroscope with camera stamps (before HERO8).
    """
    payloads = _payloads(path)
    gyro = [block for data in payloads for block in _streams(data, "GYRO")]
    shutter = [block for data in payloads for block in _streams(data, "SHUT")]
    if not gyro or not shutter or any(b.stamp_us is None for b in (gyro[0], gyro[-1], shutter[0])):
        raise BadReplay(f"{path}: no gyroscope with camera time stamps; use a file of a HERO8 or later")
    if len(gyro) < 2:
        raise BadReplay(
            f"{path}: one metadata payload is not enough for the gyroscope's rate; use a longer file"
        )
    first_us, last_us, shutter_us = (int(b.stamp_us or 0) for b in (gyro[0], gyro[-1], shutter[0]))
    if last_us <= first_us:
        raise BadReplay(f"{path}: the gyroscope's time stamps do not rise")
    rate_hz = sum(len(b.values) for b in gyro[:-1]) / ((last_us - first_us) / 1e6)
    rad_per_s = np.concatenate([_head_axes(b) for b in gyro])
    return (first_us - shutter_us) / 1e6 + np.arange(len(rad_per_s)) / rate_hz, rad_per_s


def _payloads(path: Path) -> list[bytes]:
    payloads: list[bytes] = []
    try:
        with av.open(str(path)) as container:
            data_streams = [stream for stream in container.streams if stream.type == "data"]
            for packet in container.demux(data_streams) if data_streams else ():
                data = bytes(packet)
                if data[:4] == b"DEVC":
                    payloads.append(data)
    except (av.error.FFmpegError, OSError) as error:
        raise BadReplay(f"{path}: not a readable MP4 ({error})") from error
    return payloads


def _entries(data: bytes) -> Iterator[tuple[str, str, int, bytes]]:
    """Yield key, type, bytes of one element and data of each entry of one nest."""
    at = 0
    while at + 8 <= len(data) and data[at : at + 4] != bytes(4):
        key, kind, element_bytes, count = struct.unpack_from(">4scBH", data, at)
        end = at + 8 + element_bytes * count
        yield key.decode("latin-1"), kind.decode("latin-1"), element_bytes, data[at + 8 : end]
        at = end + (-element_bytes * count) % 4


def _streams(payload: bytes, name: str) -> Iterator[_Block]:
    for _, _, _, device in _entries(payload):
        for key, _, _, stream in _entries(device):
            entries = (
                {k: (kind, size, data) for k, kind, size, data in _entries(stream)} if key == "STRM" else {}
            )
            if name in entries:
                yield _block(entries, name)


def _block(entries: dict[str, tuple[str, int, bytes]], name: str) -> _Block:
    values = _numbers(*entries[name])
    if "SCAL" in entries:
        values = values / _numbers(*entries["SCAL"]).reshape(-1)
    return _Block(
        stamp_us=int.from_bytes(entries["STMP"][2], "big") if "STMP" in entries else None,
        values=values,
        axes=entries["ORIN"][2].decode("latin-1") if "ORIN" in entries else None,
        output_axes=entries["ORIO"][2].decode("latin-1") if "ORIO" in entries else None,
        matrix=_numbers(*entries["MTRX"]).reshape(3, 3) if "MTRX" in entries else None,
    )


def _numbers(kind: str, element_bytes: int, data: bytes) -> np.ndarray:
    flat = np.frombuffer(data, NUMBER_TYPES[kind]).astype(np.float64)
    return flat.reshape(-1, element_bytes // np.dtype(NUMBER_TYPES[kind]).itemsize)


def _head_axes(block: _Block) -> np.ndarray:
    """Return a block's samples as x right, y up, z back; a letter of ORIN in lower case is a negated channel."""
    values, axes = block.values, block.axes or "ZXY"
    if block.matrix is not None and block.output_axes:
        values, axes = values @ block.matrix.T, block.output_axes
    camera = np.empty((len(values), 3))
    for channel, letter in enumerate(axes):
        camera[:, "XYZ".index(letter.upper())] = values[:, channel] * (1 if letter.isupper() else -1)
    return np.stack([-camera[:, 0], camera[:, 2], camera[:, 1]], axis=1)


_FEWEST_SAMPLES = 16


class ReplayFromShutter:
    """The motion of a replayed file from world time 0, and again from the start of the shutter.

    So media time 0 of the camera's file is when its shutter opened, as with a real camera, and a client that never
    starts the shutter sees the motion too. When the shutter opens, the head jumps to the first pose.
    `begin` must get a world time that no device has sampled yet.
    """

    def __init__(self, motion: HeadMotion, first_s: float) -> None:
        """Wrap a motion over media time that begins at first_s."""
        self._motion, self._first_s = motion, first_s
        self._begin_world_s = float("inf")

    def begin(self, world_s: float) -> None:
        """Set media time 0 to this world time; later calls have no effect."""
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
    """A motion that starts at world time 0; `camera_file` is the real file that the camera hands out, if any.

    With a camera file the motion starts again when the shutter opens (`ReplayFromShutter`).
    """

    motion: HeadMotion
    camera_file: Path | None


def read_replay(text: str, seed: int) -> Replay:
    """Read `FILE.npz:NAME` (arrays NAME_t in s, NAME_w in rad/s) or `FILE.MP4`. Raises BadReplay."""
    if text.lower().endswith(VIDEO_SUFFIXES):
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
