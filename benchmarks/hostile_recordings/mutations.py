"""One well-formed lie in a recording folder: a field, a name, a file, a line, a dataset; chosen by a seed."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kitchensync.storage.disk.self_check import checked_json

HUGE = 20 << 30
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**24,
    -(2**63),
    1e308,
    3.5,
    "",
    "x" * 5000,
    [],
    {},
    [[]],
    {"a": {}},
    "NaN",
    "\x1b]0;owned\x07\x1b[2J",
    "a\u202eb\x00\n",
    "\ud800",
    "<script>alert(1)</script>",
)
TEXTS = (
    "recording.json",
    "gopro/media.json",
    "copies.jsonl",
    "derived.jsonl",
    "events/tablet.jsonl",
    "events/operator.jsonl",
    "sync/state.json",
    "sync/events.json",
    "sync/index.parquet",
    "sync/poses.parquet",
    "sync/verify.json",
    "sync/report.html",
    "sync/alignment/GX010001.MP4.json",
    "sync/alignment/GX010001.MP4.plot.npz",
    "annotations/steps-1.json",
    "annotations/accepted.json",
    "annotations/errors-1.json",
    "annotations/narration/narrations-1.json",
    "hololens/calibration/pv.h5",
    "hololens/pv/000002.h5",
    "clock/hololens/000001.h5",
    "ledger/hololens/000001.h5",
    "logs/recording.jsonl",
    "gopro/GX010001.MP4",
    "notes.txt",
    "lab.toml",
    "sync/card.json",
)
FOLDERS = (
    "sync",
    "sync/alignment",
    "sync/review",
    "gopro",
    "gopro/proxies",
    "hololens",
    "hololens/pv",
    "events",
    "annotations",
)
Case = Callable[["Place", random.Random], str]


class Place:
    """A data folder with a recording from a stranger, one of the lab, a store, and somebody's own files beside it."""

    def __init__(self, root: Path, base: Path, listener: str, given: Path | None = None) -> None:
        """Lay it out; `base` is a finished recording, `listener` the address of a server that counts connections.

        `given` is what the stranger gives, by itself that recording.
        """
        self.root, self.gift = root, root / "data" / "gift"
        self.home, self.mine, self.store = root / "home", root / "data" / "mine", root / "store"
        self.listener = listener
        shutil.copytree(given or base, self.gift)
        for folder in (
            self.home / "gift" / "sub",
            self.home / "thesis",
            self.store,
            root / "card",
            root / "out",
        ):
            folder.mkdir(parents=True)
        shutil.copytree(base / "hololens" / "gyroscope", self.mine / "hololens" / "gyroscope")
        self.mine_manifest = json.loads((base / "recording.json").read_bytes()) | {
            "recording": "mine",
            "uuid": "mine",
        }
        (self.mine / "recording.json").write_bytes(checked_json(self.mine_manifest, indent=1))
        for folder in (self.home, self.home / "gift", self.home / "gift" / "sub", self.home / "thesis"):
            for name in ("notes.txt", "report.html", "verify.json", "recording.json", "GX010001.MP4"):
                (folder / name).write_text(f"CANARY {folder.name} {name}\n" * 20)

    def paths(self, rng: random.Random) -> str:
        """Return a text that leads somewhere else."""
        home = str(self.home)
        choices = (
            *(
                home,
                f"{home}/gift",
                f"{home}/thesis/notes.txt",
                str(self.mine),
                f"{home}\x00",
                f"{self.gift}/../../home",
            ),
            *(
                "../../home",
                "../../home/gift",
                "../mine",
                "..",
                ".",
                "/",
                "../../../../../../etc/passwd",
                "mine",
                "~/x",
            ),
            *(
                f"http://{self.listener}/x",
                f"http://{self.listener}",
                self.listener,
                "s3://bucket/x",
                "memory://x",
            ),
            *(f"file://{home}", f"file://{home}/gift", "/dev/zero", "..\\..\\home", "C:\\home", "a/../../b"),
            *("ble:x", "usb:x"),
        )
        return rng.choice(choices)

    def value(self, rng: random.Random) -> Any:
        """Return a text that leads somewhere else, or a value of an odd kind."""
        return self.paths(rng) if rng.random() < 0.5 else rng.choice(ODD)


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    items = (
        value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    )
    for key, one in items:
        yield from _places(one, (*at, key))


def _changed(value: Any, rng: random.Random, place: Place) -> tuple[Any, str]:
    """Return a JSON value with one field or key replaced, and which."""
    at = rng.choice(list(_places(value)))
    value, inner = copy.deepcopy(value), value
    inner = value
    for key in at[:-1]:
        inner = inner[key]
    new = place.value(rng)
    if isinstance(at[-1], str) and rng.random() < 0.25:
        inner[str(new)] = inner.pop(at[-1])
        return value, f"key {at} = {new!r:.60}"
    inner[at[-1]] = new
    return value, f"{at} = {new!r:.60}"


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        text = checked_json(value, indent=1) if isinstance(value, dict) else json.dumps(value).encode()
    except UnicodeEncodeError:
        text = json.dumps(value).encode()
    path.unlink(missing_ok=True)
    path.write_bytes(text)


