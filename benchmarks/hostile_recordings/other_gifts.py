"""What else strangers give: data sets, archives, backups and dumps; each with its commands and its lies."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import os
import random
import sqlite3
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import made_data_sets
import mutations
import numpy as np
from click.testing import CliRunner
from command_tree import FILE, FOLDER, RECORDING, ROWS
from cooked_recording import FROZEN, write_cooked
from made_videos import promise_samples
from mutations import Place

from kitchensync.cli import main as kitchensync
from kitchensync.dataset.data_set_cards import download_data_set, load_data_set, verify_data_set
from kitchensync.dataset.source.sums import hashes_of, sums_of

PROGRAMS = {
    f"{name}.py": str(module.__file__)
    for name, module in (
        ("download", download_data_set),
        ("load", load_data_set),
        ("verify", verify_data_set),
    )
}
HUGE = 3 << 30
"""Of files that are hashed whole: twenty times as much would take longer than a command may."""
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"


class Gift(NamedTuple):
    """A kind of thing from a stranger: how it is made, how it lies, and by which commands it is read."""

    made: Callable[[Path], Path]
    lie: Callable[[Place, random.Random], str]
    commands: dict[str, list[str]]


def asked(*words: object) -> None:
    """Run a command that must work."""
    done = CliRunner().invoke(kitchensync, [str(word) for word in words])
    if done.exit_code:
        raise RuntimeError(f"{words}: {done.output}")


# --- data sets


READ_SETS = (
    *("captaincook4d", "check", "split", "stats", "push"),
    *("localization", "seconds", "frames", "features", "steps", "windows", "promqa", "coherence", "prompts"),
    *("keysteps", "score", "orders", "import"),
)
SETS = {name: row for name, row in ROWS.items() if name.split()[-1] in READ_SETS} | {
    "release stats": [FOLDER, "--html", "WRITTEN/stats.html", "--csv", "WRITTEN/tables"],
    "export localization": [RECORDING, "--splits", "SPLITS", "--out", "WRITTEN/out"],
    "release push": [FOLDER, "--to", "STORE", "--numbering", "NUMBERING"],
    "export frames": [RECORDING, "--every", "7", "--out", "WRITTEN/out"],
    "download.py": ["SERVED", "WRITTEN/fetched"],
    "load.py": [FOLDER],
    "verify.py": [FOLDER, "--partial"],
}


def release(folder: Path) -> Path:
    """Make a release of our own, with films, tables and data of the headset."""
    write_cooked(folder / "data")
    words = ["--media", "360p,hololens", "--out", folder / "set"]
    asked("release", "captaincook4d", folder / "data", *words)
    return folder / "set"


def published(folder: Path) -> Path:
    """Make a data set as it is published, without films, and with links to elsewhere."""
    made_data_sets.write(folder / "published", made_data_sets.recordings(3, most=8))
    (folder / "published" / "task_graphs").mkdir()
    graph = {"steps": {"0": "START", "1": "Do", "2": "END"}, "edges": [[0, 1], [1, 2]]}
    (folder / "published" / "task_graphs" / "recipe1.json").write_text(json.dumps(graph))
    return folder / "published"


def files_of(folder: Path, *ends: str) -> list[Path]:
    """Return the files of a gift by their ends."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(ends))


def field_of_json(place: Place, rng: random.Random) -> str:
    """A field or key of any JSON file."""
    path = rng.choice(files_of(place.gift, ".json"))
    value, what = mutations._changed(json.loads(path.read_bytes()), rng, place)
    path.write_text(json.dumps(value))
    return f"{path.name} {what}"


def field_of_facts(place: Place, rng: random.Random) -> str:
    """A field of a line of `kitchensync.jsonl`."""
    path = place.gift / "kitchensync.jsonl"
    lines = (
        path.read_text().splitlines() if path.exists() else ['{"kind": "recording", "recording_id": "1_1"}']
    )
    at = rng.randrange(len(lines))
    value, what = mutations._changed(json.loads(lines[at]), rng, place)
    lines[at] = json.dumps(value)
    path.write_text("\n".join(lines) + "\n")
    return f"facts {what}"


