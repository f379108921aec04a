"""Scenarios: which fault is injected, where and when, drawn from a seed so that each can be played again."""

import random
from dataclasses import dataclass
from typing import Any

RECORDING = "take"
REFUSED = "refused.json"  # in the folder of a scenario whose recorder must refuse

SECONDS = 6.0  # world time of a scenario: enough for a fault and what follows it
FIRST_S, LAST_S = 0.5, 2.5  # moment of the fault, after every stream has delivered
WORLD_START_S = 1.5  # world time until every stream has delivered, about
ENDLESS_S = 120.0  # world time that outlasts every recorder

RESTART = ("restart", "reconnect")
NETWORK = ("network", "reconnect")
QUEUE_LOSS = ("queue_loss", "declared_loss")

STREAMS = ("pv", "depth_ahat", "gyroscope", "accelerometer", "microphone", "spatial_input")
"""Streams that may be cut."""
LONG_STOPS = ("producer", "drainer", "queue", "supervisor", "all")
"""Targets of `long_stop`, in turn."""
WHOLE = {"app_restart": ":", "die": ":", "gopro_battery_dead": ""}
"""Faults of a whole device -> what stands in place of the stream in the option `--fault`."""


@dataclass(frozen=True)
class Kind:
    """One kind of scenario, and the fault of the same name.

    `causes` may explain a lost packet in the ledger; without any the fault must lose nothing. `lasts_s` limits its
    length. `in_simulator`: the virtual kitchen injects it. `mounts`: the recording ("data") or the store ("nas") lies
    on a small disk. `store`: copies go to a store. `recover`: the command follows. `injects`: clock, disk or drainer
    are changed by `injected`. `stops_s`: the recorder stops then, before the world ends.
    """

    name: str
    causes: tuple[str, ...] = ()
    lasts_s: tuple[float, float] | None = None
    in_simulator: str = ""
    mounts: str = ""
    store: bool = False
    recover: bool = False
    injects: bool = False
    stops_s: float = 0.0


KINDS = {
    kind.name: kind
    for kind in (
        Kind("nothing"),
        Kind("kill_producer", RESTART),
        Kind("kill_drainer"),
        Kind("kill_queue", QUEUE_LOSS),
        Kind("kill_recorder", recover=True),
        Kind("cut_socket", NETWORK, in_simulator="drop_connection"),
        Kind("stop_producer", RESTART, (0.3, 2.0)),
        Kind("disk_full", ("no_space", "declared_loss"), mounts="data"),
        Kind("nas_gone", lasts_s=(0.3, 4.0), store=True),
        Kind("suspend", ("suspend", "reconnect"), (0.3, 3.0)),
        Kind("step_clock", injects=True),
        Kind("kill_any", lasts_s=(0.3, 2.0), store=True),
        Kind("kill_supervisor", RESTART, recover=True),
        Kind("stop_drainer", lasts_s=(0.3, 3.0)),
        Kind("stop_queue", ("backpressure", *QUEUE_LOSS), (0.3, 3.0)),
        Kind("slow_disk", lasts_s=(0.3, 3.0), injects=True),
        Kind("cut_packet", NETWORK, in_simulator="half_packet"),
        Kind("restart_app", NETWORK, (0.3, 2.0), in_simulator="app_restart"),
        Kind("kill_mover", store=True),
        Kind("nas_full", mounts="nas", store=True),
        Kind("stop_supervisor", lasts_s=(0.3, 3.0)),
        Kind("relative_paths", recover=True),
        Kind("drainer_bug", recover=True, injects=True),
        Kind("folder_moved", lasts_s=(0.3, 4.0), recover=True),
        Kind("store_swapped", lasts_s=(0.3, 4.0), store=True),
        Kind("clustered_server"),
        Kind("slow_drip", lasts_s=(0.3, 3.0), in_simulator="slow_drip"),
        Kind("dead_port", NETWORK, in_simulator="kill_port", stops_s=11.0),
        Kind("headset_dies", NETWORK, in_simulator="die", stops_s=11.0),
        Kind("camera_dies", in_simulator="gopro_battery_dead", stops_s=11.0),
        Kind("long_stop", lasts_s=(20.0, 60.0)),
    )
}
"""In the order of play; the first twelve are the short rehearsal."""
KILL_MANY = Kind("kill_many", store=True)
"""A long recording with many kills; only `make kills` plays it."""
PLAYED = KINDS | {KILL_MANY.name: KILL_MANY}
CAUSES = {name: kind.causes for name, kind in KINDS.items()}


@dataclass(frozen=True)
class Scenario:
    """One recording with one fault, at `at_s` and of `lasts_s`; the recorder stops after `record_s` at the latest."""

    number: int
    kind: Kind
    seed: int
    at_s: float
    lasts_s: float
    target: str
    seconds: float
    "Length of the world."
    record_s: float

    @property
    def name(self) -> str:
        """Return `NNN-kind`, the name of its folder."""
        return f"{self.number:03d}-{self.kind.name}"

    @property
    def facts(self) -> dict[str, Any]:
        """Return what tells it from every other scenario, for JSON."""
        return vars(self) | {"kind": self.kind.name}

    @property
    def simulator_options(self) -> list[str]:
        """Return the options of `simulate` that inject its fault."""
        fault = self.kind.in_simulator
        if not fault:
            return []
        stream = WHOLE.get(fault, f":{self.target}")
        length = f"+{self.lasts_s:.2f}" if self.lasts_s else ""
        return ["--fault", f"{fault}{stream}@{self.at_s + WORLD_START_S:.2f}{length}"]


def draw(count: int, seed: int, *, can_mount: bool) -> list[Scenario]:
    """Draw `count` scenarios, every kind in turn; without `can_mount` full disks are left out."""
    generator = random.Random(seed)
    kinds = [kind for kind in KINDS.values() if can_mount or not kind.mounts]
    turns = [(number, kinds[number % len(kinds)], number // len(kinds)) for number in range(count)]
    return [_draw_one(generator, *turn) for turn in turns]


def _draw_one(generator: random.Random, number: int, kind: Kind, turn: int) -> Scenario:
    lasts_s = generator.uniform(*kind.lasts_s) if kind.lasts_s else 0.0
    target, world_s = kind.name.partition("_")[2], ENDLESS_S if kind.stops_s else SECONDS
    if kind.in_simulator and kind.in_simulator not in WHOLE:
        target = generator.choice(STREAMS)
    elif kind.name == "long_stop":
        target, world_s = LONG_STOPS[turn % len(LONG_STOPS)], SECONDS + lasts_s
    at_s, seed = generator.uniform(FIRST_S, LAST_S), generator.randrange(1 << 30)
    return Scenario(number, kind, seed, at_s, lasts_s, target, world_s, kind.stops_s or world_s + 20.0)
