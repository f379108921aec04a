"""The ledger's notes: the bytes on disk are what earlier versions wrote, and what nobody knows is kept and named."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from kitchensync.storage import ledger
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.ledger import (
    CalibrationMissingNote,
    CameraSettingsNote,
    ClosedNote,
    ConditionNote,
    ConnectedNote,
    DeclaredLossNote,
    EndNote,
    HeldNote,
    NewWorldFrameNote,
    Note,
    OrdersMissingNote,
    QueueLossNote,
    StampNote,
    UnknownNote,
    read_note,
    written,
)
from kitchensync.storage.ledger_reader import read_notes
from kitchensync.storage.manifest import write_json
from kitchensync.storage.verify import verify

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "kitchensync"
HEAD = '"stream": "hololens/pv", "host_ns": 77'
WRITTEN: list[tuple[Note, str]] = [
    (ConnectedNote(connection=2, next_seq=9), '{"note": "connected", HEAD, "connection": 2, "next_seq": 9}'),
    (
        ClosedNote(cause="network", next_seq=9, why="closed", at_boundary=False),
        '{"note": "closed", HEAD, "cause": "network", "next_seq": 9, "why": "closed", "at_boundary": false}',
    ),
    (
        ClosedNote(cause="corrupt_packet", next_seq=9, why="5 GB"),
        '{"note": "closed", HEAD, "cause": "corrupt_packet", "next_seq": 9, "why": "5 GB"}',
    ),
    (EndNote(received=9, reason="stopped"), '{"note": "end", HEAD, "received": 9, "reason": "stopped"}'),
    (
        EndNote(received=9, reason="lost", cause="network", closed_host_ns=5),
        '{"note": "end", HEAD, "received": 9, "reason": "lost", "cause": "network", "closed_host_ns": 5}',
    ),
    (DeclaredLossNote(first_seq=3, last_seq=4), '{"note": "declared_loss", HEAD, "first_seq": 3, "last_seq": 4}'),
    (QueueLossNote(first_seq=3, last_seq=4), '{"note": "queue_loss", HEAD, "first_seq": 3, "last_seq": 4}'),
    (
        HeldNote(cause="restart", start_host_ns=5, end_host_ns=9),
        '{"note": "held", HEAD, "cause": "restart", "start_host_ns": 5, "end_host_ns": 9}',
    ),
    (
        ConditionNote(condition="rate low", received=9, last_host_ns=70),
        '{"note": "condition", HEAD, "condition": "rate low", "received": 9, "last_host_ns": 70}',
    ),
    (
        StampNote(flag="back", seq=3, ticks=10, ticks_before=11),
        '{"note": "stamp", HEAD, "flag": "back", "seq": 3, "ticks": 10, "ticks_before": 11}',
    ),
    (
        NewWorldFrameNote(connection=2, next_seq=9, app_start=1, utc_offset_ticks=-5),
        '{"note": "new_world_frame", HEAD, "connection": 2, "next_seq": 9, "app_start": 1, '
        '"utc_offset_ticks": -5}',
    ),
    (
        CameraSettingsNote(asked={"pv_focus_mm": 900}, differ={"pv_focus_mm": [900, 880.5]}),
        '{"note": "camera_settings", HEAD, "asked": {"pv_focus_mm": 900}, '
        '"differ": {"pv_focus_mm": [900, 880.5]}}',
    ),
    (CalibrationMissingNote(why="Möhre"), '{"note": "calibration_missing", HEAD, "why": "M\\u00f6hre"}'),
    (OrdersMissingNote(why="refused"), '{"note": "orders_missing", HEAD, "why": "refused"}'),
]  # fmt: skip
"""Each kind, and the bytes that recorders wrote before notes had types."""

MEANS_ELSE = {
    "connected": {
        "capture/produce/stream_recorder.py",
        "capture/produce/stream_end.py",
    },  # a state shown to people
    "held": {"capture/process/heartbeat.py", "capture/drain/drainer.py", "capture/session/stream_lines.py"},
    "stamp": {"storage/timeline/stamps.py"},  # a key of an alignment file
    "end": {"storage/recording_files/annotation_forms.py"},  # a moment of an error
}
"""A word that is a kind -> where it stands for something else."""


@pytest.mark.parametrize(("note", "line"), WRITTEN, ids=lambda value: getattr(value, "kind", ""))
def test_a_note_is_written_as_ever_and_read_back(note, line):
    stored = written(note, "hololens/pv", 77)
    line = line.replace("HEAD", HEAD)
    assert stored.line() == line
    assert read_note(line.encode()) == stored


def test_every_kind_that_is_written_is_tried():
    assert {type(note) for note, _ in WRITTEN} == set(ledger.WRITTEN)
    assert len({one.kind for one in ledger.WRITTEN}) == len(ledger.WRITTEN) == 12


def test_the_first_packet_of_a_world_may_be_missing():
    world = read_note(b'{"note": "new_world_frame", "stream": "a/b", "connection": 2, "app_start": 1}')
    assert isinstance(world, NewWorldFrameNote)
    assert (world.next_seq, world.connection) == (None, 2)


@pytest.mark.parametrize(
    "said",
    [
        {"note": "too_hot", "stream": "hololens/pv", "host_ns": 5, "degrees": [71.5]},
        {"note": "declared_loss", "stream": "hololens/pv", "host_ns": 5, "packets": "3-9"},
        {"stream": "hololens/pv"},
    ],
)
def test_what_is_not_understood_is_kept_as_it_came(said):
    note = read_note(json.dumps(said).encode())
    assert isinstance(note, UnknownNote)
    assert (note.content, note.line(), note.stream) == (said, json.dumps(said), "hololens/pv")


def test_a_fact_that_a_newer_version_adds_does_not_hide_a_note():
    note = read_note(b'{"note": "queue_loss", "stream": "a/b", "first_seq": 3, "last_seq": 4, "server": "x"}')
    assert note == QueueLossNote(stream="a/b", first_seq=3, last_seq=4)


def test_verify_names_notes_of_a_newer_version(tmp_path):
    path, stream = tmp_path / "take", "hololens/gyroscope"
    (path / stream).mkdir(parents=True)
    (path / "ledger" / "hololens").mkdir(parents=True)
    seal(path / stream, 1, [Packet(n, 1, 480_000 * n, 48_000_000 * n, 1, b"x", b"") for n in range(40)], {})
    end = written(EndNote(received=40, reason="ended_by_device"), stream, 7).line()
    newer = json.dumps({"note": "too_hot", "stream": stream, "host_ns": 5})
    lines = [newer, newer, end]
    notes = [Packet(n, 1, 0, 0, 1, line.encode(), b"") for n, line in enumerate(lines)]
    seal(path / "ledger" / "hololens", 1, notes, {})
    manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "devices": {}, "files": {}}
    write_json(path / "recording.json", manifest | {"streams": {stream: {"nominal_hz": 20.8}}})
    assert [note.line() for note in read_notes(path)[stream]] == lines
    answer = verify(path)
    told = [reason for reason in answer["reasons"] if "ledger" in reason]
    assert told == [
        "2 notes of the ledger are not understood (too_hot): verify with the version that recorded them"
    ]
    assert answer["status"] == "WARN"


def _words(path: Path) -> set[str]:
    """Every string of a module but its docstrings and bare strings, and keys of dictionaries made in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in bare)
    return {node.value for node in constants if isinstance(node.value, str)}


@pytest.mark.slow
def test_no_kind_of_a_note_stands_elsewhere_in_capture_or_storage():
    kinds = {one.kind for one in ledger.WRITTEN} | {"suspend", "note"}
    found = {}
    for path in [*(PACKAGE / "capture").rglob("*.py"), *(PACKAGE / "storage").rglob("*.py")]:
        name = path.relative_to(PACKAGE).as_posix()
        allowed = {word for word, places in MEANS_ELSE.items() if name in places}
        if name != "storage/ledger.py" and (words := _words(path) & kinds - allowed):
            found[name] = words
    assert not found, "use kitchensync.storage.ledger, or say here what else the word means"


def test_the_page_of_the_format_names_every_kind_with_its_keys():
    page = (ROOT / "docs" / "reference" / "recording-format.md").read_text(encoding="utf-8")
    rows = dict(
        re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", page.partition("## The ledger")[2], re.MULTILINE)
    )
    assert rows.keys() == {one.kind for one in ledger.WRITTEN}
    common = {one.name for one in fields(Note)}
    for one in ledger.WRITTEN:
        told = set(re.findall(r"`(\w+)`", rows[one.kind])) - {"suspend"}
        assert told == {key.name for key in fields(one)} - common, one.kind
