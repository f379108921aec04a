"""A recording of the virtual kitchen beside the attack: headset and camera, every packet accounted for at its end."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from capture.rehearsal.account import Account, settle
from capture.rehearsal.processes import KITCHENSYNC, process
from capture.rehearsal.scenarios import RECORDING
from capture.rehearsal.stage import END_LIMIT_S, end_simulator, simulator, state_of, wait_for_all
from capture.session.control import ask
from storage.verify import verify

WORLD_S = 7200.0


@dataclass
class Beside:
    """A recording that goes on."""

    endpoint: Path
    "Its control socket."
    account: Account | None = None
    "What became of it, once it has ended."
    reasons: list[str] = field(default_factory=list)
    "What `verify` says against it."


@contextlib.contextmanager
def recording() -> Iterator[Beside]:
    """Record as long as the block lasts, then hold what is stored against what was sent. Raises RehearsalFailed."""
    with (
        tempfile.TemporaryDirectory(prefix="ks") as runtime,
        tempfile.TemporaryDirectory(prefix="beside-") as at,
    ):
        folder = Path(at)
        with simulator(folder, 1, WORLD_S, []) as kitchen:
            command = [KITCHENSYNC, "record", RECORDING, "--data", str(folder / "data"), "--json"]
            command += ["--hololens", kitchen.host, "--gopro", f"http://{kitchen.host}:{kitchen.gopro_port}"]
            with process(command, folder, "record", {"XDG_RUNTIME_DIR": runtime}) as recorder:
                wait_for_all("beside", lambda: state_of("beside", recorder, Path(runtime)))
                beside = Beside(next(iter(Path(runtime).glob("kitchensync/*/control"))))
                yield beside
                ask(beside.endpoint, "stop")
                said = recorder.communicate(timeout=END_LIMIT_S)[0]
            end_simulator(kitchen, "beside")
        (folder / "record.json").write_text(said)
        facts = {
            "recording": RECORDING,
            "kind": "nothing",
            "faults": [],
            "seconds": WORLD_S,
            "record_s": WORLD_S,
        }
        (folder / "scenario.json").write_text(json.dumps(facts))
        beside.account = settle(folder)
        beside.reasons = verify(folder / "data" / RECORDING)["reasons"]
