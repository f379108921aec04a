"""Every error of the storage side, one base."""

from pathlib import Path


class StorageError(Exception):
    """Base of all storage errors: one line that names the thing and what to do."""


class NotARecording(StorageError):
    """The folder has no readable manifest."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: not a recording: {why}; give the folder that holds recording.json")


class RecordingExists(StorageError):
    """A recording of this id is already there and is never written over."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: a recording of this id exists; choose another id (or --retake-of {path.name})"
        )


class BadName(StorageError):
    """A recording id that could not be a folder name everywhere."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"recording id {name!r}: use 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
        )


class UnknownStream(StorageError):
    """The recording holds no stream of this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"no stream {name!r} in this recording; it has: {', '.join(known) or 'none'}")


class BadChunk(StorageError):
    """A sealed chunk that does not open or whose parts do not fit together."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: damaged chunk: {why}; run `kitchensync verify` on the recording")


class BadEventLog(StorageError):
    """An event file whose lines are not what was written."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"{path}, line {line}: damaged event log: {why}")


class NotPackable(StorageError):
    """A recording or stream that cannot be packed now."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: cannot be archived: {why}")