def cell(place: Place, rng: random.Random) -> str:
    """A cell of a table."""
    path = rng.choice(files_of(place.gift, ".csv"))
    rows = [line.split(",") for line in path.read_text().splitlines()]
    row = rng.choice(rows)
    new = str(place.value(rng)).encode(errors="replace").decode()
    row[rng.randrange(len(row))] = new
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    return f"{path.name} {new!r:.60}"


def line_of_sums(place: Place, rng: random.Random) -> str:
    """A line of SHA256SUMS."""
    new = str(place.value(rng)).encode(errors="replace").decode()
    path = place.gift / "SHA256SUMS"
    lines = path.read_text().splitlines() if path.exists() else []
    lines.insert(rng.randrange(len(lines) + 1), rng.choice((f"{'0' * 64}  {new}", new)))
    path.write_text("\n".join(lines) + "\n")
    return f"sums {new!r:.60}"


def strange_file(place: Place, rng: random.Random) -> str:
    """A link, pipe, device, sparse file, folder, or damaged bytes where a file is expected."""
    path = rng.choice(files_of(place.gift, ""))
    kind = rng.choice((*mutations.STRANGE, "flipped", "cut", "many"))
    content = bytearray(path.read_bytes())
    if kind in ("flipped", "cut"):
        at = rng.randrange(len(content) or 1)
        content[at : at + 20] = rng.randbytes(20) if kind == "flipped" else b""
        path.write_bytes(content if kind == "flipped" else content[:at])
        return f"{path.name}: {kind} at {at}"
    path.unlink()
    if kind == "many":
        path.write_text(f"[{rng.choice(('{}', '[]', '0'))}{',{}' * 8_000_000}]")
    else:
        mutations.put_strange(path, kind, place, rng, content=bytes(content), size=HUGE)
    return f"{path.relative_to(place.gift)}: {kind}"


def arrays(place: Place, rng: random.Random) -> str:
    """An array of another shape or kind, of zeros by the hundred million, or packed in another way."""
    found = files_of(place.gift, ".npz")
    if not found:
        return strange_file(place, rng)
    path = rng.choice(found)
    with np.load(path, allow_pickle=False) as file:
        values = {name: file[name] for name in file.files}
    name = rng.choice(sorted(values))
    old = values[name]
    odd: list[Any] = [np.int64(1), np.zeros((2, 2), "i8"), np.array(["x"]), np.zeros(0), np.full(3, np.nan)]
    odd += [old[:1] if old.ndim else old, -old.astype("i8") if old.dtype.kind in "iub" else old]
    odd += [np.array([2**62, -(2**62)]), np.zeros(1, [("a", "f4")]), np.zeros(7, "c16"), np.array([30, 0])]
    odd += [np.zeros(1 << 28, "u1")]
    new = rng.choice(odd)
    values[name] = new
    packed = rng.random() < 0.7
    (np.savez_compressed if packed else np.savez)(path, **values)
    return f"{path.name} {name}: {new.dtype} {new.shape}"


def film(place: Place, rng: random.Random) -> str:
    """A film that promises millions of samples, or is a list of other files."""
    found = files_of(place.gift, ".mp4", ".MP4")
    if not found:
        return strange_file(place, rng)
    path = rng.choice(found)
    kind = rng.choice(("samples", "concat", "m3u8"))
    if kind == "samples":
        promise_samples(path, rng.choice((10**6, 2 * 10**7, 2**32 - 1)))
    elif kind == "concat":
        path.write_text(
            f"ffconcat version 1.0\nfile {place.home}/notes.txt\nfile http://{place.listener}/x\n"
        )
    else:
        path.write_text(f"#EXTM3U\n#EXTINF:1,\nhttp://{place.listener}/x.ts\n#EXT-X-ENDLIST\n")
    return f"{path.name}: {kind}"


SET_LIES = (
    *(field_of_json, field_of_json, field_of_facts, cell, line_of_sums),
    *(strange_file, strange_file, arrays, film),
)


def lie_of_a_set(place: Place, rng: random.Random) -> str:
    """One lie, for which the checksums are often made anew."""
    said = rng.choice(SET_LIES)(place, rng)
    small = [
        path for path in files_of(place.gift, "") if path.stat().st_size < 1 << 26 and not path.is_symlink()
    ]
    if rng.random() < 0.6 and not said.startswith("sums") and (place.gift / "SHA256SUMS").is_file():
        names = [path.relative_to(place.gift).as_posix() for path in small if path.name != "SHA256SUMS"]
        (place.gift / "SHA256SUMS").write_text(sums_of(hashes_of(place.gift, names)))
        return f"{said}, signed anew"
    return said


