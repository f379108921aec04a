"""How fast, and how exact, the task-graph science is: counting, sampling, scripts, scoring.

python benchmarks/data_sets/graphs.py FOLDER [--scripts 10000]

FOLDER is a CaptainCook4D annotation folder. Every script is checked by `script_checker`, which shares no code with
what draws it. Exit code 1 when a checked line does not hold.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kitchensync.task_graphs.errors import RecipeError
from kitchensync.task_graphs.formats.graph_files import read_annotations, read_task_graphs
from kitchensync.task_graphs.mistakes.scripts import ScriptRequest, draw_script
from kitchensync.task_graphs.model import Edge, Graph, Step
from kitchensync.task_graphs.order.closure import relation
from kitchensync.task_graphs.order.diverse import draw_diverse
from kitchensync.task_graphs.order.orders import Orders, draw_orders
from kitchensync.task_graphs.scoring.score import score

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support" / "data_sets"))
from script_checker import complaints

WISHES = [(0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (0, 3), (3, 3)]

Found = TypeVar("Found")


def timed(make: Callable[[], Found]) -> tuple[Found, float]:
    """Return what `make` gives and how many seconds it took."""
    start = time.perf_counter()
    found = make()
    return found, time.perf_counter() - start


def random_graph(size: int, density: float, seed: int) -> Graph:
    """Make a random graph: each pair of steps has an edge with this probability."""
    rng = random.Random(seed)
    edges: list[Edge] = [p for p in itertools.combinations(range(1, size + 1), 2) if rng.random() < density]
    return Graph(
        "random.json", tuple(Step(node, f"Do-Do {node}") for node in range(1, size + 1)), tuple(edges)
    )


def say(holds: bool, text: str) -> bool:
    """Print one line with its verdict."""
    print(f"{'ok  ' if holds else 'FAIL'}  {text}", flush=True)
    return holds


def counting() -> list[bool]:
    """Count wide and dense graphs."""
    dense = [timed(lambda seed=seed: Orders(relation(random_graph(30, 0.2, seed))))[1] for seed in range(50)]
    free, free_s = timed(lambda: Orders(relation(random_graph(40, 0.0, 0))))
    beyond, beyond_s = timed(lambda: draw_orders(random_graph(40, 0.06, 1), count=1, seed=1))
    return [
        say(
            max(dense) < 1,
            f"50 graphs of 30 steps, density 0.2: slowest {max(dense) * 1e3:.0f} ms (under 1 s)",
        ),
        say(free_s < 0.05, f"40 free steps, {free.total:.3g} orders: {free_s * 1e3:.1f} ms (under 50 ms)"),
        say(
            beyond.sampler == "huber" and bool(beyond.note),
            f"40 steps, density 0.06: {beyond_s:.1f} s, drawn by {beyond.sampler}: {beyond.note}",
        ),
    ]


def scripts(folder: Path, count: int) -> list[bool]:
    """Draw and check scripts over all graphs; whatever is raised counts."""
    graphs = read_task_graphs(folder)
    documents = {stem: json.loads((folder / "task_graphs" / f"{stem}.json").read_text()) for stem in graphs}
    times, wrong, raised = list[float](), 0, 0
    for number in range(count):
        stem = list(graphs)[number % len(graphs)]
        missing, flips = WISHES[number // len(graphs) % len(WISHES)]
        start = time.perf_counter()
        try:
            made = draw_script(graphs[stem], ScriptRequest(missing, flips), seed=number)
        except RecipeError:
            raised += 1
            continue
        times.append(time.perf_counter() - start)
        steps = [{"node": node} for node in made.order]
        stated = {"missing": made.missing, "broken": made.broken, "steps": steps}
        wrong += bool(complaints(documents[stem], stated)) or (len(made.missing), len(made.broken)) != (
            missing,
            flips,
        )
    median = statistics.median(times) * 1e3
    tail = sorted(times)[int(len(times) * 0.99)] * 1e3
    return [
        say(wrong == raised == 0, f"{len(times)} scripts: {wrong} not as stated, {raised} exceptions"),
        say(
            median < 20,
            f"script: median {median:.2f} ms, p99 {tail:.1f} ms, slowest {max(times) * 1e3:.0f} ms",
        ),
    ]


def folder_lines(folder: Path) -> list[bool]:
    """Score a folder against its published numbers, and choose diverse orders of every graph."""
    found, took = timed(lambda: score(read_task_graphs(folder), read_annotations(folder)))
    same = json.loads(json.dumps(found)) == json.loads((folder / "expected.json").read_text())
    pairs, successions, slowest = [], [], 0.0
    for graph in read_task_graphs(folder).values():
        chosen, diverse_s = timed(lambda graph=graph: draw_diverse(graph, count=16, seed=1))
        pairs.append(chosen.coverage.pairs[0] / max(chosen.coverage.pairs[1], 1))
        successions.append(chosen.coverage.successions[0] / max(chosen.coverage.successions[1], 1))
        slowest = max(slowest, diverse_s)
    return [
        say(
            same, f"score of {found['totals']['recordings']} recordings: equal to expected.json, {took:.2f} s"
        ),
        say(
            statistics.mean(pairs) >= 0.999 and statistics.mean(successions) >= 0.991,
            f"16 diverse orders: pairs {statistics.mean(pairs):.4f}, successions {statistics.mean(successions):.4f}, "
            f"slowest {slowest * 1e3:.0f} ms",
        ),
    ]


def main() -> int:
    """Run everything; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scripts", type=int, default=10_000)
    arguments = parser.parse_args()
    lines = [*counting(), *folder_lines(arguments.folder), *scripts(arguments.folder, arguments.scripts)]
    return 0 if all(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
