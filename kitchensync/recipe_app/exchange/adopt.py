"""Make a recording from videos that were filmed elsewhere, so that errors can be logged and reviewed on it."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import av

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import MOST_PIXELS, open_container
from kitchensync.sensors.gopro.files.memory_card import copy_verified
from kitchensync.sensors.gopro.files.pace import pace_warning
from kitchensync.shell.host_clock import utc_anchor
from kitchensync.shell.process_apart import Bounds, ChildAnswer, ReaderFailed, ask_once
from kitchensync.storage.disk.media_blocks import block_checksums
from kitchensync.storage.errors import RecordingExists
from kitchensync.storage.installation.own_list import note_films
from kitchensync.storage.lab import give_to_group, share
from kitchensync.storage.manifest import SCHEMA, write_json
from kitchensync.storage.manifest_form import BlocksForm
from kitchensync.storage.names import MANIFEST, MEDIA, check_new_recording, check_recording_id
from kitchensync.task_graphs.errors import RecipeError

DEVICE = "video"
"""The folder of the videos, and the device's name."""
KIND = "video"
MP4 = "mp4"
"""One of libav's format names of MP4 and QuickTime files."""
REMUX = "ffmpeg -i IN -map 0:v -map 0:a? -c copy OUT.mp4"
LOOK = Bounds(60.0, 2 << 30)

Progress = Callable[[str, int, int], None]


class NotAdopted(RecipeError):
    """A file that cannot become part of a recording."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}; nothing was adopted")


class VideoFacts(TypedDict):
    """Facts of a video."""

    duration_s: float
    size: list[int]
    "Width, height."
    frames_per_s: float
    codec: str
    audio: bool
    pace: NotRequired[str]
    "Why its pace is doubtful."


class AdoptedFile(TypedDict):
    """A video of an adopted recording."""

    file: str
    bytes: int
    stored_bytes: int
    sha256: str
    original: str
    imported: bool
    video: VideoFacts
    blocks: BlocksForm


class AdoptedRecording(TypedDict):
    """A recording made of videos."""

    files: list[AdoptedFile]
    path: str


def adopt(
    data: Path, recording: str, files: Sequence[Path], *, consent: str, participant: str, tell: Progress
) -> AdoptedRecording:
    """Copy videos into a new recording, verified and hashed; return its media.

    The recording gets its name when it is complete. `tell` gets the file, bytes copied and bytes in total.
    Raises BadName, RecordingExists, NotAdopted, BadSetup.
    """
    folder = data / check_recording_id(recording)
    if folder.exists():
        raise RecordingExists(folder)
    check_new_recording(folder)
    checked = [(path, name, _facts(path)) for path, name in zip(files, safe_names(files), strict=True)]
    part = data / f".adopt-{recording}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)  # left by a killed call
        share(folder)
        part.mkdir(parents=True)
        give_to_group(part)
        (part / DEVICE).mkdir()
        entries = [_copied(path, part / DEVICE / name, facts, tell) for path, name, facts in checked]
        media = {"schema": "media/1", "device": DEVICE, "state": "done", "problem": "", "files": entries}
        write_json(part / DEVICE / MEDIA, media)
        write_json(part / MANIFEST, _manifest(recording, consent, participant))
        os.rename(part, folder)  # fails if another call made the folder meanwhile
        note_films(folder, DEVICE, entries)
    except OSError as error:
        raise BadSetup(f"{folder}: cannot be made ({error.strerror or error})") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {"files": entries, "path": str(folder)}


def safe_names(files: Sequence[Path]) -> list[str]:
    """Return unique file names without characters that are special in paths.

    All end in `.MP4`, by which every command recognizes a video: QuickTime (`.MOV`) is the same format.
    """
    names: list[str] = []
    for path in files:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", path.stem).strip("._-")[:80] or "video"
        name, number = f"{stem}.MP4", 1
        while name.lower() in {known.lower() for known in names}:
            number += 1
            name = f"{stem}-{number}.MP4"
        names.append(name)
    return names


def _facts(path: Path) -> VideoFacts:
    """Return the facts of a video. Raises NotAdopted if it is not usable; OSError."""
    try:
        facts = ask_once(f"{__name__}:tell_facts", LOOK, os.fspath(path.absolute())).value
    except ReaderFailed as error:
        raise NotAdopted(path.name, f"cannot be read as a video ({error})") from error
    if isinstance(facts, str):
        raise NotAdopted(path.name, facts)
    return cast(VideoFacts, facts)


def tell_facts(path: str) -> ChildAnswer:
    """Return the facts of a video, or a text with the reason why it is not usable."""
    try:
        with open_container(Path(path)) as container:
            video = next(iter(container.streams.video), None)
            if video is None:
                return ChildAnswer("holds no video")
            if MP4 not in container.format.name.split(","):
                kind = container.format.long_name
                return ChildAnswer(
                    f"is a {kind} file; copy its streams into an MP4 without encoding: {REMUX}"
                )
            if video.codec_context.width * video.codec_context.height > MOST_PIXELS:
                return ChildAnswer(f"its pictures have more than {MOST_PIXELS // 1_000_000} megapixels")
            duration_s = float(container.duration or 0) / av.time_base
            size = [video.codec_context.width, video.codec_context.height]
            rate = float(video.average_rate or 0)
            facts = {"duration_s": duration_s, "size": size, "frames_per_s": rate}
            facts |= {"codec": video.codec_context.name, "audio": bool(container.streams.audio)}
        words = pace_warning(Path(path))
        return ChildAnswer(facts | {"pace": words} if words else facts)
    except (av.error.FFmpegError, OSError) as error:
        return ChildAnswer(f"cannot be read as a video ({error.strerror or error})")


def _copied(path: Path, target: Path, facts: VideoFacts, tell: Progress) -> AdoptedFile:
    size = path.stat().st_size
    try:
        digest = copy_verified(path, target, lambda done: tell(path.name, done, size))
    except SensorError as error:
        raise NotAdopted(path.name, str(error)) from error
    return {
        "file": target.name,
        "bytes": size,
        "stored_bytes": size,
        "sha256": digest,
        "original": path.name,
        "imported": True,
        "video": facts,
        "blocks": block_checksums(target),
    }


def _manifest(recording: str, consent: str, participant: str) -> dict[str, Any]:
    anchor = utc_anchor()
    moment = {"host_ns": anchor.host_ns, "utc_ns": anchor.utc_ns}
    return {
        "schema": SCHEMA,
        "recording": recording,
        "uuid": str(uuid.uuid4()),
        "state": "complete",
        "adopted": moment,
        "retake_of": None,
        "started": moment,
        "stopped": {**moment, "reason": "adopted"},
        "consent": consent,
        "pseudonym": participant,
        "place": "",
        "recipe": None,
        "devices": {DEVICE: {"kind": KIND}},
        "profile": {},
        "streams": {},
        "software": {"kitchensync": version("kitchensync")},
        "files": {},
    }
