"""Error scripts that break exactly what they state: flip-and-sample.

Leave out the missing steps M and reduce the order of those that stay; reverse the edges F that shall be broken; draw
a uniform order of the result. Every kept edge holds and every edge of F is broken, by construction; an independent
check (`certificate.py`) says so again before a script is handed out.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from kitchensync.task_graphs.errors import NoSuchScript
from kitchensync.task_graphs.mistakes import certificate
from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.closure import (
    Relation,
    covers,
    pairs_of,
    relation,
    relation_of,
    restricted,
)
from kitchensync.task_graphs.order.orders import draw_one

GENERATOR = "flip/1"
AT_RANDOM = 10
"""Sets of edges chosen freely before they are chosen along swaps."""
TRIES = 200
"""Choices of steps and edges before a wish is called impossible."""
BUDGET = 20_000
"""Down-sets per script: what is counted beyond it takes longer than the perfect sampler."""


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    """What a script shall do wrong; `skip` and `flip` name steps and edges, the counts are drawn besides them.

    `protected` steps are neither left out nor moved against any other. `distance` bounds how many ordered pairs of
    steps, direct or not, come the wrong way round. `reparable` None leaves it open.
    """

    missing: int = 0
    flips: int = 0
    skip: frozenset[int] = frozenset()
    flip: frozenset[Edge] = frozenset()
    protected: frozenset[int] = frozenset()
    distance: tuple[int, int | None] = (0, None)
    reparable: bool | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """An order with stated errors; `unmet` are the edges whose first step is missing and whose second is done."""

    order: tuple[int, ...]
    missing: tuple[int, ...]
    broken: tuple[Edge, ...]
    unmet: tuple[Edge, ...]
    distance: int
    reparable: bool
    sampler: str
    seed: int
    graph_hash: str


def draw_script(graph: Graph, wish: ScriptRequest, *, seed: int) -> Script:
    """Draw a verified script. Raises CyclicGraph, NoSuchScript with the reason, TooManyOrders."""
    order = relation(graph)
    _check_wish(graph, wish, order)
    rng = random.Random(f"script {seed}")
    near_misses: list[int] = []
    for missing in _choices_of_missing(graph, wish, rng):
        stay = [node for node in order.items if node not in missing]
        flipped = _flipped(graph, wish, restricted(order, set(stay)), rng)
        if flipped is None:
            continue
        broken, turned = flipped
        drawn, sampler = draw_one(turned, rng, name=graph.name, budget=BUDGET)
        script = _script(graph, order, drawn, broken, sampler, seed)
        if _fits(script, wish):
            _verify(graph, script)
            return script
        near_misses.append(script.distance)
    raise NoSuchScript(graph.name, _why_not(wish, near_misses))


def _check_wish(graph: Graph, wish: ScriptRequest, order: Relation) -> None:
    steps = set(order.items)
    named = wish.skip | wish.protected | {node for edge in wish.flip for node in edge}
    if unknown := sorted(named - steps):
        raise NoSuchScript(
            graph.name, f"there is no step {unknown[0]}; `kitchensync graph orders` shows the ids"
        )
    if contrary := sorted(wish.protected & (wish.skip | {node for edge in wish.flip for node in edge})):
        raise NoSuchScript(graph.name, f"step {contrary[0]} is protected; it cannot be left out or moved")
    free = len(steps - wish.skip - wish.protected)
    if wish.missing > free or len(wish.skip) + wish.missing >= len(steps):
        raise NoSuchScript(
            graph.name, f"{wish.missing} steps cannot be left out of {free} that may; ask for fewer"
        )


def _choices_of_missing(graph: Graph, wish: ScriptRequest, rng: random.Random) -> Iterator[frozenset[int]]:
    in_flips = {node for edge in wish.flip for node in edge}
    free = [s.node for s in graph.steps if s.node not in wish.skip | wish.protected | in_flips]
    for _ in range(TRIES if len(free) >= wish.missing else 0):
        yield wish.skip | set(rng.sample(free, wish.missing))


def _flipped(
    graph: Graph, wish: ScriptRequest, order: Relation, rng: random.Random
) -> tuple[frozenset[Edge], Relation] | None:
    """Choose the edges to break among those of the graph that nothing implies; None when this does not work out."""
    reduced = covers(order)
    in_graph = {edge for edge in graph.inner_edges if set(edge) <= set(order.items)}
    fixed = {pair for pair in pairs_of(order) if wish.protected & set(pair)}
    kept = {*reduced, *fixed, *in_graph}
    may_break = [edge for edge in reduced if edge in in_graph - fixed]
    free = [edge for edge in may_break if edge not in wish.flip]
    if not wish.flip <= set(may_break) or wish.flips > len(free):
        return None
    for _ in range(AT_RANDOM):
        broken = wish.flip | set(rng.sample(free, wish.flips))
        if (turned := _turned(order, kept, broken)) is not None:
            return broken, turned
    base = _turned(order, kept, wish.flip)
    if base is None:
        return None
    witness, _ = draw_one(base, rng, name=graph.name, budget=BUDGET)
    more = _broken_by_swaps(witness, kept - wish.flip, set(free), wish.flips, wish.flip, rng)
    broken = wish.flip | more
    turned = _turned(order, kept, broken)
    return (broken, turned) if len(more) == wish.flips and turned is not None else None


def _turned(order: Relation, kept: Collection[Edge], broken: Collection[Edge]) -> Relation | None:
    return relation_of(order.items, {(v, u) if (u, v) in broken else (u, v) for u, v in kept})


def _broken_by_swaps(
    witness: tuple[int, ...],
    holding: Collection[Edge],
    free: Collection[Edge],
    count: int,
    turned: Collection[Edge],
    rng: random.Random,
) -> frozenset[Edge]:
    """Break `count` free edges by swapping neighbours, each pair at most once, so that an order always shows them.

    Where many edges shall break, choosing them blindly nearly always makes a circle; this never does. Swaps lead from
    the witness to its reverse, so every count in between is passed.
    """
    order, first_place = list(witness), {node: place for place, node in enumerate(witness)}
    broken: set[Edge] = set()
    while len(broken) < count:
        open_places = [
            place
            for place, (a, b) in enumerate(pairwise(order))
            if first_place[a] < first_place[b]
            and ((a, b) in free or (a, b) not in holding)
            and (b, a) not in turned
        ]
        if not open_places:
            break
        place = rng.choice(open_places)
        pair = (order[place], order[place + 1])
        order[place], order[place + 1] = pair[1], pair[0]
        if pair in free:
            broken.add(pair)
    return frozenset(broken)


def _script(
    graph: Graph, order: Relation, drawn: tuple[int, ...], broken: Collection[Edge], sampler: str, seed: int
) -> Script:
    place = {node: index for index, node in enumerate(drawn)}
    missing = tuple(node for node in order.items if node not in place)
    late = [(u, v) for u, v in pairs_of(order) if u in place and v in place and place[v] < place[u]]
    return Script(
        order=drawn,
        missing=missing,
        broken=tuple(sorted(broken)),
        unmet=tuple((u, v) for u, v in graph.inner_edges if u not in place and v in place),
        distance=len(late),
        reparable=_is_reparable(order, place, missing, broken),
        sampler=sampler,
        seed=seed,
        graph_hash=graph.content_hash,
    )


def _is_reparable(
    order: Relation, place: dict[int, int], missing: Collection[int], broken: Collection[Edge]
) -> bool:
    """Return whether every error can still be put right when it would be noticed.

    A step done too early can be done again as long as nothing was built on it: all that needs it comes after its late
    prerequisite. A missing step can be made up for at the end when no step that was done needs it.
    """
    needs = {node: set[int]() for node in order.items}
    for before, after in pairs_of(order):
        needs[before].add(after)
    built_on = any(place.get(user, place[u]) < place[u] for u, v in broken for user in needs[v])
    needed = any(user in place for node in missing for user in needs[node])
    return not built_on and not needed


def _fits(script: Script, wish: ScriptRequest) -> bool:
    least, most = wish.distance
    far_enough = least <= script.distance and (most is None or script.distance <= most)
    return far_enough and wish.reparable in (None, script.reparable)


def _verify(graph: Graph, script: Script) -> None:
    """Ask the independent checker; a script that does not hold is never handed out."""
    steps = [step.node for step in graph.steps]
    faults = certificate.faults(
        steps, graph.inner_edges, script.order, missing=script.missing, broken=script.broken
    )
    if faults:
        raise NoSuchScript(graph.name, f"the script did not pass its check: {'; '.join(faults)}")


def _why_not(wish: ScriptRequest, distances: list[int]) -> str:
    asked = f"{len(wish.skip) + wish.missing} missing steps and {len(wish.flip) + wish.flips} broken edges"
    if not distances:
        return f"no script with {asked} was found in {TRIES} tries; ask for fewer, or protect fewer steps"
    seen = f"distances from {min(distances)} to {max(distances)}"
    return (
        f"scripts with {asked} were found ({seen}), but none with this distance and reparability; widen them"
    )
