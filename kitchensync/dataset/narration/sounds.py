"""Sound files of narrations in a recording's folder; each part from the browser is written to disk immediately."""

from __future__ import annotations

import os
from pathlib import Path

from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.disk.free_space import require_room
from kitchensync.storage.names import PART_SUFFIX
from kitchensync.storage.recording_files.annotation_folder import FOLDER, editing
from kitchensync.task_graphs.errors import NotFound

ENDINGS = {"audio/webm": ".webm", "audio/mp4": ".m4a", "audio/ogg": ".ogg"}
MOST_BYTES = 16 << 20


def narration_folder(recording: Path) -> Path:
    """Return the folder of a recording's narrations."""
    return recording / FOLDER / "narration"


def ending_of(media_type: str) -> str:
    """Return the suffix of a sound file. Raises BadOperation for a type that no browser records."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind not in ENDINGS:
        raise BadOperation("a narration is WebM, MP4 or Ogg sound")
    return ENDINGS[kind]


def sound_file(recording: Path, name: str, ending: str) -> Path:
    """Return the path of a narration's finished sound."""
    return narration_folder(recording) / f"{name}{ending}"


def sound_begun(recording: Path, name: str) -> Path:
    """Return the path of a narration's sound, finished or not. Raises NotFound if nothing has arrived."""
    files = [sound_file(recording, name, ending) for ending in ENDINGS.values()]
    for file in files:
        if file.exists() or file.with_name(file.name + PART_SUFFIX).exists():
            return file
    raise NotFound("nothing of the narration {name!r} has arrived", name=name)


def add_part(recording: Path, file: Path, at: int, content: bytes) -> int:
    """Append a part at byte `at` of the sound; return the size of the file. Sending a part twice changes nothing.

    Raises NotNow if an earlier part is missing, or the part differs from the stored bytes.
    """
    if at + len(content) > MOST_BYTES:
        raise BadOperation("a narration has at most 16 MB; stop, and begin another one")
    require_room(recording, len(content))
    with editing(recording):
        file.parent.mkdir(exist_ok=True)
        if file.exists():
            raise NotNow("this narration is finished; begin another one")
        with open(file.with_name(file.name + PART_SUFFIX), "a+b") as part:
            size = part.seek(0, os.SEEK_END)
            if at > size:
                raise NotNow("a part of this narration is missing; send it first")
            part.seek(at)
            stored = part.read()
            if content[: len(stored)] != stored[: len(content)]:
                raise NotNow("this part of the narration is another one than what came before")
            part.write(content[len(stored) :])
            part.flush()
            os.fsync(part.fileno())
        return max(size, at + len(content))


def finish(recording: Path, file: Path) -> tuple[str, int]:
    """Rename a finished sound to its final name; return hash and size. Raises NotFound if nothing has arrived."""
    part = file.with_name(file.name + PART_SUFFIX)
    with editing(recording):
        if not file.exists():
            if not part.exists() or not part.stat().st_size:
                raise NotFound("nothing of the narration {name!r} has arrived", name=file.stem)
            os.replace(part, file)
            LOCAL.sync_folder(file.parent)
    return file_sha256(file), file.stat().st_size


def destroy_sound(recording: Path, name: str) -> None:
    """Delete the sound of a narration, finished or not. Raises OSError."""
    with editing(recording):
        for ending in ENDINGS.values():
            file = sound_file(recording, name, ending)
            LOCAL.remove(file)
            LOCAL.remove(file.with_name(file.name + PART_SUFFIX))
