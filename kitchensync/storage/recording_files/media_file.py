"""`media.json` of a camera, read: what was filmed and fetched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from kitchensync.shell.files_on_disk import read_plain
from kitchensync.shell.untrusted_json import MOST_BYTES, BadJson, parse_object

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import MediaForm


def load_media(path: Path) -> MediaForm:
    """Read a file; whether its checksum fits is not asked. Raises BadJson, OSError."""
    return parse_media(read_plain(path, MOST_BYTES))


def parse_media(content: bytes) -> MediaForm:
    """Parse the content of such a file. Raises BadJson where it has not the form of one."""
    from kitchensync.storage.manifest_form import MediaForm, wrong_in  # loads pydantic

    media = parse_object(content)
    if why := wrong_in(MediaForm, media):
        raise BadJson(f"wrong at {why}")
    return cast(MediaForm, media)
