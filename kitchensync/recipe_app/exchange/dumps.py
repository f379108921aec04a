"""What a tablet still holds when it cannot reach the server, as a file, and taking it in as if it had been sent.

A file is `{"schema": "tablet-dump/1", "sha256": .., "content": ".."}`: the hash is over the content's bytes, which
are JSON again: `site`, `device`, `made_ms`, `waiting` (operations with their touches), `refused`, `sounds`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from sqlalchemy import insert, select

from kitchensync.operations.errors import BadOperation
from kitchensync.operations.operation_kinds import ClientClock, Operation
from kitchensync.operations.reduce import reduce_log, removed_sounds
from kitchensync.recipe_app.exchange.app_withdrawals import note_dump
from kitchensync.recipe_app.exchange.intake import Intake, Sender
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.shell.untrusted_json import parse_object
from kitchensync.task_graphs.errors import NotFound

SCHEMA = "tablet-dump/1"
MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Dump:
    """What a tablet held: its operations in order, those that were refused before among them, its voice notes."""

    site: str
    device: str
    sha256: str
    operations: tuple[Operation, ...]
    sounds: tuple[dict[str, Any], ...] = ()
    unknown: tuple[BadOperation, ...] = ()
    "What is wrong with each operation that this app does not know."


@dataclass
class DumpOutcome:
    """What became of a dump."""

    operations: int
    new: int = 0
    known: int = 0
    sounds: int = 0
    refused: list[str] = field(default_factory=list)


def read_dump(text: str, name: str) -> Dump:
    """Read a dump from a file's text. Raises BadOperation."""
    try:
        document = parse_object(text, most_bytes=2 * MOST_BYTES)
        content = document["content"]
        if document["schema"] != SCHEMA or not isinstance(content, str):
            raise BadOperation("{name}: is no dump of a tablet ({schema})", name=name, schema=SCHEMA)
        sha256 = hashlib.sha256(content.encode()).hexdigest()
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadOperation("{name}: is damaged or no dump of a tablet; save it again", name=name) from error
    if sha256 != document.get("sha256"):
        raise BadOperation("{name}: is not what the tablet saved; save it again", name=name)
    return _parsed(content, name)


def _parsed(content: str, name: str) -> Dump:
    operations: dict[str, Operation] = {}
    unknown = []
    try:
        body = parse_object(content, most_bytes=2 * MOST_BYTES)
        entries = [*body.get("refused", []), *body["waiting"]]  # what was refused once may have a place now
        for number, entry in enumerate(entries, 1):
            try:
                # Without the clock that the tablet knew its wall clock is used alone.
                wall_ms = entry["touch"]["wall_ms"]
                alone = {
                    "touch_ms": wall_ms,
                    "sent_ms": wall_ms,
                    "received_ms": wall_ms,
                    "host_ns": 0,
                    "basis": "wall",
                }
                clock = entry.get("clock") or {**alone, "clock_id": "none", "wall_ms": wall_ms}
                operation = Operation.model_validate(
                    {**entry["operation"], "clock": ClientClock.model_validate(clock)}
                )
                operations.setdefault(operation.op_id, operation)
            except ValidationError as error:  # of another version of the page, say; it holds up no other
                why = error.errors()[0]["msg"]
                refusal = BadOperation(
                    "{name}: operation {number} of {count} is not known here: {why}",
                    name=name,
                    number=number,
                    count=len(entries),
                    why=why,
                )
                unknown.append(refusal)
        sounds = tuple({key: _whole(one[key]) for key in _SOUND} for one in body.get("sounds", []))
        sha256 = hashlib.sha256(content.encode()).hexdigest()
        site, device = _whole(body["site"]), _whole(body["device"])
        return Dump(site, device, sha256, tuple(operations.values()), sounds, tuple(unknown))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadOperation("{name}: is damaged or no dump of a tablet; save it again", name=name) from error


def _whole(value: object) -> str:
    """Return a text without half letters, which no database can look for. Raises ValueError."""
    return str(value).encode().decode()


_SOUND = ("sha256", "recording", "media_type", "base64")


def site_of(records: AppRecords) -> str:
    """Name this installation: the hash of the first operation ever made here, the same after a restore."""
    with records.database.reading() as connection:
        first = connection.execute(select(tables.op.c.hash).where(tables.op.c.n == 1)).scalar()
    return str(first or oplog.FIRST)[:16]


def take_in(
    dump: Dump,
    records: AppRecords,
    intake: Intake,
    *,
    actor: str,
    corrects: bool,
    say: Callable[[Exception], str] = str,
) -> DumpOutcome:
    """Log what a dump holds in the name of who takes it in, marked imported; again, nothing happens a second time.

    `corrects` says whether that person may correct finished recordings; `say` puts into words what is refused. Raises
    BadOperation for a dump of another site or of a tablet that was never paired here.
    """
    if dump.site != site_of(records):
        raise BadOperation("this dump is of another site; take it in where its tablet was paired")
    device = records.row(tables.device, dump.device)
    if device is None:
        raise BadOperation("this dump is of a tablet that was never paired here")
    sender = Sender(device, actor, imported=True, corrects=corrects)
    outcome = DumpOutcome(
        len(dump.operations) + len(dump.unknown), refused=[say(one) for one in dump.unknown]
    )
    for start in range(0, len(dump.operations), 200):
        for receipt in intake.accept(list(dump.operations[start : start + 200]), sender=sender, say=say):
            if "error" in receipt:
                outcome.refused.append(receipt["error"])
            elif receipt["duplicate"]:
                outcome.known += 1
            else:
                outcome.new += 1
    for sound in dump.sounds:
        try:
            outcome.sounds += _keep_sound(records, intake, device, sound)
        except (BadOperation, NotFound) as error:  # one that cannot be taken in holds up no other
            outcome.refused.append(say(error))
    held = {one.recording for one in dump.operations} | {str(sound["recording"]) for sound in dump.sounds}
    note_dump(records, dump.device, sorted(held))
    if outcome.new or outcome.sounds:
        said = {"dump": dump.sha256, "new": outcome.new, "sounds": outcome.sounds}
        records.note("dump", dump.device, said, actor=actor)
    return outcome


def _keep_sound(records: AppRecords, intake: Intake, device: dict[str, Any], sound: dict[str, Any]) -> bool:
    intake.recording(sound["recording"], kitchen=device["kitchen"])
    try:
        content = base64.b64decode(sound["base64"], validate=True)
    except binascii.Error as error:
        raise BadOperation("a voice note of this dump is damaged; save it again") from error
    return keep_voice(records, sound["recording"], sound["sha256"], sound["media_type"], content)


def keep_voice(records: AppRecords, recording: str, sha256: str, media_type: str, content: bytes) -> bool:
    """Keep the sound of a voice note under the hash of its bytes; tell whether it is new. Raises BadOperation.

    One whose note was removed before the sound came is not kept.
    """
    if hashlib.sha256(content).hexdigest() != sha256:
        raise BadOperation("the sound does not have this hash; send it again")
    table = tables.voice
    with records.changing() as connection:
        if connection.execute(select(table.c.sha256).where(table.c.sha256 == sha256)).first() is not None:
            return False
        ops = oplog.ops_of(connection, recording)
        if sha256 in removed_sounds(ops, reduce_log(ops)):
            return False
        values = {"recording": recording, "media_type": media_type[:60], "content": content}
        connection.execute(insert(table).values(sha256=sha256, **values))
    return True
