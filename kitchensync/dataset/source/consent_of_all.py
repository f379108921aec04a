"""Whether every recording of a data set may leave, asked again at the time it does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kitchensync.dataset.source.given_data import GivenData
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.storage.consent import Purpose, note_override, require_consent
from kitchensync.storage.errors import NotPermitted, StorageError
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.outputs import write_output
from kitchensync.task_graphs.errors import RecipeError

KEPT = "without-consent.json"


class NotAgreed(RecipeError):
    """Recordings of a data set that may not leave."""


def ask_for_all(ids: Iterable[str], numbering: Numbering, data: Path) -> tuple[dict[str, Path], list[str]]:
    """Return the recordings by uuid, and published ids and why they lack consent, a line each.

    No reason overrides what is raised: Withdrawn, and NotAgreed for a recording that is not below `data`.
    """
    paths = {}
    for path in recordings_in(data):
        with suppress(StorageError):  # who is looked for and not found is named
            paths[str(read_manifest(path).get("uuid"))] = path
    uuids = {published: uuid for uuid, published in numbering.recordings.items()}
    found, lacking = dict[str, Path](), list[str]()
    for one in ids:
        if uuids.get(one, "") not in paths:
            why = f"its recording is not below {data}, nobody can ask for consent; give --data"
            raise NotAgreed(f"{one}: {why}")
        path = found[uuids[one]] = paths[uuids[one]]
        try:
            require_consent(path, Purpose.RELEASE_RAW)
        except NotPermitted as error:
            lacking.append(f"{one}: {error}")
    return found, lacking


def may_be_processed(found: GivenData) -> tuple[frozenset[str], list[str]]:
    """Return the recordings of which texts may be sent to services of others, and a line for each other one.

    A data set in the published form is public already. Raises Withdrawn.
    """
    ids = frozenset(one.recording_id for one in found.data.annotations.recordings)
    if found.folder is not None:
        return ids, []
    lacking = {}
    for one, ready in found.own.items():
        try:
            require_consent(ready.path, Purpose.THIRD_PARTY_PROCESSING, without_consent=found.without_consent)
            note_override(ready.path, Purpose.THIRD_PARTY_PROCESSING, found.without_consent)
        except NotPermitted as error:
            lacking[one] = f"not sent: {error}"
    return ids - lacking.keys(), list(lacking.values())


def keep_reason(journal: Path, reason: str, lacking: list[str]) -> None:
    """Keep why recordings left without consent, beside what was sent."""
    path = journal / KEPT
    said = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    said.append({"utc_ns": time.time_ns(), "reason": reason, "recordings": lacking})
    write_output(path, (json.dumps(said, indent=1) + "\n").encode(), force=True)
