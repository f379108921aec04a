"""All errors of the capture side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kitchensync.sensors.errors import WordedError
from kitchensync.shell.files_on_disk import NO_INODES


def without_password(url: str) -> str:
    """Return an address without user, password and options, so that it may be shown and logged."""
    return re.sub(r"://[^/]*@", "://", url.partition("?")[0]) if "://" in url else url


class CaptureError(Exception):
    """Base of all capture errors; the message is one line that says what is wrong and what to do."""

    exit_code = 1


class QueueUnavailable(CaptureError):
    """The queue server cannot be started or reached."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"queue server {without_password(where)}: {why}")


class BadQueueAddress(CaptureError):
    """The address of a queue server is invalid or not secure."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"--redis {without_password(url)}: {why}")


class StreamsFailed(CaptureError):
    """Streams ended by an internal error; their producer is restarted."""

    def __init__(self, streams: list[str]) -> None:
        super().__init__(f"{', '.join(streams)} failed; the error is above, in this log")


class AlreadyRunning(WordedError, CaptureError):
    """A recording with this id is running."""

    text = "recording {at} is running already; stop it with `kitchensync stop {at}`"


class StillEnding(CaptureError):
    """Processes of a killed recorder still run."""

    def __init__(self, recording: str, seconds: float) -> None:
        super().__init__(
            f"recording {recording}: processes of its killed recorder still run after {seconds:g} s;"
            " end them (see `ps`) and try again"
        )


class BadPlan(WordedError, CaptureError):
    """The plan of an unfinished recording cannot be read."""

    text = (
        "{at}: cannot be read ({why}); the sealed files of that recording are safe, its queue cannot be"
        " stored: move {at.parent} elsewhere to go on"
    )


class PlanOfOthers(WordedError, CaptureError):
    """The plan of an unfinished recording was not written by this user on this computer."""

    text = (
        "{at}: its recorder was not run by this user on this computer; if you ran it elsewhere, use "
        "`kitchensync recover --mine --data {at.parent.parent}`, else remove the folder"
    )


class NotRunning(CaptureError):
    """The requested recording is not running."""

    def __init__(self, recording: str | None, running: list[str]) -> None:
        problem = f"recording {recording} is not running" if recording else "which recording?"
        others = f"running: {', '.join(running)}" if running else "nothing is being recorded"
        super().__init__(f"{problem}; {others}")


class DeviceTaken(CaptureError):
    """Another recording uses a device of the rig."""

    def __init__(self, device: str, recording: str) -> None:
        super().__init__(
            f"{device} belongs to recording {recording or 'that begins now'}; stop that one, or leave its videos on"
            f" the card for now (`kitchensync stop {recording or 'ID'} --leave-films`)"
        )


class StreamsMissing(CaptureError):
    """Armed streams delivered nothing in time."""

    def __init__(self, states: dict[str, str], seconds: float) -> None:
        streams = "; ".join(f"{stream}: {state}" for stream, state in states.items())
        super().__init__(
            f"no packet within {seconds:g} s from {streams}; check the device and its ports"
            " or leave the stream out with --streams"
        )


class QueueSilent(StreamsMissing):
    """No packet could be queued because the queue server did not accept any."""

    def __init__(self, seconds: float, refusal: str = "") -> None:
        does = f"has refused writes ({refusal})" if refusal else "has not answered"
        CaptureError.__init__(
            self,
            f"the queue server {does} for {seconds:.0f} s, so no packet could be queued;"
            " see what holds it up (a stopped process, a computer without memory) and record again",
        )


class DiskTooFull(CaptureError):
    """There is not enough free space to begin."""

    def __init__(self, path: Path, free_bytes: int, needed_bytes: int) -> None:
        super().__init__(
            f"{path}: {free_bytes / 1e6:.0f} MB free, a recording needs {needed_bytes / 1e6:.0f} MB to begin;"
            " free some space or give another --data"
        )


class NoInodesLeft(WordedError, CaptureError):
    """The disk has no free inode for another file."""

    text = "{at}: " + NO_INODES + "; remove small files or give another --data"


class RecordingGone(CaptureError):
    """The folder of a recording cannot be found."""

    def __init__(self, path: Path, work: Path) -> None:
        super().__init__(
            f"{path} is gone (renamed, moved away or unmounted); what is not stored yet waits in {work}:"
            f" put the recording back below {work.parent.parent},"
            f" then `kitchensync recover --data {work.parent.parent}`"
        )


class StillWaiting(CaptureError):
    """Packets could not be stored and are still queued."""

    def __init__(self, recording: str, waiting: Sequence[object], work: Path) -> None:
        super().__init__(
            f"{recording}: {', '.join(map(str, waiting))} could not be stored and wait in the queue ({work});"
            " see the recording's logs, fix the problem,"
            f" then `kitchensync recover --data {work.parent.parent}` stores them"
        )


class FolderNotWritable(WordedError, CaptureError):
    """The data folder is not writable."""

    text = "{at}: cannot write there ({why}); give another --data"


class BadRig(CaptureError):
    """The rig file or a device option is invalid or incomplete."""


class ProcessKeepsDying(CaptureError):
    """A process of the recorder keeps dying."""

    def __init__(self, name: str, times: int, log: Path) -> None:
        last = log.read_text(errors="replace").strip().rpartition("\n")[2] if log.exists() else ""
        super().__init__(f"{name} died {times} times in a row ({last or 'its log is empty'}); see {log}")
