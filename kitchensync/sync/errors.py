"""Every error of the synchronization on one page, with one base."""

from __future__ import annotations

from pathlib import Path


def one_line(error: Exception, path: Path) -> str:
    """Say an error of a file without the place of its folder, so that answers are the same everywhere."""
    return " ".join(str(error).split()).replace(str(path), path.name)


class SyncError(Exception):
    """Base of all synchronization errors: catch this one at the edge."""

    exit_code = 1


class UnusableInput(SyncError):
    """Something that was given and does not serve."""

    def __init__(self, what: object, problem: str) -> None:
        super().__init__(f"{what}: {problem}")


class BadArrays(UnusableInput):
    """Arrays that cannot be what they claim to be."""


class TooShort(SyncError):
    """A track that holds too little to be aligned."""

    def __init__(self, what: str, seconds: float, needed_s: float, *, is_of_master: bool = False) -> None:
        self.what, self.seconds, self.needed_s, self.is_of_master = what, seconds, needed_s, is_of_master
        super().__init__(f"{what} lasts {seconds:.2f} s, at least {needed_s:g} s are needed")


class NotIncreasing(UnusableInput):
    """Stamps that a binary search cannot use."""


class NothingToSync(UnusableInput):
    """A recording without any stamped stream."""


class NoSuchMaster(UnusableInput):
    """A master that the recording cannot offer."""


class UnknownMaster(SyncError):
    """A master that no recording knows: a wrong option."""

    exit_code = 2

    def __init__(self, master: str, known: list[str]) -> None:
        super().__init__(f"--master {master}: no recording has it; choose one of {', '.join(known)}")


class CannotCompare(UnusableInput):
    """Something that holds no alignments."""


class NoCameraName(SyncError):
    """A latency that cannot be kept for a camera."""

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
