"""Error scripts that break exactly the edges that they state: flip-and-sample.

Leave out the missing steps M and reduce the order of the remaining steps; reverse the edges F to be broken; draw a
uniform order of the result. By construction every kept edge holds and every edge of F is broken. An independent check
(`certificate.py`) verifies each script before it is returned.
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
from kitchensync.task_graphs.text.safety import must_stay

GENERATOR = "flip/1"
AT_RANDOM = 10
"""Attempts with a random set of edges before edges are chosen by swaps."""
TRIES = 200
"""Attempts before a request is reported as impossible."""
BUDGET = 20_000
"""Down-sets per script; above it exact counting is slower than the perfect sampler."""


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    """Requested errors of a script: steps to `skip` and edges to `flip`, and numbers of further random ones.

    `protected` steps are neither left out nor moved relative to others.
    """

    missing: int = 0
    flips: int = 0
    skip: frozenset[int] = frozenset()
    flip: frozenset[Edge] = frozenset()
    protected: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Script:
    """An order with stated errors; `unmet` are the edges with a missing first step and a second step that is done.

    `distance` is the number of ordered pairs of steps, direct or not, in the wrong order.
    """

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
    """Draw a verified script. Raises CyclicGraph, NoSuchScript, TooManyOrders."""
    order = relation(graph)
    _check_wish(graph, wish, order)
    rng = random.Random(f"script {seed}")
    for missing in _choices_of_missing(graph, wish, rng):
        stay = [node for node in order.items if node not in missing]
        flipped = _flipped(graph, wish, restricted(order, set(stay)), rng)
        if flipped is None:
            continue
        broken, turned = flipped
        drawn, sampler = draw_one(turned, rng, name=graph.name, budget=BUDGET)
        script = _script(graph, order, drawn, broken, sampler, seed)
        _verify(graph, script)
        return script
    errors = f"{len(wish.skip) + wish.missing} missing steps and {len(wish.flip) + wish.flips} broken edges"
    why = f"no script with {errors} was found in {TRIES} tries; request fewer, or protect fewer steps"
    raise NoSuchScript(graph.name, why)


def _check_wish(graph: Graph, wish: ScriptRequest, order: Relation) -> None:
    steps = set(order.items)
    changed = wish.skip | {node for edge in wish.flip for node in edge}
    if unknown := sorted((changed | wish.protected) - steps):
        why = f"there is no step {unknown[0]}; `kitchensync graph orders` shows the ids"
        raise NoSuchScript(graph.name, why)
    if conflicts := sorted(wish.protected & changed):
        raise NoSuchScript(graph.name, f"step {conflicts[0]} is protected; it cannot be left out or moved")
    free = len(steps - wish.skip - wish.protected)
    if wish.missing > free or len(wish.skip) + wish.missing >= len(steps):
        why = f"{wish.missing} steps cannot be left out, only {free} are allowed to be; request fewer"
        raise NoSuchScript(graph.name, why)


def _choices_of_missing(graph: Graph, wish: ScriptRequest, rng: random.Random) -> Iterator[frozenset[int]]:
    in_flips = {node for edge in wish.flip for node in edge}
    free = [s.node for s in graph.steps if s.node not in wish.skip | wish.protected | in_flips]
    for _ in range(TRIES if len(free) >= wish.missing else 0):
        yield wish.skip | set(rng.sample(free, wish.missing))


def _flipped(
    graph: Graph, wish: ScriptRequest, order: Relation, rng: random.Random
) -> tuple[frozenset[Edge], Relation] | None:
    """Choose the edges to break among the reduced edges of the graph; None if they make a cycle."""
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
    start, _ = draw_one(base, rng, name=graph.name, budget=BUDGET)
    more = _broken_by_swaps(start, kept - wish.flip, set(free), wish.flips, wish.flip, rng)
    broken = wish.flip | more
    turned = _turned(order, kept, broken)
    return (broken, turned) if len(more) == wish.flips and turned is not None else None


def _turned(order: Relation, kept: Collection[Edge], broken: Collection[Edge]) -> Relation | None:
    return relation_of(order.items, {(v, u) if (u, v) in broken else (u, v) for u, v in kept})


def _broken_by_swaps(
    start: tuple[int, ...],
    kept: Collection[Edge],
    free: Collection[Edge],
    count: int,
    turned: Collection[Edge],
    rng: random.Random,
) -> frozenset[Edge]:
    """Break `count` free edges by swapping neighbours of a valid order, each pair at most once.

    A random choice of many edges nearly always makes a cycle; this cannot, since an order with these broken edges
    exists. The swaps lead from the start to its reverse, so every count in between is reached.
    """
    order, first_place = list(start), {node: place for place, node in enumerate(start)}
    broken: set[Edge] = set()
    while len(broken) < count:
        open_places = [
            place
            for place, (a, b) in enumerate(pairwise(order))
            if first_place[a] < first_place[b]
            and ((a, b) in free or (a, b) not in kept)
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
    """Return whether every error can be corrected when it is noticed.

    A step that was done too early can be repeated if all dependent steps come after its late prerequisite. A missing
    step can be done at the end if no dependent step was done.
    """
    dependents = {node: set[int]() for node in order.items}
    for before, after in pairs_of(order):
        dependents[before].add(after)
    is_used = any(place.get(user, place[u]) < place[u] for u, v in broken for user in dependents[v])
    is_needed = any(user in place for node in missing for user in dependents[node])
    return not is_used and not is_needed


def _verify(graph: Graph, script: Script) -> None:
    """Run the independent check. Raises NoSuchScript if the script does not pass."""
    steps = [step.node for step in graph.steps]
    faults = certificate.faults(
        steps, graph.inner_edges, script.order, missing=script.missing, broken=script.broken
    )
    if faults:
        raise NoSuchScript(graph.name, f"the script did not pass its check: {'; '.join(faults)}")


def script_sentences(graph: Graph, script: Script) -> list[str]:
    """Return one sentence for each stated error of a script: a step to leave out, or two steps to swap."""
    text = {step.node: step.text for step in graph.numbered.steps}
    sentences = []
    for node in script.missing:
        users = [f"“{text[after]}”" for before, after in script.unmet if before == node]
        still_done = f" (still done without it: {'; '.join(users)})" if users else ""
        sentences.append(f"Leave out: “{text[node]}”{still_done}.")
    return sentences + [f"Do “{text[v]}” before “{text[u]}”, not after it." for u, v in script.broken]


def safety_steps(graph: Graph, script: Script) -> list[int]:
    """Return the steps that keep people safe and that a script leaves out or moves."""
    moved = {node for edge in script.broken for node in edge}
    return [node for node in sorted({*script.missing, *moved}) if must_stay(graph.by_node[node].text)]


def cautions(graph: Graph, script: Script) -> list[str]:
    """Return a warning for each of the `safety_steps` of a script."""
    return [
        f"“{graph.numbered.by_node[node].text}” is {'left out' if node in script.missing else 'moved'}: "
        "somebody must watch the heat or the raw food"
        for node in safety_steps(graph, script)
    ]
