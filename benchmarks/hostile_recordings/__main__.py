"""Run every command, and the app, over recordings from a stranger that are well formed and mean harm.

    python -P benchmarks/hostile_recordings [--count 3000] [--seed 1] [--first 0] [--commands 2] [--app 200]
    python -P benchmarks/hostile_recordings --others [--count 500]

Each case is one recording with one lie (`mutations.py`) in a data folder, somebody's own files beside it; with
`--others` a data set, an archive, a backup or a dump of the app with one (`other_gifts.py`). Wrong is: a
file outside the recording that changed or was read out, a connection, a traceback, a command that takes over 30 s or
1 GB.
The cases of a seed are always the same ones; `--first 17 --count 1 --commands 0` runs every command over case 17.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import runpy
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
STATE = tempfile.TemporaryDirectory(prefix="hostile-state-")
os.environ["XDG_STATE_HOME"] = STATE.name
ROOT = Path(__file__).parents[2]
for _folder in (ROOT, *(ROOT / "tests" / "support").iterdir(), Path(__file__).parent):
    sys.path.insert(0, str(_folder))

import app_over  # noqa: E402 (the folders are known only now)
from click.testing import CliRunner  # noqa: E402
from command_tree import FILE, FOLDER, RECORDING, ROWS  # noqa: E402
from cooked_recording import write_cooked  # noqa: E402
from mutations import Place, make  # noqa: E402
from other_gifts import INTO_MEMORY, PROGRAMS, Gift, memory, others, served  # noqa: E402

from kitchensync.cli import main as kitchensync  # noqa: E402
from kitchensync.dataset.narration.narrations import keep_narrations  # noqa: E402
from kitchensync.dataset.source.own_recording import OwnRecording  # noqa: E402
from kitchensync.storage.manifest import edit_manifest  # noqa: E402
from kitchensync.storage.recording_files.annotation_folder import (  # noqa: E402
    ACCEPTED,
    ACCEPTED_SCHEMA,
    FILMS,
    FILMS_SCHEMA,
    PUSHED,
    PUSHED_SCHEMA,
    add_judged,
    add_version,
    write_annotations,
)

LIMIT_S, MOST_BYTES = 30, 1 << 30
ALWAYS = ("list", "verify", "info", "withdraw")
"""Each case meets one of these; the others take turns."""
LEFT_OUT = {"replay": "serves until it is stopped", "annotate push": "is told a server"}
COMMANDS = {name: row for name, row in ROWS.items() if {RECORDING, FOLDER} & {*row} and name not in LEFT_OUT}
COMMANDS |= {"recover": ["--data", FOLDER]}


def base_recording(root: Path) -> Path:
    """Write the recording that every case changes: synchronized, with steps, an error and a film."""
    write_cooked(root)
    recording = root / "take1"
    with edit_manifest(recording) as manifest:
        manifest |= {"recording": "gift", "uuid": "gift", "pseudonym": "P66"}
        manifest |= {"consent": "form", "consent_scopes": ["annotate", "release_raw"]}
    annotated(recording)
    return recording


def annotated(recording: Path) -> None:
    """Write what people marked, judged and narrated in a recording, each kind of file once."""
    with OwnRecording.open(recording) as own:
        fps, frames, film_s = own.frames.fps, len(own.frames), own.film_s
    film = {"fps": [fps.numerator, fps.denominator], "frames": frames, "sha256": None}
    marked = {
        "annotation": 7,
        "author": "Dill",
        "source": "app",
        "was_cancelled": False,
        "raw": {"result": []},
    }
    add_version(recording, marked | {"film": {"fps": str(fps), "frames": frames, "proxy_sha256": None}})
    steps = [{"node": 1, "start_frame": 1, "end_frame": 60}, {"node": 2, "start_frame": 61, "end_frame": 99}]
    accepted = {"version": 1, "annotation": 7, "author": "Dill", "accepted_utc_ns": 1, "earlier": []}
    accepted |= {"schema": ACCEPTED_SCHEMA, "fps": str(fps), "frames": frames, "steps": steps}
    write_annotations(recording, ACCEPTED, accepted)
    write_annotations(
        recording,
        FILMS,
        {
            "schema": FILMS_SCHEMA,
            "films": [
                {
                    "sha256": "0" * 64,
                    "address": "films/take1.mp4",
                    "fps": str(fps),
                    "frames": frames,
                    "height": 360,
                }
            ],
        },
    )
    write_annotations(recording, PUSHED, {"schema": PUSHED_SCHEMA, "places": []})
    add_judged(
        recording,
        "errors",
        {"errors": [{"error_id": "e1", "judged": {"verdict": "happened", "intent": "unsure"}}]},
    )
    judges = [{"question": True, "answers": [True]}] * 2
    names = {"question_id": "take1_1", "recording_id": "take1", "recording": "take1", "valid": True}
    asked = names | {"type": "next", "question": "?", "answers": ["a"], "verification": {"judges": judges}}
    add_judged(recording, "questions", {"questions": [asked]})
    spans = {"evidence": [[0.5, 1.0]], "spans": [[0.0, film_s]], "clip_start": 0.0, "iou": 1.0}
    seen = names | spans | {"passes": [{"evidence": [[0.5, 1.0]]}] * 2}
    add_judged(recording, "evidence", {"questions": [seen]})
    item = {"item": "take1_0", "text": "Tea", "from_s": 0.0, "end_s": 5.0, "hidden": {"success": "no"}}
    answers = [{"take1_0": {"success": "no", "confidence": "3"}}]
    add_judged(
        recording, "decisions", {"items": [item], "answers": answers, "figures": {"success": {"kappa": 0.5}}}
    )
    keep_narrations(
        recording, "Dill", film, [{"narration": "0" * 16, "frame": 5, "end_frame": 9, "text": "I stir"}]
    )


class Listener:
    """A server that counts who connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.connections = 0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            self.connections += 1
            connection.close()


