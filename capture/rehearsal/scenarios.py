"""What goes wrong, where and when: drawn from a seed, so that a scenario can be played again."""

from __future__ import annotations

import random
from dataclasses import dataclass

SECONDS = 6.0
"""Length of a scenario in world seconds: long enough for a fault and what follows it."""

FIRST_S, LAST_S = 0.5, 2.5
"""A fault begins so long after every stream has come, so that there is something before and after."""

CHUNK_S = 1.0
"""Chunks are closed this often, not every ten seconds, so that faults meet the sealing too."""

RESTART = ("restart", "reconnect")
QUEUE_LOSS = ("queue_loss", "declared_loss")
NETWORK = ("network", "reconnect")
NO_SPACE = ("no_space", "declared_loss")

CAUSES: dict[str, tuple[str, ...]] = {
    "kill_producer": RESTART,
    "stop_producer": RESTART,
    "kill_supervisor": RESTART,
    "stop_supervisor": (),
    "kill_drainer": (),
    "stop_drainer": (),
    "kill_queue": QUEUE_LOSS,
    "stop_queue": QUEUE_LOSS,
    "kill_mover": (),
    "cut_socket": NETWORK,
    "cut_packet": NETWORK,
    "suspend": ("suspend", "reconnect"),
    "disk_full": NO_SPACE,
    "slow_disk": (),
    "nas_gone": (),
    "nas_full": (),
    "step_clock": (),
}
"""Fault -> the causes in the ledger that may explain a packet which it costs."""


@dataclass(frozen=True)
class Kind:
    """One kind of scenario.

    `in_simulator` is a fault that the virtual kitchen does by itself; `mounts` a small disk is needed for the
    recording ("data") or the store ("nas"); `store` copies go to a store while recording; `recover` the recorder
    does not survive; `injects` the clock or the disk below Python is played.
    """

    name: str
    longest_s: float = 0.0
    in_simulator: str = ""
    mounts: str = ""
    store: bool = False
    recover: bool = False
    injects: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        Kind("nothing"),
        Kind("kill_producer"),
        Kind("kill_drainer"),
        Kind("kill_queue"),
        Kind("kill_recorder", recover=True),
        Kind("cut_socket", in_simulator="drop_connection"),
        Kind("stop_producer", longest_s=2.0),
        Kind("disk_full", mounts="data"),
        Kind("nas_gone", longest_s=4.0, store=True),
        Kind("suspend", longest_s=3.0),
        Kind("step_clock", injects=True),
        Kind("kill_any", longest_s=2.0, store=True),
        Kind("kill_supervisor", recover=True),
        Kind("stop_drainer", longest_s=3.0),
        Kind("stop_queue", longest_s=3.0),
        Kind("slow_disk", longest_s=3.0, injects=True),
        Kind("cut_packet", in_simulator="half_packet"),
        Kind("restart_app", longest_s=2.0, in_simulator="app_restart"),
        Kind("kill_mover", store=True),
        Kind("nas_full", mounts="nas", store=True),
        Kind("stop_supervisor", longest_s=3.0),
    )
}
"""In this order they are played; the first twelve are the short rehearsal."""

STREAMS = ("pv", "depth_ahat", "gyroscope", "accelerometer", "microphone", "spatial_input")
"""Streams whose socket may be cut."""

WORLD_START_S = 1.5
"""About so much world time has gone when every stream has come."""


@dataclass(frozen=True)
class Scenario:
    """One rehearsal."""

    number: int
    kind: Kind
    seed: int
    at_s: float
    lasts_s: float
    target: str

    @property
    def name(self) -> str:
        """Return `NNN-kind`, the name of its folder."""
        return f"{self.number:03d}-{self.kind.name}"

    @property
    def simulator_options(self) -> list[str]:
        """Return what the virtual kitchen has to do by itself."""
        if not self.kind.in_simulator:
            return []
        stream = "" if self.kind.in_simulator == "app_restart" else self.target
        length = f"+{self.lasts_s:.2f}" if self.lasts_s else ""
        return ["--fault", f"{self.kind.in_simulator}:{stream}@{self.at_s + WORLD_START_S:.2f}{length}"]

    @property
    def facts(self) -> dict[str, object]:
        """Return what makes it this scenario and no other."""
        return {
            "kind": self.kind.name,
            "seed": self.seed,
            "at_s": round(self.at_s, 6),
            "lasts_s": round(self.lasts_s, 6),
        }


def draw(count: int, seed: int, *, can_mount: bool) -> list[Scenario]:
    """Draw `count` scenarios, every kind in turn; without `can_mount` the full disks are left out."""
    generator = random.Random(seed)
    kinds = [kind for kind in KINDS.values() if can_mount or not kind.mounts]
    scenarios = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        lasts_s = generator.uniform(0.3, kind.longest_s) if kind.longest_s else 0.0
        cuts = kind.in_simulator in ("drop_connection", "half_packet")
        target = generator.choice(STREAMS) if cuts else kind.name.partition("_")[2]
        at_s = generator.uniform(FIRST_S, LAST_S)
        scenarios.append(Scenario(number, kind, generator.randrange(1 << 30), at_s, lasts_s, target))
    return scenarios