class SmallFiles(http.server.SimpleHTTPRequestHandler):
    """Serves what is a file and small."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_file() and path.stat().st_size < 1 << 26:
            with contextlib.suppress(OSError):
                super().do_GET()
        else:
            self.send_error(404)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a data set; yield its address."""

    def handler(*words: Any) -> SmallFiles:
        return SmallFiles(*words, directory=str(folder))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


# --- archives


def lie_of_an_archive(place: Place, rng: random.Random) -> str:
    """A lie about archived streams: a dataset, an attribute, bytes, no file, or what the manifest says of them."""
    found = [path for path in files_of(place.gift, ".h5") if path.stat().st_size > 0]
    kind = rng.choice(("dataset", "attribute", "bytes", "manifest", "manifest", "file"))
    if kind == "manifest":
        return mutations.manifest_field(place, rng)
    path = rng.choice(found)
    if kind == "file":
        path.unlink()
        rng.choice((os.mkfifo, lambda one: one.symlink_to(place.home / "notes.txt"), Path.mkdir))(path)
    elif kind == "bytes":
        content = bytearray(path.read_bytes())
        at = rng.randrange(len(content))
        content[at : at + 16] = rng.randbytes(16)
        path.write_bytes(content)
    else:
        _lie_in_hdf5(path, kind, place, rng)
    return f"{path.relative_to(place.gift)}: {kind}"


def _lie_in_hdf5(path: Path, kind: str, place: Place, rng: random.Random) -> None:
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = rng.choice(names)
        if kind == "attribute":
            of = file[rng.choice([name, "/"])]
            of.attrs[rng.choice(sorted(of.attrs) or ["x"])] = rng.choice(
                (2**62, float("nan"), "../../home", [1, 2])
            )
            return
        old = file[name]
        dtype = old.dtype if isinstance(old, h5py.Dataset) else np.dtype("u1")
        del file[name]
        where = str(place.home / "notes.txt")
        rng.choice((
            lambda: file.create_dataset(name, shape=(1 << 28,), dtype=dtype, chunks=(1 << 16,), compression="gzip"),
            lambda: file.create_dataset(name, shape=(64,), dtype="u1", external=[(where, 0, h5py.h5f.UNLIMITED)]),
            lambda: file.create_dataset(name, data=rng.choice((np.zeros(3), np.zeros((2, 2)), np.bytes_(b"x")))),
            lambda: file.__setitem__(name, h5py.SoftLink(f"/{name}")),
            lambda: None,
        ))()  # fmt: skip


# --- backups and dumps


SCHEMAS = (
    f"DROP TABLE op; CREATE VIEW op AS {ENDLESS}",
    f"CREATE TRIGGER t AFTER INSERT ON person BEGIN INSERT INTO op {ENDLESS}; END",
    "CREATE VIRTUAL TABLE words USING fts5(a)",
    "CREATE INDEX i ON person (hex(zeroblob(900000000)))",
    "DROP TABLE op; CREATE TABLE op (n, hash)",
    "DROP TABLE alembic_version",
    "UPDATE alembic_version SET version_num = '../../x'",
)


def backup(folder: Path) -> Path:
    """Back up a memory of the app that holds a little."""
    from kitchensync.recipe_app.people.accounts import Accounts
    from kitchensync.recipe_app.store.app_records import AppRecords
    from kitchensync.recipe_app.store.backup import back_up
    from kitchensync.recipe_app.store.database import open_database

    (folder / "given").mkdir()
    database = open_database(folder / "app.db", bytes(32))
    records = AppRecords(database, now_ns=lambda: 7, utc_ns=lambda: 5)
    records.note("kitchen", "k1", {"name": "Kitchen"}, actor="")
    Accounts(records).add_person("Basil", ["participant"], actor="")
    database.close()
    (folder / "recipes").mkdir()
    (folder / "recipes" / "tea.json").write_text(json.dumps(FROZEN))
    given = folder / "given" / "kitchen.backup"
    back_up(folder / "app.db", folder / "recipes", given, key=bytes(32), utc_ns=5, tell=lambda _: None)
    return folder / "given"


