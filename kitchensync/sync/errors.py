"""All errors of the synchronization, with one base."""

from __future__ import annotations

from pathlib import Path


def one_line(error: Exception, path: Path) -> str:
    """Return an error of a file without the path of its folder, so that answers are equal everywhere."""
    return " ".join(str(error).split()).replace(str(path), path.name)


class SyncError(Exception):
    """Base of all synchronization errors."""

    exit_code = 1


class UnusableInput(SyncError):
    """An unusable input."""

    def __init__(self, what: object, problem: str) -> None:
        super().__init__(f"{what}: {problem}")


class BadArrays(UnusableInput):
    """Invalid arrays."""


class TooShort(SyncError):
    """A track that is too short to be aligned."""

    def __init__(self, what: str, seconds: float, needed_s: float, *, is_of_master: bool = False) -> None:
        self.what, self.seconds, self.needed_s, self.is_of_master = what, seconds, needed_s, is_of_master
        super().__init__(f"{what} lasts {seconds:.2f} s, at least {needed_s:g} s are needed")


class NotIncreasing(UnusableInput):
    """Stamps that are not increasing, as a binary search requires."""


class NothingToSync(UnusableInput):
    """A recording without any stamped stream."""


class NoSuchMaster(UnusableInput):
    """A master that is not in the recording."""


class UnknownMaster(SyncError):
    """A master that is in no recording: a wrong option."""

    exit_code = 2

    def __init__(self, master: str, known: list[str]) -> None:
        super().__init__(f"--master {master}: no recording has it; choose one of {', '.join(known)}")


class CannotCompare(UnusableInput):
    """A path without alignments."""


class NoCameraName(SyncError):
    """A latency that cannot be stored because the camera is unknown."""

    def __init__(self, file: str) -> None:
        super().__init__(
            f"{file} does not say which camera it is of: it has no serial number to keep it under"
        )


class BadLatencyStore(SyncError):
    """Stored latencies that cannot be read."""

    def __init__(self, path: object, why: object) -> None:
        super().__init__(
            f"{path} cannot be read ({why}); repair it, or remove it and measure the cameras again"
        )


class CannotFilm(UnusableInput):
    """A video that cannot be made."""
