"""What goes wrong, where and when: drawn from a seed, so that a scenario can be played again."""

from __future__ import annotations

import random
from dataclasses import dataclass

SECONDS = 6.0
"""Length of a scenario in world seconds: long enough for a fault and what follows it."""

FIRST_S, LAST_S = 1.5, 3.5
"""A fault begins in this part of the recording, so that there is something before and after."""


@dataclass(frozen=True)
class Kind:
    """One kind of fault: which causes in the ledger may explain what it costs, how long it lasts."""

    name: str
    causes: tuple[str, ...]
    longest_s: float = 0.0
    simulator_fault: str = ""
    needs_small_disk: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        Kind("nothing", ()),
        Kind("kill_producer", ("restart", "reconnect")),
        Kind("stop_producer", ("restart", "reconnect"), longest_s=2.0),
        Kind("kill_drainer", ()),
        Kind("stop_drainer", (), longest_s=3.0),
        Kind("kill_queue", ("queue_loss", "declared_loss")),
        Kind("cut_socket", ("network", "reconnect"), simulator_fault="drop_connection"),
        Kind("cut_packet", ("network", "reconnect"), simulator_fault="half_packet"),
        Kind("suspend", ("suspend", "reconnect"), longest_s=3.0),
        Kind("disk_full", ("no_space", "declared_loss"), needs_small_disk=True),
    )
}

STREAMS = ("pv", "depth_ahat", "gyroscope", "accelerometer", "microphone", "spatial_input")
"""Streams whose socket may be cut."""


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
        if not self.kind.simulator_fault:
            return []
        return ["--fault", f"{self.kind.simulator_fault}:{self.target}@{self.at_s:.2f}"]


def draw(count: int, seed: int, *, small_disk: bool) -> list[Scenario]:
    """Draw `count` scenarios, every kind in turn; without `small_disk` the full disk is left out."""
    generator = random.Random(seed)
    kinds = [kind for kind in KINDS.values() if small_disk or not kind.needs_small_disk]
    scenarios = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        lasts_s = generator.uniform(0.3, kind.longest_s) if kind.longest_s else 0.0
        target = generator.choice(STREAMS) if kind.simulator_fault else kind.name.partition("_")[2]
        at_s = generator.uniform(FIRST_S, LAST_S)
        scenarios.append(Scenario(number, kind, generator.randrange(1 << 30), at_s, lasts_s, target))
    return scenarios
