"""Every error of the storage side, one base."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from kitchensync.sensors.errors import SentError, WordedError
from kitchensync.shell.files_on_disk import NO_INODES, lacks_inodes


class StorageError(SentError):
    """Base of all storage errors: one line that names the thing and what to do."""

    exit_code = 1


class Unusable(StorageError):
    """A recording that cannot be used in its current state: a refusal, not a verdict on its data."""


class AtPath(WordedError, StorageError):
    """Base of errors about a folder, file or place, with the message in `text`."""


class NotARecording(AtPath, Unusable):
    """The folder has no readable manifest."""

    exit_code = 2
    text = "{at}: not a recording: {why}; give the folder that holds recording.json"


class ManifestLost(NotARecording):
    """There are recorded files, but no readable manifest."""

    exit_code = 1
    text = (
        "{at}: {why}, its recorded files are still there; take it from a copy, or rebuild it: "
        "`kitchensync recover --rebuild {at}`"
    )


class ManifestDamaged(NotARecording):
    """The manifest is damaged."""

    exit_code = 1
    text = "{at}: recording.json {why}; restore it from a copy"
    file = "recording.json"
    "Path of the bad file inside the recording."


class CopyBegun(NotARecording):
    """A place in a store that was reserved for a copy, before its first byte."""

    exit_code = 1
    text = (
        "{at}: is a copy that was interrupted before its first file; run `kitchensync move "
        "DATA/{at.name} --to STORE` where it was recorded, or remove it"
    )


class BadInstallation(AtPath):
    """An unusable file of the installation: its key or its list."""

    text = "{at}: {why}"


class UnknownCamera(StorageError):
    """A camera that this installation did not use for this recording."""

    def __init__(self, recording: Path, device: str) -> None:
        super().__init__(
            f"{recording}: this installation does not know the address of {device}; give it: --gopro {device}=URL"
        )


class UnsafeFile(ManifestDamaged):
    """A recording with a link, a pipe, or an unreadable file; none of its files are used."""

    def __init__(self, recording: Path, file: str, why: str) -> None:
        self.file = file
        StorageError.__init__(self, f"{recording / file}: {why}")


class NoSuchGroup(WordedError, StorageError):
    """Recordings cannot be given to the group in lab.toml."""

    text = "group {at!r} of lab.toml: {why}; name another, or leave it out to share with nobody"


class CannotRebuild(AtPath):
    """A manifest that is not lost, or that cannot be rebuilt from the other files."""

    text = "{at}: is not rebuilt: {why}"


class UnreadableFile(AtPath):
    """A damaged small file of a recording."""

    text = "{at}: cannot be read ({why}); take it from a copy of the recording"


class RecordingExists(AtPath):
    """A recording of this id exists; it is never overwritten."""

    text = "{at}: a recording of this id exists; choose another id (or --retake-of {at.name})"


class BadName(StorageError):
    """A recording id that is not a valid folder name on every system."""

    def __init__(
        self, name: str, why: str = "use 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
    ) -> None:
        super().__init__(f"recording id {name!r}: {why}")


class UnknownStream(StorageError):
    """The recording has no stream of this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"no stream {name!r} in this recording; it has: {', '.join(known) or 'none'}")


class BadChunk(AtPath):
    """A sealed chunk that cannot be opened or is inconsistent."""

    text = "{at}: damaged chunk: {why}; run `kitchensync verify` on the recording"


class BadEventLog(StorageError):
    """A damaged event file."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        self.line = line
        super().__init__(f"{path}, line {line}: damaged event log: {why}")


class BadAnnotations(AtPath):
    """A damaged file of a recording's `annotations/`."""

    text = "{at}: {why}; take it from a copy of the recording"


class BadLabFile(AtPath):
    """A lab.toml that cannot be read."""

    text = "{at}: {why}; mend that line"


class BadCondition(WordedError, StorageError):
    """An invalid condition on recordings."""

    exit_code = 2
    text = "{at!r} is no condition such as 'verdict!=FAIL'; {why}"


class NotRedactable(StorageError):
    """A recording that cannot be redacted now, and what to do first."""

    def __init__(self, path: Path, why: str, what_to_do: str) -> None:
        super().__init__(f"{path}: cannot be redacted: {why}; {what_to_do}")


class CannotCut(AtPath):
    """A recording that cannot be cut."""

    text = "{at}: cannot be cut: {why}"


class NothingToReplay(AtPath):
    """A recording without packets of a headset."""

    text = "{at}: holds no stream of a headset that could be served"


class NotWithdrawable(AtPath):
    """A recording that cannot be withdrawn now."""

    text = "{at}: is being recorded; stop it first, or run `kitchensync recover`"


class SameUuid(StorageError):
    """A recording beside another one with the same uuid that was not copied by this installation."""

    def __init__(self, path: Path, others: list[str]) -> None:
        super().__init__(
            f"{path}: {', '.join(others)} has the same uuid and is no copy that was made here, nothing is withdrawn; "
            "give both, or remove the one that is not yours"
        )