def state_of(place: Place) -> dict[str, str]:
    """Return what must not change: somebody's own files, and the lab's recording but for its answers."""
    files = [*place.home.rglob("*"), *place.mine.rglob("*.h5"), place.mine / "recording.json"]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(files)
    }


def read_out(place: Place, printed: str) -> Iterator[str]:
    """Yield where the content of somebody's own files turned up."""
    if "CANARY" in printed:
        yield "printed"
    for folder in ("data", "store", "out"):
        for path in (place.root / folder).rglob("*"):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 26:
                continue
            if b"CANARY " in path.read_bytes():
                yield str(path.relative_to(place.root))


def words_of(name: str, place: Place, row: list[str], address: str = "") -> list[str]:
    """Return a command line; what it is given is the stranger's recording, or the folder around it."""
    given = {
        RECORDING: str(place.gift),
        FOLDER: str(place.gift.parent),
        FILE: str(place.gift / "gopro/GX010001.MP4"),
    }
    given |= {"STORE": str(place.store)}
    if address:
        given |= {"NUMBERING": str(place.root / "numbering.json")}
        first = min((one for one in place.gift.glob("*.*")), default=place.gift)
        graph = min((place.gift / "task_graphs").glob("*"), default=first)
        given |= {FOLDER: str(place.gift), FILE: str(graph), "SERVED": address}
        given |= {"SPLITS": str(place.gift / "data_splits")}
    words = [given.get(word, word.replace("WRITTEN", str(place.root / "out"))) for word in row]
    return [*name.split(), *words]


