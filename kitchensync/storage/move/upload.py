"""Copy a recording to a cloud store by URL (fsspec), read every file back, go on after an interruption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kitchensync.storage.consent import Purpose, StillPermitted, note_override, require_consent
from kitchensync.storage.copies.cloud_store import CloudStore, check_address, refusals
from kitchensync.storage.copies.copy_list import FileToCopy, files_of, is_as_sent, is_closed
from kitchensync.storage.copies.copy_log import COPIED, CopyLog, CopyRecord
from kitchensync.storage.copies.read_through import missing_files, promised_files, readable_folder
from kitchensync.storage.copies.stored_copies import begin_copy
from kitchensync.storage.errors import FilesMissing, NotFinished
from kitchensync.storage.lab import NAME, lab_of
from kitchensync.storage.redact.to_destroy import check_no_pauses

Progress = Callable[[str, int, int], None]
"""File, bytes of the recording that are there and read back (a file on its way in part), bytes in all."""


OWN_STORE = f", or name the store under `stores` in {NAME} if it is your own"


@dataclass(frozen=True)
class Uploaded:
    """The object `upload/1`."""

    recording: str
    url: str
    files: int
    "Files of the recording: all are there."
    sent: int
    "Files sent now."
    sent_bytes: int
    is_own_store: bool


def upload(
    recording: Path, url: str, progress: Progress = lambda *_: None, *, without_consent: str = ""
) -> Uploaded:
    """Copy every file of a closed recording below `url`/<id>; the manifest comes last.

    A store that lab.toml names as the laboratory's own needs no consent, any other needs `release_raw`;
    `without_consent` is why it is sent without.

    A file that the copy log holds as copied there, and that the store still has in its size, is not sent again.
    Who may write there is for the store's own settings (environment, profile files): nothing of it is kept, and an
    address with a password in it is refused. Raises StorageError.
    """
    check_address(url)
    permitted = StillPermitted(recording)
    own = lab_of(recording).owns(url)
    purpose = Purpose.COPY_TO_OWN_STORE if own else Purpose.RELEASE_RAW
    manifest = require_consent(recording, purpose, without_consent=without_consent, or_else=OWN_STORE)
    if not is_closed(manifest):
        raise NotFinished(recording)
    if not own:
        check_no_pauses(recording)
    items = files_of(recording, manifest)
    folder = readable_folder(recording, manifest)
    if missing := missing_files(folder, promised_files(folder, manifest)):
        raise FilesMissing(recording, missing)
    store = CloudStore(url)
    total = sum(item.source.stat().st_size for item in items)
    note_override(recording, purpose, without_consent)
    safe = sent = sent_bytes = 0
    with CopyLog(recording) as log:
        permitted.check()
        begin_copy(store, recording, manifest, items, log)
        for item in items:
            size = item.source.stat().st_size
            place = f"{recording.name}/{item.relative}"

            def tell(here: int, safe: int = safe, name: str = item.relative) -> None:
                permitted.check()
                progress(name, safe + here, total)

            with refusals(url, item.relative):
                permitted.check()
                line = log.copies.get((item.relative, url))
                if not (is_as_sent(item, line, recording) and store.size_of(place) == size):
                    _send(store, place, item, log, url, tell)
                    sent, sent_bytes = sent + 1, sent_bytes + size
            safe += size
            progress(item.relative, safe, total)
    return Uploaded(recording.name, url, len(items), sent, sent_bytes, own)


def _send(
    store: CloudStore, place: str, item: FileToCopy, log: CopyLog, url: str, tell: Callable[[int], None]
) -> None:
    """Write a file to the store, proved, and note it."""
    item.check_size()
    facts = item.source.stat()
    sent = store.send(item.source, place, item.expected, tell)
    facts_of_it = (sent.bytes, sent.sha256, facts.st_mtime_ns)
    log.write(CopyRecord(COPIED, item.relative, *facts_of_it, url, url, sent.read))
