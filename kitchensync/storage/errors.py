"""Every error of the storage side, one base."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from kitchensync.sensors.errors import SentError
from kitchensync.shell.files_on_disk import NO_INODES, lacks_inodes


class StorageError(SentError):
    """Base of all storage errors: one line that names the thing and what to do."""

    exit_code = 1


class Unusable(StorageError):
    """A recording that cannot be worked on as it is now: a refusal, never a verdict on its data."""


class AtPath(StorageError):
    """Base of errors that say what is wrong with a folder, file or place, each in its `text`."""

    text = ""

    def __init__(self, path: Path | str, why: str = "") -> None:
        self.why = why
        super().__init__(self.text.format(path=path, why=why))


class NotARecording(AtPath, Unusable):
    """The folder has no readable manifest."""

    exit_code = 2
    text = "{path}: not a recording: {why}; give the folder that holds recording.json"


class ManifestLost(NotARecording):
    """There are recorded files, but no manifest that can be read."""

    exit_code = 1
    text = (
        "{path}: {why}, its recorded files are still there; take it from a copy, or rebuild it: "
        "`kitchensync recover --rebuild {path}`"
    )


class ManifestDamaged(NotARecording):
    """The manifest is there, but is not what was written."""

    exit_code = 1
    text = "{path}: recording.json {why}; restore it from a copy"
    file = "recording.json"
    "Path of the bad file inside the recording."


class CopyBegun(NotARecording):
    """A place in a store that a copy took, before its first byte came."""

    exit_code = 1
    text = (
        "{path}: is a copy that was interrupted before its first file; run `kitchensync move "
        "DATA/{path.name} --to STORE` where it was recorded, or remove it"
    )


class BadInstallation(AtPath):
    """A file of the installation, its key or its list, that cannot be used."""

    text = "{path}: {why}"


class UnknownCamera(StorageError):
    """A camera that this installation did not use, or not for this recording."""

    def __init__(self, recording: Path, device: str) -> None:
        super().__init__(
            f"{recording}: this installation does not know the address of {device}; give it: --gopro {device}=URL"
        )


class UnsafeFile(ManifestDamaged):
    """A recording that holds a link, a pipe, or a file that nobody may read: nothing in it is used."""

    def __init__(self, recording: Path, file: str, why: str) -> None:
        self.file = file
        StorageError.__init__(self, f"{recording / file}: {why}")


class NoSuchGroup(StorageError):
    """The group that lab.toml names cannot be given what is recorded."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"group {name!r} of lab.toml: {why}; name another, or leave it out to share with nobody"
        )


class CannotRebuild(AtPath):
    """A manifest that is not lost, or that the other files of the recording do not tell."""

    text = "{path}: is not rebuilt: {why}"


class UnreadableFile(AtPath):
    """A small file of a recording that tells of the others is damaged."""

    text = "{path}: cannot be read ({why}); take it from a copy of the recording"


class RecordingExists(AtPath):
    """A recording of this id is already there and is never written over."""

    text = "{path}: a recording of this id exists; choose another id (or --retake-of {path.name})"


class BadName(StorageError):
    """A recording id that could not be a folder name everywhere."""

    def __init__(
        self, name: str, why: str = "use 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
    ) -> None:
        super().__init__(f"recording id {name!r}: {why}")


class UnknownStream(StorageError):
    """The recording holds no stream of this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"no stream {name!r} in this recording; it has: {', '.join(known) or 'none'}")


class BadChunk(AtPath):
    """A sealed chunk that does not open or whose parts do not fit together."""

    text = "{path}: damaged chunk: {why}; run `kitchensync verify` on the recording"


class BadEventLog(StorageError):
    """An event file whose lines are not what was written."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        self.line = line
        super().__init__(f"{path}, line {line}: damaged event log: {why}")


class BadAnnotations(AtPath):
    """A file of a recording's `annotations/` that is not what was written."""

    text = "{path}: {why}; take it from a copy of the recording"


class BadLabFile(AtPath):
    """A lab.toml that cannot be read."""

    text = "{path}: {why}; mend that line"


class BadCondition(StorageError):
    """A condition on recordings that cannot be asked."""

    exit_code = 2

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"{text!r} is no condition such as 'verdict!=FAIL'; {why}")


class NotRedactable(StorageError):
    """A recording of which nothing can be destroyed now, and what to do first."""

    def __init__(self, path: Path, why: str, what_to_do: str) -> None:
        super().__init__(f"{path}: cannot be redacted: {why}; {what_to_do}")


class CannotCut(AtPath):
    """A recording of which no part can be made."""

    text = "{path}: cannot be cut: {why}"


class NothingToReplay(AtPath):
    """A recording without any packet of a headset."""

    text = "{path}: holds no stream of a headset that could be served"


class NotWithdrawable(AtPath):
    """A recording that cannot be withdrawn now."""

    text = "{path}: is being recorded; stop it first, or run `kitchensync recover`"


class SameUuid(StorageError):
    """A recording with another one beside it that claims to be the same, and that was not made here."""

    def __init__(self, path: Path, others: list[str]) -> None:
        super().__init__(
            f"{path}: {', '.join(others)} has the same uuid and is no copy that was made here, nothing is withdrawn; "
            "give both, or remove the one that is not yours"
        )


class NotPackable(AtPath):
    """A recording or stream that cannot be packed now."""

    text = "{path}: cannot be archived: {why}"


class MoverBusy(AtPath):
    """Two movers would write the same copies."""

    text = "{path}: another process is copying it; wait until that has finished"


