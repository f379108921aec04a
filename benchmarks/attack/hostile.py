"""Hostile devices and requests beside a recording: how each attack ended, how long it took, how much memory.

Attacked is our own program: a second `record`, our clients of cameras and headsets, the recording's control socket.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zmq
from rehearsal.breaking import children_of
from rehearsal.scenarios import STREAMS
from rehearsal.stage import record_command, recorder, status_in

from kitchensync.capture.monitor.monitor import process_use
from kitchensync.capture.served_kitchen import KitchenFailed, free_host, process, run, simulator
from kitchensync.capture.session.control import MAX_REQUEST_BYTES
from kitchensync.virtual_kitchen.faults import HOSTILE

SEEN = "hostile.json"
LIMIT_S, WORLD_S = 120.0, 12.0
MOST_BYTES = 2 << 30
"""Memory of a recorder and its processes; 0.9 GiB was the most seen."""
LASTING = ("garbage_payload", "time_jump", "duplicate_stamps", "burst")
OF_HEADSETS = (*HOSTILE, "garbage_size", "half_packet", *LASTING)
ROUNDS = -(-len(OF_HEADSETS) // len(STREAMS))

Seen = dict[str, dict[str, Any]]
"""Attack -> {"ended", "seconds", "most_s"} and, if measured, {"most_bytes", "limit_bytes"}; `ended` "" is wrong."""


def attack(what: str, folder: Path, seed: int, endpoint: Path) -> None:
    """Attack in one way and write what was seen. Raises KitchenFailed."""
    attacks: dict[str, Callable[[], Seen]] = {
        "headset": lambda: attack_recorder(folder / "beside", seed),
        "camera": lambda: attack_clients("gopro", folder),
        "remote": lambda: attack_clients("headset", folder),
        "control": lambda: attack_control(endpoint),
    }
    seen = attacks[what]()
    (folder / SEEN).write_text(json.dumps(seen, indent=1))


def wrong_in(folder: Path) -> Iterator[str]:
    """Yield what did not end, took too long or too much memory."""
    for name, facts in json.loads((folder / SEEN).read_text()).items():
        if not facts["ended"]:
            yield f"{name}: came to no right end"
        if facts["seconds"] > facts["most_s"]:
            yield f"{name}: took {facts['seconds']:.0f} s"
        if facts.get("most_bytes", 0) > facts.get("limit_bytes", MOST_BYTES):
            yield f"{name}: took {facts['most_bytes'] >> 20} MiB"


def attack_recorder(folder: Path, seed: int) -> Seen:
    """Record a headset with six hostile streams. Raises KitchenFailed."""
    folder.mkdir()
    first = seed % ROUNDS * len(STREAMS)
    kinds = [OF_HEADSETS[number % len(OF_HEADSETS)] for number in range(first, first + len(STREAMS))]
    faults = [
        f"--fault={kind}:{stream}@4" + ("+2" if kind in LASTING else "")
        for stream, kind in zip(STREAMS, kinds, strict=True)
    ]
    with simulator(folder, 1, WORLD_S, faults) as kitchen:
        command = record_command(kitchen, folder / "data", WORLD_S + 5, "--streams", ",".join(STREAMS))
        with recorder(command, folder, kitchen.environment) as attacked:
            return {"+".join(kinds): _watched(attacked.process)}


def _watched(attacked: subprocess.Popen[str]) -> dict[str, Any]:
    """Follow a recorder, which must end with a verdict."""
    start_s, most = time.monotonic(), 0
    while attacked.poll() is None and time.monotonic() < start_s + LIMIT_S:
        uses = map(process_use, (attacked.pid, *children_of(attacked.pid)))
        most = max(most, sum(use.memory_bytes for use in uses if use is not None))
        time.sleep(0.2)
    seconds = time.monotonic() - start_s
    ended = "" if attacked.poll() is None else status_in(attacked.communicate()[0])
    limits = {"most_s": LIMIT_S, "limit_bytes": MOST_BYTES}
    return {"ended": ended, "seconds": seconds, "most_bytes": most, **limits}


def attack_clients(device: str, folder: Path) -> Seen:
    """Ask every hostile `gopro`, or `headset`, in a process of its own. Raises KitchenFailed."""
    place = free_host()
    if device == "headset":
        place = place.rpartition(".")[0]  # the last number of the address is that of a headset
    serve = [sys.executable, "-P", "-m", f"kitchensync.virtual_kitchen.{device}.hostile", place]
    ask = [sys.executable, "-P", str(Path(__file__).with_name("device_client.py")), device]
    with process(serve, folder, device) as served:
        addresses = next(iter(served.stdout or ()))
        done = run(ask, folder, f"{device}_client", stdin=addresses, limit_s=LIMIT_S)
    if done.returncode:
        raise KitchenFailed(f"the client of {device} crashed: {done.stderr.strip()[-300:]}")
    seen: Seen = json.loads(done.stdout)
    return seen


FRAMES: dict[str, list[bytes]] = {
    "nothing": [b""],
    "many parts": [b"{}"] * 500,
    "a number beyond all": [b'{"command": "stop", "host_ns": Infinity, "nonce": "", "signature": ""}'],
    "no number": [b'{"command": "stop", "host_ns": NaN, "nonce": "", "signature": ""}'],
    "a long number": [b'{"command": "stop", "host_ns": ' + b"9" * 3000 + b"}"],
    "nested": [b"[" * 4000],
    "nested objects": [b'{"a":' * 700],
    "a list": [b"[1, 2]"],
    "no text": [b"\xff\xfe" * 1000],
    "other types": [b'{"command": [], "host_ns": {}, "nonce": null, "signature": 1}'],
    "no signature": [b'{"command": "stop", "host_ns": 1, "nonce": "1"}'],
    "a wrong signature": [b'{"command": "abort", "host_ns": 1, "nonce": "1", "signature": "' + b"0" * 64 + b'"}'],
    "a signature beyond ASCII": ['{"command": "stop", "host_ns": 1, "nonce": "1", "signature": "ä"}'.encode()],
    "half a letter": [b'{"command": "\\ud800", "host_ns": 1, "nonce": "\\udfff", "signature": "\\ud800"}'],
    "too much": [b"x" * (MAX_REQUEST_BYTES * 100)],
}  # fmt: skip


def attack_control(endpoint: Path) -> Seen:
    """Send hostile frames to a recorder's control socket, twenty of each: none may be obeyed."""
    seen = {}
    with zmq.Context() as context:
        for name, parts in FRAMES.items():
            start_s = time.monotonic()
            ends = [_ask(context, endpoint, parts) for _ in range(20)]
            ended = ends[-1] if all(ends) else ""
            seen[name] = {"ended": ended, "seconds": time.monotonic() - start_s, "most_s": LIMIT_S}
    return seen


def _ask(context: zmq.Context[Any], endpoint: Path, parts: list[bytes]) -> str:
    """Return `refused`, `silent`, or "" where the recorder obeyed."""
    with context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"ipc://{endpoint}")
        socket.send_multipart(parts)
        limit_ms = 200 if len(parts[0]) > MAX_REQUEST_BYTES else 5000
        if not socket.poll(limit_ms):
            return "silent"
        return "" if json.loads(socket.recv()).get("ok") else "refused"
