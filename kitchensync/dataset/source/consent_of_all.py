"""Check the consent of every recording of a data set again when the data set leaves."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kitchensync.dataset.source.numbering import Numbering
from kitchensync.dataset.source.source_data import SourceData
from kitchensync.storage.consent import Purpose, note_override, require_consent
from kitchensync.storage.errors import NotPermitted, StorageError
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.outputs import write_output
from kitchensync.task_graphs.errors import RecipeError

KEPT = "without-consent.json"


class NotAgreed(RecipeError):
    """Recordings of a data set may not leave."""


def check_release_consent(
    ids: Iterable[str], numbering: Numbering, data: Path
) -> tuple[dict[str, Path], list[str]]:
    """Return the recordings by uuid, and a line for each published id without consent.

    Raises Withdrawn, and NotAgreed for a recording that is not below `data`; --without-consent overrides neither.
    """
    paths = {}
    for path in recordings_in(data):
        with suppress(StorageError):  # NotAgreed below names it if the data set needs it
            paths[str(read_manifest(path).get("uuid"))] = path
    uuids = {published: uuid for uuid, published in numbering.recordings.items()}
    recordings, lacking = dict[str, Path](), list[str]()
    for published in ids:
        uuid = uuids.get(published, "")
        if uuid not in paths:
            raise NotAgreed(
                f"{published}: its recording is not below {data}, so its consent cannot be checked; give --data"
            )
        recordings[uuid] = paths[uuid]
        try:
            require_consent(paths[uuid], Purpose.RELEASE_RAW)
        except NotPermitted as error:
            lacking.append(f"{published}: {error}")
    return recordings, lacking


def allowed_for_processing(data_set: SourceData) -> tuple[frozenset[str], list[str]]:
    """Return the recordings whose texts may be sent to third parties, and a line for each other recording.

    A data set in the published form is already public. Raises Withdrawn.
    """
    ids = frozenset(recording.recording_id for recording in data_set.data.annotations.recordings)
    if data_set.folder is not None:
        return ids, []
    reason = data_set.without_consent
    lacking = {}
    for recording_id, ready in data_set.own.items():
        try:
            require_consent(ready.path, Purpose.THIRD_PARTY_PROCESSING, without_consent=reason)
            note_override(ready.path, Purpose.THIRD_PARTY_PROCESSING, reason)
        except NotPermitted as error:
            lacking[recording_id] = f"not sent: {error}"
    return ids - lacking.keys(), list(lacking.values())


def note_reason(journal: Path, reason: str, lacking: list[str]) -> None:
    """Record in the push journal why recordings left without consent."""
    path = journal / KEPT
    reasons = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    reasons.append({"utc_ns": time.time_ns(), "reason": reason, "recordings": lacking})
    write_output(path, (json.dumps(reasons, indent=1) + "\n").encode(), force=True)
