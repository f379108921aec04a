"""What goes wrong, where and when: drawn from a seed, so that a scenario can be played again."""

from __future__ import annotations

import random
from dataclasses import dataclass

RECORDING = "take"
REFUSED = "refused.json"
"""What a recorder said that refused to start, in the folder of a scenario that wants that."""

SECONDS = 6.0
"""Length of a scenario in world seconds: long enough for a fault and what follows it."""

FIRST_S, LAST_S = 0.5, 2.5
"""A fault begins so long after every stream has come, so that there is something before and after."""

CHUNK_S = 1.0
"""Chunks are closed this often, not every ten seconds, so that faults meet the sealing too."""

RESTART = ("restart", "reconnect")
QUEUE_LOSS = ("queue_loss", "declared_loss")
NETWORK = ("network", "reconnect")
COSTS_NOTHING = (
    "stop_supervisor", "kill_drainer", "stop_drainer", "kill_mover", "slow_disk", "nas_gone", "nas_full",
    "step_clock", "slow_drip", "camera_dies", "drainer_bug", "folder_moved", "store_swapped", "hostile_headset",
    "hostile_camera", "hostile_remote", "hostile_control",
)  # fmt: skip
CAUSES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(COSTS_NOTHING, ()),
    **dict.fromkeys(("kill_producer", "stop_producer", "kill_supervisor"), RESTART),
    **dict.fromkeys(("cut_socket", "cut_packet", "dead_port", "headset_dies"), NETWORK),
    "kill_queue": QUEUE_LOSS,
    "stop_queue": ("backpressure", *QUEUE_LOSS),
    "suspend": ("suspend", "reconnect"),
    "disk_full": ("no_space", "declared_loss"),
}
"""Fault -> the causes in the ledger that may explain a packet which it costs."""

LONG_STOPS = ("producer", "drainer", "queue", "supervisor", "all")
"""Who is stopped for up to a minute, in turn."""


@dataclass(frozen=True)
class Kind:
    """One kind of scenario.

    `in_simulator` is a fault that the virtual kitchen does by itself; `mounts` a small disk is needed for the
    recording ("data") or the store ("nas"); `store` copies go to a store while recording; `recover` the recorder
    does not survive, or leaves work; `injects` the clock, the disk or a bug below Python is played; `camera` a GoPro
    films too; `stops_first` the recorder is stopped before the world ends, since a device that died never ends;
    `hostile` who means harm beside the recording, which has to go on as if nothing were.
    """

    name: str
    longest_s: float = 0.0
    shortest_s: float = 0.3
    in_simulator: str = ""
    mounts: str = ""
    store: bool = False
    recover: bool = False
    injects: bool = False
    camera: bool = False
    stops_first: bool = False
    hostile: str = ""


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
        Kind("relative_paths", recover=True),
        Kind("drainer_bug", recover=True, injects=True),
        Kind("folder_moved", longest_s=4.0, recover=True),
        Kind("store_swapped", longest_s=4.0, store=True),
        Kind("clustered_server"),
        Kind("slow_drip", longest_s=3.0, in_simulator="slow_drip"),
        Kind("dead_port", in_simulator="kill_port", stops_first=True),
        Kind("headset_dies", in_simulator="die", stops_first=True),
        Kind("camera_dies", in_simulator="gopro_battery_dead", camera=True, stops_first=True),
        Kind("hostile_headset", hostile="headset"),
        Kind("hostile_camera", hostile="camera"),
        Kind("hostile_remote", hostile="remote"),
        Kind("hostile_control", hostile="control"),
        Kind("long_stop", longest_s=60.0, shortest_s=20.0),
    )
}
"""In this order they are played; the first twelve are the short rehearsal."""

KILL_MANY = Kind("kill_many", store=True)
"""A long recording with many kills; played by `make kills` alone."""

PLAYED = KINDS | {KILL_MANY.name: KILL_MANY}

STREAMS = ("pv", "depth_ahat", "gyroscope", "accelerometer", "microphone", "spatial_input")
"""Streams whose socket may be cut."""

WHOLE = {"app_restart": ":", "die": ":", "gopro_battery_dead": ""}
"""Faults of a whole device, not of one of its streams, and what stands in place of the stream."""

ENDLESS_S = 120.0
"""A world that outlasts every recorder."""

HOSTILE_S = 30.0
"""Length of a recording beside which somebody means harm, in seconds."""

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
        fault = self.kind.in_simulator
        if not fault:
            return []
        stream = WHOLE.get(fault, f":{self.target}")
        length = f"+{self.lasts_s:.2f}" if self.lasts_s else ""
        return ["--fault", f"{fault}{stream}@{self.at_s + WORLD_START_S:.2f}{length}"]

    @property
    def world_s(self) -> float:
        """Return how long the world lasts: a long stop needs something to miss and something after it."""
        if self.kind.stops_first or self.kind.hostile:
            return ENDLESS_S
        return SECONDS + (self.lasts_s if self.kind.name == "long_stop" else 0.0)

    @property
    def record_s(self) -> float:
        """Return after how many seconds the recorder is to stop, if no device ends it before."""
        if self.kind.hostile:
            return HOSTILE_S
        return SECONDS + 5.0 if self.kind.stops_first else self.world_s + 20.0

    @property
    def facts(self) -> dict[str, object]:
        """Return what makes it this scenario and no other."""
        return {
            "kind": self.kind.name,
            "seed": self.seed,
            "at_s": round(self.at_s, 6),
            "lasts_s": round(self.lasts_s, 6),
            "seconds": round(self.world_s, 6),
            "record_s": round(self.record_s, 6),
        }


def draw(count: int, seed: int, *, can_mount: bool) -> list[Scenario]:
    """Draw `count` scenarios, every kind in turn; without `can_mount` the full disks are left out."""
    generator = random.Random(seed)
    kinds = [kind for kind in KINDS.values() if can_mount or not kind.mounts]
    scenarios = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        lasts_s = generator.uniform(kind.shortest_s, kind.longest_s) if kind.longest_s else 0.0
        cuts = kind.in_simulator and kind.in_simulator not in WHOLE
        target = generator.choice(STREAMS) if cuts else kind.name.partition("_")[2]
        if kind.name == "long_stop":
            target = LONG_STOPS[number // len(kinds) % len(LONG_STOPS)]
        at_s = generator.uniform(FIRST_S, LAST_S)
        scenarios.append(Scenario(number, kind, generator.randrange(1 << 30), at_s, lasts_s, target))
    return scenarios