def manifest_field(place: Place, rng: random.Random) -> str:
    """A field or key of `recording.json`."""
    value, what = _changed(json.loads((place.gift / "recording.json").read_bytes()), rng, place)
    _write(place.gift / "recording.json", value)
    return what


def media_field(place: Place, rng: random.Random) -> str:
    """A field or key of `media.json`, with a camera's address."""
    media = json.loads((place.gift / "gopro" / "media.json").read_bytes())
    media |= {"address": f"http://{place.listener}", "serial": "C1", "state": rng.choice(("pending", "done"))}
    value, what = _changed(media, rng, place)
    _write(place.gift / "gopro" / "media.json", value)
    return what


def redaction(place: Place, rng: random.Random) -> str:
    """A redaction that was begun, of streams and films by any name."""
    chunk = {"chunk": 1, "packets": 1, "bytes": 1, "seq": [0, 1], "ticks": [0, 1], "sha256": "0" * 64}
    stream, film = (
        rng.choice(("hololens/pv", place.paths(rng))),
        rng.choice(("gopro/GX010001.MP4", place.paths(rng))),
    )
    entry = {"id": "x", "state": "begun", "reason": "r", "by": "", "utc_ns": 1, "host_ns": [], "open": []}
    entry |= {
        "streams": {stream: [chunk]},
        "films": {film: {"sha256": "0" * 64, "samples": {"vide": [[0, 9]]}}},
    }
    manifest = json.loads((place.gift / "recording.json").read_bytes()) | {"redactions": [entry]}
    if rng.random() < 0.5:
        manifest, _ = _changed(manifest, rng, place)
    _write(place.gift / "recording.json", manifest)
    return f"redaction of {stream!r:.40} {film!r:.40}"


def tombstone(place: Place, rng: random.Random) -> str:
    """A withdrawal that was not made here, with places that are open, of this or of another recording."""
    where = place.paths(rng)
    about: dict[str, Any] = {
        "utc_ns": 1,
        "policy": rng.choice(("destroy", "quarantine", "none", None)),
        "files": [],
    }
    about |= {"open": [{"where": where, "target": rng.choice((None, "x", where))}]}
    about |= {"derived": [{"path": place.paths(rng), "command": "x", "begun": [[1, "h", 1]]}]}
    about |= {
        "cards": [
            {"address": f"http://{place.listener}", "serial": "C1", "files": [{"file": "GX010001.MP4"}]}
        ]
    }
    uuid = rng.choice(("gift", place.mine_manifest["uuid"]))
    value = {"schema": "recording/1", "recording": "gift", "uuid": uuid, "withdrawn": about}
    if rng.random() < 0.3:
        value, _ = _changed(value, rng, place)
    if rng.random() < 0.7:
        shutil.rmtree(place.gift)
    _write(place.gift / "recording.json", value)
    return f"withdrawn, open {where!r:.60}"


def copy_line(place: Place, rng: random.Random) -> str:
    """A line of `copies.jsonl` or `derived.jsonl` that names a place."""
    where = place.paths(rng)
    line = {
        "kind": rng.choice(("begun", "copied", "freed")),
        "file": rng.choice(("notes.txt", "gopro/GX010001.MP4", "../x")),
    }
    line |= {
        "bytes": 1,
        "sha256": "0" * 64,
        "mtime_ns": 0,
        "target": rng.choice((None, "x", where)),
        "where": where,
    }
    line |= {"read": "", "utc_ns": 1, "schema": "copy/1"}
    noted = {
        "path": where,
        "command": "x",
        "begun": [[1, "h", 1]],
        "files": {"notes.txt": [1, 1]},
        "utc_ns": 1,
    }
    name, value = rng.choice((("copies.jsonl", line), ("derived.jsonl", noted)))
    if rng.random() < 0.4:
        value, _ = _changed(value, rng, place)
    try:
        text = checked_json(value)
    except UnicodeEncodeError:
        text = json.dumps(value).encode() + b"\n"
    if not os.path.lexists(place.gift / name) or _is_plain(place.gift / name):
        with (place.gift / name).open("ab") as file:
            file.write(text)
    return f"{name}: {where!r:.60}"


def event_line(place: Place, rng: random.Random) -> str:
    """A line of `events/tablet.jsonl`."""
    path = place.gift / "events" / "tablet.jsonl"
    lines = path.read_bytes().splitlines()
    at = rng.randrange(len(lines))
    value, what = _changed(json.loads(lines[at]), rng, place)
    lines[at] = json.dumps(value).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    return f"event {what}"


def sync_field(place: Place, rng: random.Random) -> str:
    """A field of what `sync` wrote."""
    path = rng.choice(sorted(place.gift.glob("sync/**/*.json")))
    value, what = _changed(json.loads(path.read_bytes()), rng, place)
    _write(path, value)
    return f"{path.name} {what}"