def lie_of_a_backup(place: Place, rng: random.Random) -> str:
    """A field of its manifest, a member, a row or the schema of its database; hashes are made anew."""
    path = place.gift / "kitchen.backup"
    kind = rng.choice(("file", "manifest", "row", "row", "schema", "schema", "member", "zeros"))
    if kind == "file":
        return strange_file(place, rng)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("backup.json"))
    what = ""
    if kind in ("row", "schema"):
        what = _lie_in_database(members, kind, place, rng)
    elif kind == "zeros":
        members[rng.choice(sorted(members))] = bytes(300 << 20)
    elif kind == "member":
        what = f"recipes/{place.paths(rng)}.json"
        members[what.replace("\0", "0")] = b"{}"
    facts = [{"bytes": len(one), "sha256": hashlib.sha256(one).hexdigest()} for one in members.values()]
    manifest["files"] = dict(zip(members, facts, strict=True))
    if kind == "manifest":
        manifest, what = mutations._changed(manifest, rng, place)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**members, "backup.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, content)
    return f"{kind} {what!r:.80}"


def _lie_in_database(members: dict[str, bytes], kind: str, place: Place, rng: random.Random) -> str:
    path = place.root / "lie.db"
    path.write_bytes(members["app.db"])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        what = rng.choice(SCHEMAS)
        if kind == "row":
            table = rng.choice(("op", "op", "person", "kitchen", "credential"))
            column = rng.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
            new = str(place.value(rng)).encode(errors="replace").decode()
            what = f"UPDATE {table} SET \"{column}\" = '{new.replace(chr(39), '')}'".replace("\0", "")
        with contextlib.suppress(sqlite3.Error):
            connection.executescript(what)
    members["app.db"] = path.read_bytes()
    path.unlink()
    return what


def dump(folder: Path) -> Path:
    """Make what a tablet saves that could not send."""
    (folder / "dumped").mkdir()
    sound = {"sha256": "0" * 64, "recording": "r", "media_type": "audio/webm", "base64": ""}
    operation = {
        "op_id": "o" * 16,
        "kind": "done",
        "recording": "r" * 16,
        "body": {"node": 1},
        "seq": 1,
        "seen": 0,
    }
    operation |= {"clock": {"touch_ms": 1, "sent_ms": 1, "received_ms": 2, "host_ns": 1}}
    content = {
        "site": "s",
        "device": "d",
        "made_ms": 1,
        "waiting": [operation],
        "sounds": [sound],
    }
    _write_dump(folder / "dumped" / "dump.json", json.dumps(content))
    return folder / "dumped"


def _write_dump(path: Path, content: str) -> None:
    sha256 = hashlib.sha256(content.encode(errors="replace")).hexdigest()
    path.write_text(json.dumps({"schema": "tablet-dump/1", "sha256": sha256, "content": content}))


def lie_of_a_dump(place: Place, rng: random.Random) -> str:
    """A field of its content, or a strange file."""
    path = place.gift / "dump.json"
    if rng.random() < 0.3:
        return strange_file(place, rng)
    value, what = mutations._changed(json.loads(json.loads(path.read_text())["content"]), rng, place)
    _write_dump(path, json.dumps(value))
    return what


def memory(folder: Path) -> Path:
    """Make the memory of an app that was started here, for commands that take things into it."""
    asked("restore", backup(folder) / "kitchen.backup", "--data", folder / "app", "--without-key")
    return folder / "app"


DATA = ["--data", "WRITTEN/data"]
INTO_MEMORY = ("annotations import", "take-dump")
FILES = {"restore": [FILE, "--without-key", *DATA], "take-dump": [FILE, *DATA]}


def others(recordings: dict[str, list[str]], of_recording: Callable[[Path], Path]) -> dict[str, Gift]:
    """Return every kind of gift but recordings, whose commands are given."""

    def archive(folder: Path) -> Path:
        recording = of_recording(folder)
        asked("archive", recording)
        return recording

    return {
        "release": Gift(release, lie_of_a_set, SETS),
        "published": Gift(
            published, lie_of_a_set, {name: row for name, row in SETS.items() if name not in PROGRAMS}
        ),
        "archive": Gift(archive, lie_of_an_archive, recordings),
        "backup": Gift(backup, lie_of_a_backup, {"restore": FILES["restore"]}),
        "dump": Gift(dump, lie_of_a_dump, {"take-dump": FILES["take-dump"]}),
    }
