"""KitchenSync from Python: recordings of people cooking, opened, judged and put on one clock.

    import kitchensync as ks

    rec = ks.open("data/take-1")
    picture, motion = rec.pv[0], rec.gyroscope.sample([5.0, 5.1])

`verify`, `synchronize` and `align` return what `kitchensync verify|sync|align` print with `--json`. They raise where
those refuse: errors of `kitchensync.storage.errors` and `kitchensync.sync.errors`, one line each. `list_recordings`
returns the paths of the recordings in one folder. Everything is imported when it is called.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    import pandas

    from kitchensync.reader.opened_recording import OpenedRecording
    from kitchensync.storage.verify.by_life import RecordingVerification

__all__ = ["ERROR_KINDS", "align", "errors", "list_recordings", "open", "steps", "synchronize", "verify"]

ERROR_KINDS: tuple[str, ...]
"""Columns of `rec.steps` that state the category of an error; an error of no category has only `error`."""

# Hidden from type checkers: to them every misspelt name would be one of this function's.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> tuple[str, ...]:
        """Import the table of categories only where it is read: it would make `import kitchensync` slower."""
        if name != "ERROR_KINDS":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from kitchensync.task_graphs.categories import TAG_OF_COLUMN

        return tuple(TAG_OF_COLUMN)


def open(path: str | os.PathLike[str], *, with_pauses: bool = False) -> OpenedRecording:
    """Open a recording for reading; nothing is written by it. Close it, or use it as a context manager.

    `rec.pv[i]`, `rec.depth.at(seconds)`, `rec.gyroscope.sample(times)`, `rec.at(seconds=20)`, `rec.steps`; all times
    are session seconds, and each stream says with `bound_at` how far they may be off. Files that were freed are read
    in a copy. What lies in privacy pauses is left out but `with_pauses`. Raises NotARecording, Withdrawn.
    """
    from kitchensync.reader.opened_recording import OpenedRecording

    return OpenedRecording(_here(path), with_pauses=with_pauses)


def list_recordings(root: str | os.PathLike[str]) -> list[Path]:
    """Return the paths of the recordings in a folder, not of those in folders below it, in order of name.

    The path of a recording itself gives that recording. A recording whose `recording.json` is lost is included, so
    that it is not skipped in silence. Raises NotARecording if there is none.
    """
    return _recordings(Path(root))


def errors(root: str | os.PathLike[str]) -> pandas.DataFrame:
    """Return the errors of all recordings in a folder as one table, like `rec.errors` of each. Needs pandas.

    Which recordings are left out is as in `steps`. Raises NotARecording where there is none.
    """
    from kitchensync.reader.many_recordings import errors_of_all

    return errors_of_all(_recordings(Path(root)))


def steps(root: str | os.PathLike[str]) -> pandas.DataFrame:
    """Return the steps of all recordings in a folder as one table, like `rec.steps` of each. Needs pandas.

    Withdrawn recordings are left out, and so are parts, replays and copies of others: their steps are those of the
    whole. One that cannot be read is left out with a warning that names it. Raises NotARecording where there is none.
    """
    from kitchensync.reader.many_recordings import steps_of_all

    return steps_of_all(_recordings(Path(root)))


def verify(path: str | os.PathLike[str], *, deep: bool = False) -> RecordingVerification:
    """Recompute ledger and checksums of a recording from its files alone; return the object `verify/1`.

    Its `status` is PASS, WARN or FAIL with `reasons`; `deep` decodes pictures and sound too. What is wrong inside the
    recording is in the answer. Raises NotARecording where there is none.
    """
    from kitchensync.storage.verify import verify

    (recording,) = _recordings(Path(path), one=True)
    return verify(recording, deep=deep)


def synchronize(
    path: str | os.PathLike[str], *, master: str | None = None, again: bool = False
) -> dict[str, Any]:
    """Align the clocks of a recording, or of all in a folder, and index their frames; return the object `sync/1`.

    Each of its `recordings` has a `status` (`aligned`, `check`, `not_aligned`, `nothing_to_align`, `not_done`) and
    `pairs` with maps, samples and bounds in ms. Only files under `sync/` of a recording are written. `master` is the
    stream whose frames are indexed (None: pv). Without `again` finished ones of a folder are not computed anew.
    Raises NotARecording where there is none, UnknownMaster.
    """
    from kitchensync.sync.answers import plain
    from kitchensync.sync.batch.batch import synchronize_all

    _recordings(Path(path))
    answer: dict[str, Any] = plain(synchronize_all([Path(path)], master=master, workers=1, again=again))
    return answer


def align(
    hololens: str | os.PathLike[str] | Mapping[str, npt.ArrayLike],
    gopro: str | os.PathLike[str] | Mapping[str, npt.ArrayLike],
    *,
    epoch_ticks: int | None = None,
    prior_s: float = 0.0,
    prior_half_width_s: float | None = None,
) -> dict[str, Any]:
    """Align two gyroscopes given as arrays; return the alignment object.

    Each is an .npz file, or arrays by name: `hololens` has `vinyl_ns` and `soc_ticks` (n,) int64 and `rad_per_s`
    (n, 3), `gopro` has `t_s` (m,) seconds and `rad_per_s` (m, 3). Media time 0 is expected at device tick
    `epoch_ticks + 1e7 prior_s`, give or take `prior_half_width_s` seconds; None takes the first sample, and the whole
    overlap. Raises BadArrays.
    """
    from kitchensync.sync.given_files.arrays import GivenArrays, align_arrays

    return align_arrays(
        GivenArrays.of(hololens, "hololens"),
        GivenArrays.of(gopro, "gopro"),
        epoch_ticks=epoch_ticks,
        prior_s=prior_s,
        prior_half_width_s=prior_half_width_s,
    )


def _here(path: str | os.PathLike[str]) -> Path:
    from kitchensync.storage.errors import NotARecording

    if "://" in os.fspath(path):
        raise NotARecording(
            Path(path), "it is an address; copy the recording here first, recordings are read from disks"
        )
    return Path(path).parent if Path(path).name == "recording.json" else Path(path)


def _recordings(path: Path, *, one: bool = False) -> list[Path]:
    from kitchensync.storage.errors import NotARecording
    from kitchensync.storage.names import recordings_in
    from kitchensync.storage.options.given_path import check_recordings

    check_recordings(path)
    found = recordings_in(path)
    if one and found != [path]:
        raise NotARecording(path, f"it is a folder of {len(found)} recordings")
    return found
