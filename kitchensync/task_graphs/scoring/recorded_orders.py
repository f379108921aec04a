"""Read recorded orders from a file or from a folder of annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kitchensync.task_graphs.formats.graph_files import read_annotations, read_text
from kitchensync.task_graphs.formats.strict_json import Reader, load
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.scoring.score import observations


def read_recorded(path: Path, graph: Graph) -> list[tuple[int, ...]]:
    """Read orders as node ids: an orders/1 object, a list of orders, or the recordings of an annotation folder.

    From a folder it reads the recordings of the recipe with the graph's file stem. Raises BadGraph.
    """
    if path.is_dir():
        _, recorded = observations(graph, graph.name.removesuffix(".json"), read_annotations(path))
        return [tuple(observation.judgement.first) for observation in recorded]
    read = Reader(path.name)
    document: Any = load(read_text(path), path.name)
    orders = document.get("orders") if isinstance(document, dict) else document
    node_orders = []
    for number, order in enumerate(read.array(orders, "orders")):
        place = f"orders[{number}]"
        nodes = tuple(read.whole(node, place) for node in read.array(order, place))
        if unknown := sorted(set(nodes) - {step.node for step in graph.steps}):
            raise read.fail(
                place, f"there is no step {unknown[0]} in {graph.name}; is it of another version?"
            )
        node_orders.append(nodes)
    return node_orders