def run_apart(words: list[str]) -> tuple[str, str]:
    """Run a command in a process of its own; return what it printed, and what was wrong."""
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            _run_and_leave(words, output.fileno())
        deadline = time.monotonic() + LIMIT_S
        while True:
            ended, status, used = os.wait4(pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
                os.wait4(pid, 0)
                return "", f"over {LIMIT_S} s"
            time.sleep(0.005)
        output.seek(0)
        printed = output.read().decode(errors="replace")
    if used.ru_maxrss * 1024 > MOST_BYTES:
        return printed, f"{used.ru_maxrss >> 10} MiB"
    if os.WIFSIGNALED(status):
        return printed, f"ended by signal {os.WTERMSIG(status)}"
    return printed, printed.rsplit("TRACEBACK ", 1)[1].strip() if "TRACEBACK " in printed else ""


def _run_and_leave(words: list[str], output: int) -> None:
    """Run a command in this child; the traceback of a mistake is its last line."""
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        if words[0] in PROGRAMS:
            sys.argv = words
            runpy.run_path(PROGRAMS[words[0]], run_name="__main__")
            sys.exit()
        done = CliRunner().invoke(kitchensync, words)
        os.write(1, done.output.encode(errors="replace"))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            frames = [
                frame for frame in traceback.extract_tb(done.exc_info[2]) if "/tests/" not in frame.filename
            ]
            ours = next((one for one in reversed(frames) if "kitchensync" in one.filename), frames[-1])
            place = f"{Path(ours.filename).name}:{ours.lineno}"
            said = f"\nTRACEBACK {type(done.exception).__name__} at {place}: {done.exception!s:.100}"
            os.write(1, said.encode(errors="replace"))
    except SystemExit:
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001 (any is a mistake of a program)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        os.write(1, f"\nTRACEBACK {type(error).__name__} at {place}: {error!s:.100}".encode(errors="replace"))
    finally:
        os._exit(0)


def run_case(
    number: int, given: argparse.Namespace, base: Path, listener: Listener
) -> Iterator[tuple[str, str, str]]:
    """Play one case; yield (command, lie, what was wrong)."""
    others = [name for name in COMMANDS if name not in ALWAYS]
    turn = [others[(number * (given.commands - 1) + k) % len(others)] for k in range(given.commands - 1)]
    for name in [ALWAYS[number % len(ALWAYS)], *turn] if given.commands else COMMANDS:
        with tempfile.TemporaryDirectory(prefix="hostile-", dir=given.place) as folder:
            place = Place(Path(folder), base, listener.address)
            lie = make(place, given.seed, number)
            for wrong in wrongs_of(name, place, COMMANDS[name], listener):
                yield name, lie, wrong


def wrongs_of(
    name: str, place: Place, row: list[str], listener: Listener, address: str = ""
) -> Iterator[str]:
    """Run a command over what was given; yield what was wrong."""
    before, connected = state_of(place), listener.connections
    printed, wrong = run_apart(words_of(name, place, row, address))
    if wrong:
        yield wrong
    if state_of(place) != before:
        yield "changed a file outside"
    for where in read_out(place, printed):
        yield f"read out a file outside ({where})"
    if listener.connections != connected:
        yield "connected"


def run_other(
    number: int, kind: str, gift: Gift, given: argparse.Namespace, bases: dict[str, Path], listener: Listener
) -> Iterator[tuple[str, str, str]]:
    """Play one case of something else than a recording; yield (command, lie, what was wrong)."""
    names = list(gift.commands)
    turn = {names[(number // len(bases) * given.commands + k) % len(names)] for k in range(given.commands)}
    for name in sorted(turn) if given.commands else names:
        with tempfile.TemporaryDirectory(prefix="hostile-", dir=given.place) as folder:
            place = Place(Path(folder), bases["recording"], listener.address, bases[kind])
            if name in INTO_MEMORY:
                shutil.copytree(bases["memory"], place.root / "out" / "data")
            numbering = bases[kind].with_name(f"{bases[kind].name}.numbering.json")
            if numbering.is_file():
                shutil.copy(numbering, place.root / "numbering.json")
            lie = gift.lie(place, random.Random(f"{given.seed} {number} {kind}"))
            with served(place.gift) as address:
                for wrong in wrongs_of(name, place, gift.commands[name], listener, address):
                    yield name, f"{kind}: {lie}", wrong


def main_of_others(given: argparse.Namespace, listener: Listener) -> int:
    """Play the cases of the other gifts in turn; print what was wrong."""
    began, runs = time.monotonic(), 0
    wrongs: Counter[tuple[str, str]] = Counter()
    gifts = others(COMMANDS, base_recording)
    with tempfile.TemporaryDirectory(prefix="hostile-base-", dir=given.place) as folder:
        bases = {}
        makers = {"recording": base_recording, "memory": memory}
        for kind, made in {**makers, **{kind: one.made for kind, one in gifts.items()}}.items():
            (Path(folder) / f"of-{kind}").mkdir()
            bases[kind] = made(Path(folder) / f"of-{kind}")
        kinds = [*gifts, "release", "release", "backup"]
        for number in range(given.first, given.first + given.count):
            kind = kinds[number % len(kinds)]
            runs += min(given.commands or 1 << 10, len(gifts[kind].commands))
            for name, lie, wrong in run_other(number, kind, gifts[kind], given, bases, listener):
                wrongs[name, wrong] += 1
                if wrongs[name, wrong] <= 2:
                    print(f"case {number} ({lie}): {name}: {wrong}", flush=True)
    seconds = time.monotonic() - began
    print(f"{given.count} other gifts, {runs} commands, {seconds:.0f} s: {wrongs.total()} wrong")
    return 1 if wrongs else 0


def main() -> int:
    """Play the cases that were asked for; print what was wrong."""
    asked = argparse.ArgumentParser(prog="benchmarks/hostile_recordings", description=__doc__.splitlines()[0])
    asked.add_argument("--count", type=int, default=3000)
    asked.add_argument("--first", type=int, default=0)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--commands", type=int, default=2, help="how many over each case; 0: all")
    asked.add_argument(
        "--app", type=int, default=200, help="so many of the cases beside each other below one app"
    )
    asked.add_argument("--place", help="folder to work in")
    asked.add_argument("--others", action="store_true", help="data sets, archives, backups and dumps")
    given = asked.parse_args()
    if given.others:
        return main_of_others(given, Listener())
    listener, began, runs = Listener(), time.monotonic(), 0
    wrongs: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="hostile-base-", dir=given.place) as folder:
        base = base_recording(Path(folder))
        for number in range(given.first, given.first + given.count):
            runs += given.commands or len(COMMANDS)
            for name, lie, wrong in run_case(number, given, base, listener):
                wrongs[name, wrong] += 1
                if wrongs[name, wrong] <= 2:
                    print(f"case {number} ({lie}): {name}: {wrong}", flush=True)
        if given.app:
            numbers = range(given.first, given.first + given.app)
            for wrong in app_over.run(numbers, given, base, listener):
                wrongs["app", wrong] += 1
                print(f"app over {given.app} cases: {wrong}", flush=True)
    seconds = time.monotonic() - began
    below = f"{given.app} below the app" if given.app else "none below the app"
    print(f"{given.count} recordings, {runs} commands, {below}, {seconds:.0f} s: {wrongs.total()} wrong")
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