class NotPackable(AtPath):
    """A recording or stream that cannot be packed now."""

    text = "{at}: cannot be archived: {why}"


class MoverBusy(AtPath):
    """Another mover writes the same copies."""

    text = "{at}: another process is copying it; wait until that has finished"


class TargetAway(AtPath):
    """A store that cannot take copies now."""

    text = "{at}: cannot take copies: {why}"


class CopyUnfinished(AtPath, Unusable):
    """An incomplete copy in a store."""

    text = (
        "{at}: is a copy that is not whole yet; run `kitchensync move DATA/{at.name} --to STORE` "
        "where it was recorded"
    )


class PlaceTaken(AtPath):
    """A place in a store with another recording of the same name, or other files."""

    text = "{at}: holds {why}, nothing is written there; choose another store or rename one of them"


class CopyDiffers(AtPath):
    """A store that returned other bytes than were written."""

    text = "{at}: the copy differs from the original; the local file stays: check the store"


class SourceDiffers(AtPath):
    """A local file that changed since it was sealed; it must not replace good copies."""

    text = "{at}: is not what was sealed, it is not copied; run `kitchensync verify`"


class NotAsStated(AtPath):
    """A file that does not match its list of checksums."""

    text = "{at}: is not what SHA256SUMS says, it is not sent; run `kitchensync release check`"


class FilesFreed(Unusable):
    """The files of a recording were freed, and no copy is available."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        super().__init__(
            f"{path}: its files were freed after they were copied, and no copy can be read now "
            f"({'; '.join(problems) or 'no store is named'}); mount a store that has them"
        )


class Withdrawn(AtPath, Unusable):
    """A recording whose participant withdrew consent."""

    text = "{at}: the participant withdrew consent; it may not be used or shared"


_ENTER = "enter what was signed with `kitchensync consent`"


class NotPermitted(Unusable):
    """A use of a recording that is not allowed by its consent."""

    def __init__(self, recording: Path, why: str, or_else: str = "", *, do: str = _ENTER) -> None:
        super().__init__(f"{recording}: {why}; {do}{or_else}")


class HoldsPauses(AtPath):
    """A raw copy for others that would include privacy pauses."""

    text = "{at}: it holds pictures or sound of a privacy pause; run `kitchensync redact` first"


class FilesMissing(StorageError):
    """A recording with missing files."""

    def __init__(self, recording: Path, missing: list[str]) -> None:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        super().__init__(
            f"{recording}: {missing[0]}{more} of its files are missing, nothing is sent; "
            "restore them from a copy (`kitchensync verify` names all)"
        )


class NotFinished(AtPath, Unusable):
    """A recording that is not closed yet."""

    text = "{at}: is not closed yet; end it, or run `kitchensync recover` after a crash"


class CloudRefused(StorageError):
    """A cloud store that cannot be reached or refuses a file."""

    def __init__(self, url: str, file: str, why: str) -> None:
        super().__init__(f"{url}: {file + ': ' if file else ''}{why}; what was copied stays, run it again")


class SecretInAddress(StorageError):
    """An address of a cloud store with a password."""

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


class NoWorkers(WordedError, StorageError):
    """A scheduler without a usable worker."""

    text = (
        "no worker of {at} can be used ({why}); start workers with this software that see the recordings, "
        "or leave --scheduler out"
    )


class NotOfThisKind(StorageError):
    """A stream of another kind (None if unknown) than the reader needs, and the right reader."""

    def __init__(self, name: str, wanted: str, kind: str | None, reader: str) -> None:
        super().__init__(f"{name} is {kind or 'a stream of packets'}, not {wanted}; read it with {reader}")


class BadStamps(StorageError):
    """Stamps of samples from which no clock can be estimated."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"inertial stamps: {why}")


class OutsideMap(StorageError):
    """A clock map that cannot be inverted."""

    def __init__(self, rate: float) -> None:
        super().__init__(f"clock map runs at {rate:g} device seconds a media second: it has no inverse")


def words_of(error: Exception) -> str:
    """Return an error in one line; one of the computer without its number, with the file and what to do."""
    if not isinstance(error, OSError):
        return " ".join(str(error).split())
    what = (error.strerror or str(error)).lower()
    if not isinstance(error.filename, str | bytes):
        return f"{what}; check the disk, then run it again"
    place = Path(os.fsdecode(error.filename))
    if error.errno == errno.ENOSPC:  # also the error of a disk without free inodes
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
"""Errors of a disk, a network store or memory; a missing or different file is a finding instead."""


def is_trouble(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, is of the computer."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno in OF_COMPUTER):
            return True
        cause = cause.__cause__
    return False


def pass_on_trouble(error: BaseException) -> None:
    """Raise an error of the computer again; others are left to the caller."""
    if is_trouble(error):
        raise error
