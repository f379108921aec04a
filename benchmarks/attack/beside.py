"""A recording of the virtual kitchen beside the attack: headset and camera, every packet accounted for at its end."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal.account import Account, settle
from rehearsal.scenarios import RECORDING
from rehearsal.stage import keep_facts, recorder

from kitchensync.capture.served_kitchen import KITCHENSYNC, simulator
from kitchensync.capture.session.control import ask
from kitchensync.storage.verify import verify

WORLD_S = 7200.0


@dataclass
class FrameSamples:
    """A recording that goes on."""

    endpoint: Path
    "Its control socket."
    account: Account | None = None
    "What became of it, once it has ended."
    reasons: list[str] = field(default_factory=list)
    "What `verify` says against it."


@contextlib.contextmanager
def recording() -> Iterator[FrameSamples]:
    """Record as long as the block lasts, then hold what is stored against what was sent. Raises KitchenFailed."""
    with tempfile.TemporaryDirectory(prefix="beside-") as at:
        folder = Path(at)
        with simulator(folder, 1, WORLD_S) as kitchen:
            command = [KITCHENSYNC, "record", RECORDING, "--data", str(folder / "data"), "--json"]
            command += ["--hololens", kitchen.host, "--gopro", kitchen.gopro]
            with recorder(command, folder, kitchen.environment) as started:
                started.wait_for_all()
                beside = FrameSamples(started.endpoints()[0])
                yield beside
                ask(beside.endpoint, "stop")
                output = started.output()
        keep_facts(folder, output, {"kind": "nothing", "faults": [], "seconds": WORLD_S, "record_s": WORLD_S})
        beside.account = settle(folder)
        beside.reasons = verify(folder / "data" / RECORDING)["reasons"]
