"""Every error of the capture side, one base."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kitchensync.shell.files_on_disk import NO_INODES


def without_password(url: str) -> str:
    """Return an address as it may be shown and logged: without user, password and options."""
    return re.sub(r"://[^/]*@", "://", url.partition("?")[0]) if "://" in url else url


class CaptureError(Exception):
    """Base of all capture errors: one line that names the thing and what to do."""

    exit_code = 1


class QueueUnavailable(CaptureError):
    """The queue server cannot be started or reached."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"queue server {without_password(where)}: {why}")


class BadQueueAddress(CaptureError):
    """A queue server where packets must not go, or that nobody can reach."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"--redis {without_password(url)}: {why}")


class StreamsFailed(CaptureError):
    """Streams that ended by an error of ours: their producer is to be started again."""

    def __init__(self, streams: list[str]) -> None:
        super().__init__(f"{', '.join(streams)} failed; what went wrong is above, in this log")


class AlreadyRunning(CaptureError):
    """A recording of this id is being made right now."""

    def __init__(self, recording: str) -> None:
        super().__init__(
            f"recording {recording} is running already; stop it with `kitchensync stop {recording}`"
        )


class StillEnding(CaptureError):
    """Processes of a killed recorder are still there."""

    def __init__(self, recording: str, seconds: float) -> None:
        super().__init__(
            f"recording {recording}: processes of its killed recorder still run after {seconds:g} s;"
            " end them (see `ps`) and try again"
        )


class BadPlan(CaptureError):
    """The plan of a recording that was left open cannot be read."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path}: cannot be read ({why}); what is sealed of that recording is safe, its queue cannot be stored:"
            f" move {path.parent} elsewhere to go on"
        )


class PlanOfOthers(CaptureError):
    """A recording was left open by a recorder of another user or computer, or its plan only claims so."""

    def __init__(self, work: Path) -> None:
        super().__init__(
            f"{work}: was not left here by a recorder of this user on this computer; if it was yours elsewhere, run "
            f"`kitchensync recover --mine --data {work.parent.parent}`, else remove it"
        )


class NotRunning(CaptureError):
    """There is no such running recording to talk to."""

    def __init__(self, recording: str | None, running: list[str]) -> None:
        wanted = f"recording {recording} is not running" if recording else "which recording?"
        known = f"running: {', '.join(running)}" if running else "nothing is being recorded"
        super().__init__(f"{wanted}; {known}")


class DeviceTaken(CaptureError):
    """Another recording has a device of the rig."""

    def __init__(self, device: str, recording: str) -> None:
        super().__init__(
            f"{device} belongs to recording {recording or 'that begins now'}; stop that one, or let its films stay on"
            f" the card for now (`kitchensync stop {recording or 'ID'} --leave-films`)"
        )


class StreamsMissing(CaptureError):
    """Armed streams that delivered nothing in time."""

    def __init__(self, states: dict[str, str], seconds: float) -> None:
        named = "; ".join(f"{stream}: {state}" for stream, state in states.items())
        super().__init__(
            f"no packet within {seconds:g} s from {named}; check the device and its ports"
            " or leave the stream out with --streams"
        )


class QueueSilent(StreamsMissing):
    """Nothing came because the queue server took nothing: no device is to blame."""

    def __init__(self, seconds: float, refusal: str = "") -> None:
        does = f"has refused writes ({refusal})" if refusal else "has not answered"
        CaptureError.__init__(
            self,
            f"the queue server {does} for {seconds:.0f} s, so no packet could be taken;"
            " see what holds it up (a stopped process, a computer without memory) and record again",
        )


class DiskTooFull(CaptureError):
    """Not enough room to begin."""

    def __init__(self, path: Path, free_bytes: int, needed_bytes: int) -> None:
        super().__init__(
            f"{path}: {free_bytes / 1e6:.0f} MB free, a recording needs {needed_bytes / 1e6:.0f} MB to begin;"
            " free some space or give another --data"
        )


class NoInodesLeft(CaptureError):
    """Not one more file fits on the disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: {NO_INODES}; remove small files or give another --data")


class RecordingGone(CaptureError):
    """The folder of a recording is not where it was, nor anywhere near."""

    def __init__(self, path: Path, work: Path) -> None:
        super().__init__(
            f"{path} is gone (renamed, moved away or unmounted); what is not stored yet waits in {work}:"
            f" put the recording back below {work.parent.parent},"
            f" then `kitchensync recover --data {work.parent.parent}`"
        )


class StillWaiting(CaptureError):
    """Packets that could not be stored and are still in the queue."""

    def __init__(self, recording: str, waiting: Sequence[object], work: Path) -> None:
        super().__init__(
            f"{recording}: {', '.join(map(str, waiting))} could not be stored and wait in the queue ({work});"
            " see the recording's logs, mend what is wrong,"
            f" then `kitchensync recover --data {work.parent.parent}` stores them"
        )


class FolderNotWritable(CaptureError):
    """The data folder does not take files."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: cannot write there ({why}); give another --data")


class BadRig(CaptureError):
    """The rig file or a device option does not say what is needed."""


class ProcessKeepsDying(CaptureError):
    """A process of ours that does not stay up."""

    def __init__(self, name: str, times: int, log: Path) -> None:
        last = log.read_text(errors="replace").strip().rpartition("\n")[2] if log.exists() else ""
        super().__init__(f"{name} died {times} times in a row ({last or 'it said nothing'}); see {log}")