def annotation_field(place: Place, rng: random.Random) -> str:
    """A field of what people marked, judged or narrated."""
    path = rng.choice(sorted(place.gift.glob("annotations/**/*.json")))
    value, what = _changed(json.loads(path.read_bytes()), rng, place)
    _write(path, value)
    return f"{path.name} {what}"


def not_a_file(place: Place, rng: random.Random) -> str:
    """A link, pipe, device, sparse file or folder where a file is expected, or a linked folder."""
    if rng.random() < 0.3:
        path = place.gift / rng.choice(FOLDERS)
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        target = rng.choice((place.home, place.home / "gift", place.mine, Path("/dev")))
        path.symlink_to(target)
        return f"{path.name} -> {target.name}"
    path = place.gift / rng.choice(TEXTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    kind = rng.choice(STRANGE)
    put_strange(path, kind, place, rng)
    return f"{path.relative_to(place.gift)}: {kind}"


STRANGE = ("link", "pipe", "zero", "sparse", "folder", "loop")
"""What may be in the place of a file."""


def put_strange(
    path: Path, kind: str, place: Place, rng: random.Random, *, content: bytes = b"", size: int = HUGE
) -> None:
    """Put one of STRANGE where no file is; a sparse file begins with `content` and has `size` bytes."""
    if kind == "link":
        path.symlink_to(rng.choice(sorted((place.home / "gift").glob("*.*"))))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "sparse":
        path.write_bytes(content)
        os.truncate(path, size)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path.name)


def dataset(place: Place, rng: random.Random) -> str:
    """A dataset that is huge, elsewhere, linked or of another kind."""
    path = rng.choice(sorted(place.gift.glob("*/*/*.h5")))
    kind = rng.choice(("huge", "external link", "external", "soft", "virtual", "kind", "attribute"))
    with h5py.File(path, "r+") as file:
        name = rng.choice(sorted(file))
        old = file[name][()]
        shape, dtype = np.shape(old), getattr(old, "dtype", np.dtype("u1"))
        if kind == "attribute":
            attribute = rng.choice(sorted(file.attrs) or ["x"])
            file.attrs[attribute] = rng.choice(
                (np.int64(2**62), np.float64("nan"), "../../home", np.zeros(3))
            )
            return f"{path.name} attribute {attribute}"
        del file[name]
        if kind == "huge":
            file.create_dataset(name, shape=(40_000_000,), dtype=dtype, chunks=(1 << 16,), compression="gzip")
        elif kind == "external link":
            file[name] = h5py.ExternalLink(str(place.mine / "hololens/gyroscope/000001.h5"), f"/{name}")
        elif kind == "external":
            where = [(str(place.home / "notes.txt"), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset(name, shape=shape, dtype=dtype, external=where)
        elif kind == "soft":
            file[name] = h5py.SoftLink(f"/{name}")
        elif kind == "virtual":
            layout = h5py.VirtualLayout(shape=shape, dtype=dtype)
            layout[:] = h5py.VirtualSource(
                str(place.mine / "hololens/gyroscope/000001.h5"), name, shape=shape
            )
            file.create_virtual_dataset(name, layout)
        else:
            file[name] = rng.choice((np.zeros(3, "f4"), np.bytes_(b"x"), np.zeros((2, 2), "u1")))
    return f"{path.parent.name}/{path.name} {name}: {kind}"


def beside(place: Place, rng: random.Random) -> str:
    """What a folder of recordings may bring along: links for our own folders, a lab file, a list of its own."""
    data = place.root / "data"
    kind = rng.choice(("work", "app", "withdrawn", "lab", "list"))
    if kind == "work":
        (data / ".kitchensync").symlink_to(place.home)
    elif kind == "app":
        (data / "_app").symlink_to(place.home)
    elif kind == "withdrawn":
        (data / ".withdrawn-gift").symlink_to(place.home / "gift")
    elif kind == "lab":
        (data / "lab.toml").write_text(f'stores = ["{place.home}", "/"]\npause = "drop"\ngrace_hours = 0\n')
    else:
        (data / "_app").mkdir()
        (data / "_app" / "app.key").write_bytes(bytes(32))
        (data / "_app" / "own.jsonl").write_text(
            f'{{"kind": "store", "where": "{place.home}", "mac": "{"0" * 64}"}}\n'
        )
    return f"beside it: {kind}"


CASES: tuple[Case, ...] = (
    manifest_field,
    manifest_field,
    manifest_field,
    media_field,
    redaction,
    tombstone,
    copy_line,
    event_line,
    sync_field,
    annotation_field,
    not_a_file,
    not_a_file,
    dataset,
    beside,
)


def make(place: Place, seed: int, number: int) -> str:
    """Put one lie, now and then two, into the stranger's recording; return which."""
    rng = random.Random(f"{seed} {number}")
    first = CASES[number % len(CASES)](place, rng)
    if (
        rng.random() < 0.15
        and (place.gift / "events").is_dir()
        and _is_plain(place.gift / "gopro" / "media.json")
    ):
        return f"{first}; {rng.choice((media_field, copy_line))(place, rng)}"
    return first


def _is_plain(path: Path) -> bool:
    """Return whether no other lie has taken the place of a file: a link, a pipe, a sparse or huge file."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 20
