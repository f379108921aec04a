"""The balance of one stream: received = stored + named losses, from its index and the ledger's notes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kitchensync.storage.ledger import (
    BY_DEVICE,
    LOST,
    ClosedNote,
    EndNote,
    HeldNote,
    LossNote,
    Note,
    QueueLossNote,
    of_kind,
)
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.reading.swaps import DEVICE_SWAP
from kitchensync.storage.reading.worlds import first_rows, frames_of
from kitchensync.storage.redact.redactions import CUT, PRIVACY, REDACTED, redacted_chunks
from kitchensync.storage.verify.coverage import is_irregular
from kitchensync.storage.verify.findings import FAIL, WARN, Findings
from kitchensync.storage.verify.gaps import (
    Gap,
    early_end,
    find_gaps,
    missing_ranges,
    redacted_ends,
    stamps_that_go_back,
    uncovered,
)
from kitchensync.storage.verify.sealed_files import Contents
from kitchensync.storage.verify.thresholds import ADAPTIVE_S

MOST_NUMBERS = 10
KILLED = "killed"
EARLY_ENDS = {"no_space": "no_space", "recovered": "restart", KILLED: "restart", LOST: "network"}
"""Reason of an early end of a recording or stream -> cause of its gap."""

AFTER_LAST_SIGN_NS = 1_000_000_000
"""Time after the last sign of a killed recorder: up to a quarter second, and the data in its sockets."""


def balance(
    name: str,
    contents: Contents,
    manifest: Manifest,
    notes: list[Note],
    findings: Findings,
    swaps: list[tuple[int, int]],
) -> dict[str, Any]:
    """Return the facts of a stream in `verify/1`, and add its findings; for `swaps` see `swaps_of`."""
    index, ends = contents.index, of_kind(notes, EndNote)
    seqs = np.unique(index["seq"])
    destroyed = redacted_chunks(manifest, name)
    redacted = [(chunk["seq"][0], chunk["seq"][1]) for chunk in destroyed]
    named = [(note.first_seq, note.last_seq) for note in of_kind(notes, LossNote)] + redacted
    declared = [loss for loss in manifest.get("declared_losses", []) if loss["stream"] == name]
    named += [(int(loss["first_seq"]), int(loss["last_seq"])) for loss in declared]
    waiting = manifest.get("waiting", {}).get(name)  # still in the queue: neither stored nor lost
    queued = [(int(waiting["first_seq"]), int(waiting["last_seq"]))] if waiting else []
    beyond = [note.received for note in ends] + [last + 1 for _, last in [*named, *queued]]
    received = max([int(seqs[-1]) + 1 if len(seqs) else 0, *beyond])
    missing = missing_ranges(seqs, received)
    gaps = _gaps(name, index, manifest, notes, swaps)
    for cause, wording in ((PRIVACY, "not stored"), (REDACTED, f"{REDACTED}, in whole chunks")):
        if count := sum(chunk["packets"] for chunk in destroyed if chunk.get("cause", REDACTED) == cause):
            findings.add(WARN, f"{name}: {count} packets of a privacy pause were {wording}")
    if not len(index) and not destroyed:
        findings.add(FAIL, f"{name} was armed and holds no packet")
    if duplicates := len(index) - len(seqs):
        findings.add(FAIL, f"{name} holds {duplicates} packets twice")
    if not ends and manifest["state"] == "complete":
        findings.add(WARN, f"{name}: its recorder died before it could close the ledger")
    if unnamed := [part for part in missing if uncovered(part, [*named, *queued])]:
        findings.add(FAIL, f"{name}: packets {unnamed} are missing and no cause is named")
    elif any(uncovered(part, redacted) for part in missing) and not queued:
        findings.add(WARN, f"{name}: packets {missing} are a named loss")
    return {
        "received": received,
        "stored": len(index),
        "duplicates": duplicates,
        "missing": missing,
        "gaps": gaps,
        "bytes": contents.bytes,
        "sha256": contents.sha256,
        "ended": ends[-1].reason if ends else "unknown",
        "new_world_frames": _name_oddities(name, contents, notes, gaps, findings),
        "undecodable": contents.undecodable,
    }


def _gaps(
    name: str, index: Any, manifest: Manifest, notes: list[Note], swaps: list[tuple[int, int]]
) -> list[Gap]:
    """Return the gaps of a stream, including its end after a fault, a full disk or a killed recorder."""
    description, destroyed = manifest["streams"][name], redacted_chunks(manifest, name)
    # earlier versions logged all holds as `suspend`
    holds = [(note.start_host_ns, note.end_host_ns, note.cause) for note in of_kind(notes, HeldNote)]
    # losses of the queue last, as the start of their ranges is imprecise
    losses = sorted(of_kind(notes, LossNote), key=lambda note: isinstance(note, QueueLossNote))
    gaps = find_gaps(
        index,
        [(note.next_seq, note.cause) for note in of_kind(notes, ClosedNote)],
        holds + [(*swap, DEVICE_SWAP) for swap in swaps],
        round(ADAPTIVE_S * 1e7) if is_irregular(name, description, index) else 0,
        [(chunk["seq"][0], chunk["seq"][1], chunk.get("cause", REDACTED)) for chunk in destroyed],
        [(note.first_seq, note.last_seq, note.kind) for note in losses],
    )
    gaps += redacted_ends(index, destroyed)
    stopped, ends = manifest.get("stopped") or {}, of_kind(notes, EndNote)
    last = ends[-1] if ends else EndNote(reason=KILLED if "host_ns" in stopped else "unknown")
    cause = last.cause or EARLY_ENDS.get(last.reason) or EARLY_ENDS.get(stopped.get("reason", ""))
    if cause is not None and len(index) and last.reason != BY_DEVICE:
        closed_ns = last.closed_host_ns or last.host_ns or int(stopped["host_ns"]) + AFTER_LAST_SIGN_NS
        gaps.append(early_end(index, closed_ns, float(description.get("nominal_hz") or 0), cause))
    return gaps


def _name_oddities(
    name: str, contents: Contents, notes: list[Note], gaps: list[Gap], findings: Findings
) -> list[int]:
    """Add findings about gaps, stamps and payloads; return the rows at which a new world frame begins."""
    for cause in dict.fromkeys(gap["cause"] for gap in gaps if gap["cause"] not in (REDACTED, PRIVACY, CUT)):
        count = sum(gap["cause"] == cause for gap in gaps)
        findings.add(WARN, f"{name}: {count} gap{'s' if count > 1 else ''} ({cause})")
    if back := stamps_that_go_back(contents.index):
        findings.add(WARN, f"{name}: {back} stamp{' does' if back == 1 else 's do'} not go forward")
    if odd := contents.undecodable:
        shown = ", ".join(map(str, odd[:MOST_NUMBERS])) + (" ..." if len(odd) > MOST_NUMBERS else "")
        packets = f"packet {shown}" if len(odd) == 1 else f"{len(odd)} packets ({shown})"
        findings.add(WARN, f"{name}: {packets} cannot be decoded ({contents.why}); kept as they came")
    worlds = first_rows(frames_of(contents.index, notes))
    for row in worlds:
        why = "the headset's app was started again"
        findings.add(WARN, f"{name}: a new world frame from packet {row} on ({why})")
    return worlds
