"""Dumps: files with the unsent data of a tablet that cannot reach the server, and importing them.

A file is `{"schema": "tablet-dump/1", "sha256": .., "content": ".."}`. The hash is over the bytes of the content,
which is JSON again: `site`, `device`, `made_ms`, `waiting` (operations with their touches), `refused`, `sounds`.
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
MOST_BYTES = 64 << 20  # of the content; twice as many as JSON inside JSON are read


@dataclass(frozen=True)
class Dump:
    """A tablet's data: its operations in order, including refused ones, and its voice notes."""

    site: str
    device: str
    sha256: str
    operations: tuple[Operation, ...]
    sounds: tuple[dict[str, Any], ...] = ()
    unknown: tuple[BadOperation, ...] = ()
    "The problem of each operation that this app does not know."


@dataclass
class DumpOutcome:
    """The result of importing a dump."""

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
        entries = [*body.get("refused", []), *body["waiting"]]  # a refused operation may be accepted now
        for number, entry in enumerate(entries, 1):
            try:
                # Without an exchange with the capture clock, only the tablet's wall clock can be used.
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
            except (
                ValidationError
            ) as error:  # for example from another version of the page; import the others
                why = error.errors()[0]["msg"]
                refusal = BadOperation(
                    "{name}: operation {number} of {count} is not known here: {why}",
                    name=name,
                    number=number,
                    count=len(entries),
                    why=why,
                )
                unknown.append(refusal)
        sounds = tuple({key: _whole(sound[key]) for key in _SOUND} for sound in body.get("sounds", []))
        sha256 = hashlib.sha256(content.encode()).hexdigest()
        site, device = _whole(body["site"]), _whole(body["device"])
        return Dump(site, device, sha256, tuple(operations.values()), sounds, tuple(unknown))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadOperation("{name}: is damaged or no dump of a tablet; save it again", name=name) from error


def _whole(value: object) -> str:
    """Return a text without lone surrogates, which databases cannot search for. Raises ValueError."""
    return str(value).encode().decode()


_SOUND = ("sha256", "recording", "media_type", "base64")


def site_of(records: AppRecords) -> str:
    """Return the id of this installation: the hash of its first operation, which survives a restore."""
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
    """Import a dump in the name of the importing person, marked as imported. Idempotent.

    `corrects` is whether that person may correct finished recordings; `say` returns the text of a refusal. Raises
    BadOperation for a dump of another site or of a tablet that was never paired here.
    """
    if dump.site != site_of(records):
        raise BadOperation("this dump is of another site; take it in where its tablet was paired")
    device = records.row(tables.device, dump.device)
    if device is None:
        raise BadOperation("this dump is of a tablet that was never paired here")
    sender = Sender(device, actor, imported=True, corrects=corrects)
    outcome = DumpOutcome(
        len(dump.operations) + len(dump.unknown), refused=[say(refusal) for refusal in dump.unknown]
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
        except (BadOperation, NotFound) as error:  # import the others
            outcome.refused.append(say(error))
    recordings = {operation.recording for operation in dump.operations}
    recordings |= {str(sound["recording"]) for sound in dump.sounds}
    note_dump(records, dump.device, sorted(recordings))
    if outcome.new or outcome.sounds:
        body = {"dump": dump.sha256, "new": outcome.new, "sounds": outcome.sounds}
        records.note("dump", dump.device, body, actor=actor)
    return outcome


def _keep_sound(records: AppRecords, intake: Intake, device: dict[str, Any], sound: dict[str, Any]) -> bool:
    intake.recording(sound["recording"], kitchen=device["kitchen"])
    try:
        content = base64.b64decode(sound["base64"], validate=True)
    except binascii.Error as error:
        raise BadOperation("a voice note of this dump is damaged; save it again") from error
    return keep_voice(records, sound["recording"], sound["sha256"], sound["media_type"], content)


def keep_voice(records: AppRecords, recording: str, sha256: str, media_type: str, content: bytes) -> bool:
    """Save the sound of a voice note under its hash; return whether it is new. Raises BadOperation.

    A sound that arrives after its note was removed is not saved.
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
