"""One small recording of the virtual kitchen, real to the last byte, and what can become of it."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

from processes import COMMAND, running

from kitchensync.storage.chunks.chunk_reader import Chunk
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.life import Life, life_of
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.move.archive import archive
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.names import COPYING

AWAY = "elsewhere, stores away"


def make_lives(made: Path) -> None:
    """Record for some seconds, synchronize, and make every life of it below `made`, by its name."""
    _record(made)
    take = made / "data" / "take"
    _halve(take, "hololens/pv")
    _halve(take, "hololens/gyroscope")
    subprocess.run([COMMAND, "sync", take, "--jobs", "1"], check=False, capture_output=True)
    subprocess.run([COMMAND, "report", take], check=True, capture_output=True)
    shutil.copy(take / "gopro" / "GX010001.MP4", made / "card.MP4")
    for life in (*Life, AWAY):
        folder = made / life / "take"
        shutil.copytree(take, folder)
        _become(folder, life, made)
        assert life_of(folder) == life.partition(",")[0], life
        shutil.rmtree(made / life / "_app", ignore_errors=True)  # beside it, not in it
        for path in sorted((made / life / "take").iterdir()):
            path.rename(made / life / path.name)
        folder.rmdir()


def _record(made: Path) -> None:
    """Record until it went well, for longer each time: a busy computer begins late."""
    for number in range(5):
        said = _one_try(made, number)
        if said.returncode == 0:
            (made / f"try{number}").rename(made / "data")
            with edit_manifest(made / "data" / "take") as manifest:
                manifest |= {"consent": "form-1", "consent_scopes": ["release_raw"]}
            return
    raise AssertionError(said.stdout + said.stderr)


def _one_try(made: Path, number: int) -> subprocess.CompletedProcess[str]:
    seconds = 3 * (number + 1)
    host = ".".join(["127", *(str(random.randint(2, 254)) for _ in range(3))])
    simulate = [
        "simulate",
        "--ring-store",
        str(made / "rings"),
        "--seed",
        "3",
        "--seconds",
        str(8 + seconds),
        "--hololens-host",
        host,
        "--gopro-host",
        host,
    ]
    command = [COMMAND, *simulate, "--gopro-port", "0", "--out", str(made / f"sim{number}")]
    with running(command, stdout=subprocess.PIPE) as kitchen:
        assert kitchen.stdout is not None
        port = kitchen.stdout.readline().strip().partition("=")[2]
        devices = ["--hololens", host, "--gopro", f"http://{host}:{port}"]
        record = [COMMAND, "record", "take", "--data", str(made / f"try{number}"), *devices]
        record += ["--seconds", str(seconds)]
        return subprocess.run(record, check=False, capture_output=True, text=True)


def _halve(take: Path, stream: str) -> None:
    """Seal a stream's one chunk as two, so that there is something to pack."""
    path = take / stream / "000001.h5"
    with Chunk(path) as chunk:
        poses = chunk.poses
        packets = [
            Packet(
                *(int(row[name]) for name in ("seq", "epoch_ms", "device_ticks", "host_ns", "connection")),
                payload,
                poses[number].tobytes() if poses is not None else b"",
            )
            for number, (row, payload) in enumerate(zip(chunk.index, chunk.payloads(), strict=True))
        ]
        facts = {"stream": stream}
    path.unlink()
    half = len(packets) // 2
    sealed = [seal(take / stream, n, part, facts) for n, part in ((1, packets[:half]), (2, packets[half:]))]
    with edit_manifest(take) as manifest:
        for one in sealed:
            manifest["files"][f"{stream}/{one.path.name}"] = {"bytes": one.bytes, "sha256": one.sha256}


def _become(take: Path, life: str, made: Path) -> None:
    if life == Life.MANIFEST_LOST:
        (take / "recording.json").unlink()
    elif life == Life.DAMAGED:
        path = take / "recording.json"
        path.write_bytes(path.read_bytes().replace(b'"complete"', b'"complexe"', 1))
    elif life == Life.ARCHIVED:
        archive(take)
    elif life in (Life.ELSEWHERE, AWAY):
        store = made / f"store of {life}"
        store.mkdir()
        run_mover([take], [store], rule=FreeRule(1, 0.0))
        if life == AWAY:
            shutil.rmtree(store)
    elif life == Life.COPYING:
        (take / "hololens" / "pv" / "000002.h5").unlink()
        with edit_manifest(take) as manifest:
            manifest[COPYING] = True
    elif life != Life.COMPLETE:
        with edit_manifest(take) as manifest:
            if life == Life.WITHDRAWN:
                manifest["withdrawn"] = {"utc_ns": 1}
            else:
                manifest["state"] = str(life)
