"""`kitchensync align`: the same mathematics on two .npz files."""

from __future__ import annotations

import hashlib
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.storage.errors import BadStamps
from kitchensync.storage.exports.arrays_file import open_arrays
from kitchensync.storage.timeline.alignment import Alignment, Input
from kitchensync.storage.timeline.stamps import TICKS_PER_S, repair_stamps
from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.align.headset_gyro import headset_gyro, in_blocks
from kitchensync.sync.align.prior import Prior
from kitchensync.sync.answers import plain
from kitchensync.sync.errors import BadArrays, SyncError, TooShort
from kitchensync.sync.fit.resample import make_track
from kitchensync.sync.result.result import pair_aligned, refused

DAMAGED = (
    *(OSError, EOFError, ValueError, SyntaxError, MemoryError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)
"What NumPy lets out of an archive with a byte that is wrong: in its index, in a header, in what is packed."


def align_files(
    headset_path: Path,
    camera_path: Path,
    *,
    epoch_ticks: int | None = None,
    prior_s: float = 0.0,
    prior_half_width_s: float | None = None,
) -> dict[str, Any]:
    """Align two gyroscopes given as arrays; return the alignment object.

    The headset's file holds `vinyl_ns` and `soc_ticks` (n,) int64 and `rad_per_s` (n, 3), the camera's `t_s` (m,) and
    `rad_per_s` (m, 3). Media time 0 is tick `epoch_ticks + 1e7 prior_s`, give or take `prior_half_width_s`.
    Raises BadArrays when a file or an array is not what it should be.
    """
    inputs = [file_input(headset_path), file_input(camera_path)]
    vinyl_ns = _ticks(headset_path, "vinyl_ns")
    try:
        repair = repair_stamps(vinyl_ns, _ticks(headset_path, "soc_ticks"))
    except BadStamps as error:
        raise BadArrays(str(headset_path), error.why) from error
    rates = _rates(headset_path, len(vinyl_ns))
    headset = headset_gyro(in_blocks(vinyl_ns, rates), repair)
    del vinyl_ns, rates
    t_s = _array(camera_path, "t_s")
    camera = make_track(str(camera_path), t_s, _array(camera_path, "rad_per_s"))
    prior = None
    if prior_half_width_s is not None:
        from_epoch_s = (epoch_ticks - headset.epoch_ticks) / TICKS_PER_S if epoch_ticks is not None else 0.0
        prior = Prior(prior_s + from_epoch_s, prior_half_width_s / 3.0, prior_half_width_s, "user")
    try:
        found = align_pair(headset, camera, prior=prior)
    except TooShort as error:
        return _object(refused(str(error), inputs=inputs))
    rate_hz = 1.0 / float(np.median(np.diff(camera.t_s)))
    answer = pair_aligned(
        found,
        epoch_ticks=headset.epoch_ticks,
        last_t_s=float(camera.t_s[-1]),
        headset=repair.report(),
        camera={"rate_hz": round(rate_hz, 4), "samples": len(camera.t_s)},
        inputs=inputs,
    )
    return _object(answer)


def _object(answer: Alignment) -> dict[str, Any]:
    said: dict[str, Any] = plain(answer.as_object())
    return said


def file_sha256(path: Path) -> str:
    """Hash a file in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def file_input(path: Path) -> Input:
    """Name a file with its hash. Raises BadArrays."""
    try:
        return Input(str(path), file_sha256(path))
    except OSError as error:
        raise BadArrays(str(path), error.strerror or "cannot be read") from error


def _array(path: Path, name: str) -> npt.NDArray[Any]:
    """Read one array of an .npz, without objects (they could run code)."""
    try:
        with open_arrays(path) as archive:
            array: npt.NDArray[Any] = archive[name]
    except KeyError as error:
        raise BadArrays(str(path), f"holds no array {name!r}") from error
    except DAMAGED as error:
        raise BadArrays(str(path), f"is not a readable .npz file ({error})") from error
    if array.dtype.kind not in "iuf":
        raise BadArrays(str(path), f"{name} holds {array.dtype}, not numbers")
    return array


def _ticks(path: Path, name: str) -> npt.NDArray[np.int64]:
    array = _array(path, name)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise BadArrays(str(path), f"{name} is {array.dtype} {array.shape}, it must be int64 (n,)")
    return array.astype(np.int64, copy=False)


def _rates(path: Path, count: int) -> npt.NDArray[Any]:
    array = _array(path, "rad_per_s")
    if array.shape != (count, 3):
        raise BadArrays(str(path), f"rad_per_s is {array.shape}, the stamps ask for ({count}, 3)")
    return array


__all__ = ["SyncError", "align_files", "file_sha256"]
