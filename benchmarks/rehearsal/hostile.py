"""Malicious devices and requests beside a recording: how each ended, how long it took, how much memory.

What is attacked is our own program: a second `record` with a hostile headset, our clients with hostile cameras and
with headsets' answers on 3809, the control socket of the recording itself. `hostile.json` in the scenario's folder
keeps what was seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zmq

from kitchensync.capture.monitor.process_use import process_use
from kitchensync.capture.served_kitchen import KITCHENSYNC, KitchenFailed, free_host, process, run, simulator
from kitchensync.capture.session.control import MOST_BYTES as MOST_CONTROL_BYTES
from rehearsal.breaking import children_of
from rehearsal.scenarios import STREAMS
from rehearsal.stage import status_in

SEEN = "hostile.json"
LIMIT_S = 120.0
MOST_BYTES = 2 << 30
"""Of a recorder and all that it started: supervisor, producers, drainers, queue server; 0.9 GiB was the most seen."""
WORLD_S = 12.0
OF_HEADSETS = (
    "hostile_half_header", "hostile_drip", "hostile_empty", "hostile_flood", "hostile_backwards",
    "hostile_far_stamps", "hostile_wrong_kind", "hostile_lengths", "hostile_web", "hostile_noise",
    "hostile_reset", "hostile_storm", "garbage_size", "half_packet", "garbage_payload", "time_jump",
    "duplicate_stamps", "burst",
)  # fmt: skip
_LASTING = ("garbage_payload", "time_jump", "duplicate_stamps", "burst")
FOLDERS = {"camera": "gopro", "headset": "headset"}
ROUNDS = -(-len(OF_HEADSETS) // len(STREAMS))

Seen = dict[str, dict[str, Any]]
"""Kind -> {"ended", "seconds", "most_bytes", "most_s"}; `ended` is empty where something is wrong."""


def attack_headset(folder: Path, seed: int) -> Seen:
    """Record a headset that means harm on six streams at once, in `folder/beside`. Raises KitchenFailed."""
    beside, first = folder / "beside", seed % ROUNDS * len(STREAMS)
    beside.mkdir()
    kinds = [OF_HEADSETS[(first + number) % len(OF_HEADSETS)] for number in range(len(STREAMS))]
    faults = [
        f"--fault={kind}:{stream}@4" + ("+2" if kind in _LASTING else "")
        for stream, kind in zip(STREAMS, kinds, strict=True)
    ]
    with simulator(beside, 1, WORLD_S, faults) as kitchen:
        record = [KITCHENSYNC, "record", "beside", "--data", str(beside / "data"), "--json"]
        record += ["--hololens", kitchen.host, "--streams", ",".join(STREAMS)]
        record += ["--seconds", f"{WORLD_S + 5:g}"]
        with process(record, beside, "record", kitchen.environment) as recorder:
            return {"+".join(kinds): _watched(recorder)}


def _watched(recorder: subprocess.Popen[str]) -> dict[str, Any]:
    """Follow a recorder to its end: it must come to one, with a verdict, in time."""
    began_s, most = time.monotonic(), 0
    while recorder.poll() is None and time.monotonic() < began_s + LIMIT_S:
        most = max(most, _memory_of(recorder.pid))
        time.sleep(0.2)
    return {
        "ended": "" if recorder.poll() is None else status_in(recorder.communicate()[0]),
        "seconds": time.monotonic() - began_s,
        "most_s": LIMIT_S,
        "most_bytes": most,
        "limit_bytes": MOST_BYTES,
    }


def _memory_of(pid: int) -> int:
    """Return the resident bytes of a process and its children."""
    uses = map(process_use, (pid, *children_of(pid)))
    return sum(use.memory_bytes for use in uses if use is not None)


def attack_clients(device: str, folder: Path) -> Seen:
    """Ask every hostile camera, or headset, in a process of its own, as a recorder does. Raises KitchenFailed.

    A camera is asked for its state and a file, a headset what is asked on 3809 and for constants.
    """
    python = [sys.executable, "-P"]
    place = free_host() if device == "camera" else free_host().rpartition(".")[0]
    serve = [*python, "-m", f"kitchensync.virtual_kitchen.{FOLDERS[device]}.hostile", place]
    ask = [*python, str(Path(__file__).with_name("device_client.py")), device, str(folder)]
    with process(serve, folder, device) as served:
        assert served.stdout is not None
        done = run(ask, folder, f"{device}_client", given=served.stdout.readline(), limit_s=LIMIT_S)
    if done.returncode:
        raise KitchenFailed(f"the {device}'s client crashed: {done.stderr.strip()[-300:]}")
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
    "too much": [b"x" * (MOST_CONTROL_BYTES * 100)],
}  # fmt: skip


def attack_control(endpoint: Path) -> Seen:
    """Send frames that mean harm to a recorder's control socket; none may be answered with a yes."""
    seen = {}
    with zmq.Context() as context:
        for kind, parts in FRAMES.items():
            began_s, said = time.monotonic(), ""
            for _ in range(20):
                said = _asked(context, endpoint, parts)
            seen[kind] = {"ended": said, "seconds": time.monotonic() - began_s, "most_s": LIMIT_S}
    return seen


def _asked(context: zmq.Context[Any], endpoint: Path, parts: list[bytes]) -> str:
    """Return `refused`, `silent`, or nothing where the recorder obeyed."""
    with context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"ipc://{endpoint}")
        socket.send_multipart(parts)
        limit_ms = 200 if len(parts[0]) > MOST_CONTROL_BYTES else 5000
        if not socket.poll(limit_ms):
            return "silent"
        return "" if json.loads(socket.recv()).get("ok") else "refused"


def attack(what: str, folder: Path, seed: int, endpoint: Path) -> None:
    """Attack in one way and write what was seen. Raises KitchenFailed."""
    if what == "headset":
        seen = attack_headset(folder, seed)
    elif what == "control":
        seen = attack_control(endpoint)
    else:
        seen = attack_clients({"remote": "headset"}.get(what, what), folder)
    (folder / SEEN).write_text(json.dumps(seen, indent=1))


def wrong_in(folder: Path) -> Iterator[str]:
    """Say what did not end, took too long or too much memory in a scenario that was played."""
    for kind, facts in json.loads((folder / SEEN).read_text()).items():
        if not facts["ended"]:
            yield f"{kind}: came to no right end"
        if facts["seconds"] > facts["most_s"]:
            yield f"{kind}: took {facts['seconds']:.0f} s"
        if facts.get("most_bytes", 0) > facts.get("limit_bytes", MOST_BYTES):
            yield f"{kind}: took {facts['most_bytes'] >> 20} MiB"
