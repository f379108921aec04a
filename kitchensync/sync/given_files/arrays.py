"""`kitchensync align` of two .npz files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.errors import BadStamps
from kitchensync.storage.exports.arrays_file import DAMAGED, open_arrays
from kitchensync.storage.timeline.alignment import Input
from kitchensync.storage.timeline.stamps import TICKS_PER_S, repair_stamps
from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.align.headset_gyro import headset_gyro, in_blocks
from kitchensync.sync.align.prior import Prior
from kitchensync.sync.answers import plain
from kitchensync.sync.errors import BadArrays, TooShort
from kitchensync.sync.fit.resample import GyroTrack, make_track
from kitchensync.sync.result.result import pair_aligned, refused


@dataclass(frozen=True)
class GivenArrays:
    """Arrays by name in an .npz file, or in memory with a label."""

    label: str
    arrays: Path | Mapping[str, npt.ArrayLike]

    @classmethod
    def of(cls, given: str | os.PathLike[str] | Mapping[str, npt.ArrayLike], name: str) -> GivenArrays:
        """Take a path as a file, and anything else as arrays."""
        return cls(name, given) if isinstance(given, Mapping) else cls(os.fspath(given), Path(given))

    def input(self) -> Input:
        """Return their label with a hash. Raises BadArrays."""
        if isinstance(self.arrays, Path):
            return file_input(self.arrays)
        digest = hashlib.sha256()
        for name in sorted(self.arrays):
            digest.update(name.encode() + np.ascontiguousarray(self[name]).tobytes())
        return Input(self.label, digest.hexdigest())

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return an array of numbers. Raises BadArrays."""
        try:
            if isinstance(self.arrays, Path):
                with open_arrays(self.arrays) as archive:  # without pickled objects, which could run code
                    array: npt.NDArray[Any] = archive[name]
            else:
                array = np.asarray(self.arrays[name])
        except KeyError as error:
            raise BadArrays(self.label, f"holds no array {name!r}") from error
        except DAMAGED as error:
            raise BadArrays(self.label, f"is not a readable .npz file ({error})") from error
        if array.dtype.kind not in "iuf":
            raise BadArrays(self.label, f"{name} holds {array.dtype}, not numbers")
        return array


def align_arrays(
    of_headset: GivenArrays,
    of_camera: GivenArrays,
    *,
    epoch_ticks: int | None = None,
    prior_s: float = 0.0,
    prior_half_width_s: float | None = None,
) -> dict[str, Any]:
    """Align two gyroscopes given as arrays; return the alignment object.

    Those of the headset are `vinyl_ns` and `soc_ticks` (n,) int64 and `rad_per_s` (n, 3), those of the camera `t_s`
    (m,) and `rad_per_s` (m, 3). Media time 0 is tick `epoch_ticks + 1e7 prior_s`, plus or minus
    `prior_half_width_s`. Raises BadArrays if a file or an array is invalid.
    """
    inputs = [of_headset.input(), of_camera.input()]
    vinyl_ns = _ticks(of_headset, "vinyl_ns")
    try:
        repair = repair_stamps(vinyl_ns, _ticks(of_headset, "soc_ticks"))
    except BadStamps as error:
        raise BadArrays(of_headset.label, error.why) from error
    rates = of_headset["rad_per_s"]
    if rates.shape != (len(vinyl_ns), 3):
        problem = f"rad_per_s is {rates.shape}, the stamps ask for ({len(vinyl_ns)}, 3)"
        raise BadArrays(of_headset.label, problem)
    headset = headset_gyro(in_blocks(vinyl_ns, rates), repair)
    del vinyl_ns, rates
    camera = make_track(of_camera.label, of_camera["t_s"], of_camera["rad_per_s"])
    prior = None
    if prior_half_width_s is not None:
        from_epoch_s = (epoch_ticks - headset.epoch_ticks) / TICKS_PER_S if epoch_ticks is not None else 0.0
        prior = Prior(prior_s + from_epoch_s, prior_half_width_s / 3.0, prior_half_width_s, "user")
    try:
        pair = align_pair(headset, camera, prior=prior)
    except TooShort as error:
        return dict(plain(refused(str(error), inputs=inputs).as_object()))
    answer = pair_aligned(
        pair,
        epoch_ticks=headset.epoch_ticks,
        last_t_s=float(camera.t_s[-1]),
        headset=repair.report(),
        camera=track_report(camera),
        inputs=inputs,
    )
    return dict(plain(answer.as_object()))


def track_report(track: GyroTrack) -> dict[str, object]:
    """Return the facts of a track for the alignment file."""
    rate_hz = 1.0 / float(np.median(np.diff(track.t_s)))
    return {"rate_hz": round(rate_hz, 4), "samples": len(track.t_s)}


def file_input(path: Path) -> Input:
    """Return the path of a file with its hash. Raises BadArrays."""
    try:
        return Input(str(path), file_sha256(path))
    except OSError as error:
        raise BadArrays(str(path), error.strerror or "cannot be read") from error


def _ticks(arrays: GivenArrays, name: str) -> npt.NDArray[np.int64]:
    array = arrays[name]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise BadArrays(arrays.label, f"{name} is {array.dtype} {array.shape}, it must be int64 (n,)")
    return array.astype(np.int64, copy=False)