class TargetAway(AtPath):
    """A store that cannot take copies now."""

    text = "{path}: cannot take copies: {why}"


class CopyUnfinished(AtPath, Unusable):
    """A copy in a store that is not whole yet."""

    text = (
        "{path}: is a copy that is not whole yet; run `kitchensync move DATA/{path.name} --to STORE` "
        "where it was recorded"
    )


class PlaceTaken(AtPath):
    """A place in a store that holds another recording of the same name, or something else."""

    text = "{path}: holds {why}, nothing is written there; choose another store or rename one of them"


class CopyDiffers(AtPath):
    """A store that gives back something else than was written."""

    text = "{path}: the copy differs from the original; the local file stays: check the store"


class SourceDiffers(AtPath):
    """A local file that is not what was sealed; it is not copied over good copies."""

    text = "{path}: is not what was sealed, it is not copied; run `kitchensync verify`"


class NotAsStated(AtPath):
    """A file that is no longer what its list of checksums says; it is not sent."""

    text = "{path}: is not what SHA256SUMS says, it is not sent; run `kitchensync release check`"


class FilesFreed(Unusable):
    """The files of a recording were freed after they were copied, and no copy can be read now."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        super().__init__(
            f"{path}: its files were freed after they were copied, and no copy can be read now "
            f"({'; '.join(problems) or 'no store is named'}); mount a store that has them"
        )


class Withdrawn(AtPath, Unusable):
    """A recording whose person took the consent back."""

    text = "{path}: the participant withdrew consent; it may not be used or shared"


_ENTER = "enter what was signed with `kitchensync consent`"


class NotPermitted(Unusable):
    """A use of a recording that its consent does not allow."""

    def __init__(self, recording: Path, why: str, or_else: str = "", *, do: str = _ENTER) -> None:
        super().__init__(f"{recording}: {why}; {do}{or_else}")


class HoldsPauses(AtPath):
    """A raw copy for others that would show privacy pauses."""

    text = "{path}: it holds pictures or sound of a privacy pause; run `kitchensync redact` first"


class FilesMissing(StorageError):
    """A recording that lacks files which it says it has."""

    def __init__(self, recording: Path, missing: list[str]) -> None:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        super().__init__(
            f"{recording}: {missing[0]}{more} of its files are missing, nothing is sent; "
            "restore them from a copy (`kitchensync verify` names all)"
        )


class NotFinished(AtPath, Unusable):
    """A recording that is not closed yet."""

    text = "{path}: is not closed yet; end it, or run `kitchensync recover` after a crash"


class CloudRefused(StorageError):
    """A cloud store that cannot be reached or does not take a file."""

    def __init__(self, url: str, file: str, why: str) -> None:
        super().__init__(f"{url}: {file + ': ' if file else ''}{why}; what was copied stays, run it again")


class SecretInAddress(StorageError):
    """The address of a cloud store with a password in it."""

    def __init__(self, protocol: str) -> None:
        super().__init__(
            f"the address has a password, which a recording would keep: give it as FSSPEC_{protocol.upper()}_PASSWORD"
        )


class NoDask(StorageError):
    """A cluster that cannot be used."""

    def __init__(self, address: str = "", why: object = "") -> None:
        super().__init__(
            f"cannot work on {address}: {why}; start the scheduler, or leave --scheduler out"
            if address
            else "Dask is not installed: pip install 'kitchensync[batch]', or leave --scheduler out"
        )


class NoWorkers(StorageError):
    """A scheduler without a worker that can do the work."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(
            f"no worker of {address} can be used ({why}); start workers with this software that see the recordings, "
            "or leave --scheduler out"
        )


class NotOfThisKind(StorageError):
    """A stream that a reader does not fit; it says what the stream is, None where nobody knows, and what reads it."""

    def __init__(self, name: str, wanted: str, kind: str | None, reader: str) -> None:
        super().__init__(f"{name} is {kind or 'a stream of packets'}, not {wanted}; read it with {reader}")


class BadStamps(StorageError):
    """Stamps of samples from which no clock can be read."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"inertial stamps: {why}")


class OutsideMap(StorageError):
    """A clock map that cannot be inverted."""

    def __init__(self, rate: float) -> None:
        super().__init__(f"clock map runs at {rate:g} device seconds a media second: it has no inverse")


def words_of(error: Exception) -> str:
    """Say an error in one line; what the computer says without its numbers, with the file and what to do."""
    if not isinstance(error, OSError):
        return " ".join(str(error).split())
    what = (error.strerror or str(error)).lower()
    if not isinstance(error.filename, str | bytes):
        return f"{what}; check the disk, then run it again"
    place = Path(os.fsdecode(error.filename))
    if error.errno == errno.ENOSPC:  # a disk is called full too when only its inodes are used up
        above = place.absolute()
        if lacks_inodes(next(folder for folder in (above, *above.parents) if folder.is_dir())):
            what = NO_INODES
    return f"{os.fsdecode(error.filename)}: {what}; check the disk, then run it again"


OF_COMPUTER = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES),
    *(errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EBUSY, errno.ENODEV, errno.ENXIO),
    *(errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.ECONNRESET, errno.ECONNREFUSED),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH),
}
"""What a disk, a network store or memory says; a file that is gone or holds something else is a finding."""


def is_trouble(error: BaseException) -> bool:
    """Return whether an error, or one that it came from, is of the computer."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno in OF_COMPUTER):
            return True
        cause = cause.__cause__
    return False


def pass_on_trouble(error: BaseException) -> None:
    """Raise an error again that is of the computer; a finding is left to who caught it."""
    if is_trouble(error):
        raise error
