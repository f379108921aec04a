"""`kitchensync graph convert` and `agree`: graphs from one format into another, and two annotators' graphs."""

from __future__ import annotations

from pathlib import Path
from typing import NotRequired, TypedDict

import click

from kitchensync.dataset.commands.options import FILE
from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output
from kitchensync.storage.options.outputs import write_into, write_output
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotation_files import format_annotations
from kitchensync.task_graphs.formats.assembly import equal_ticks
from kitchensync.task_graphs.formats.by_name import format_graph, kind_of, parse_graph, written_back
from kitchensync.task_graphs.formats.graph_files import (
    read_annotations,
    read_graph,
    read_task_graphs,
    read_text,
)
from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.agreement import EdgeAgreement
from kitchensync.task_graphs.text.recipe_text import accept

WRITTEN = ("captaincook4d", "graph", "dot", "assembly")

_OfGraph = TypedDict("_OfGraph", {"from": str, "graph_hash": str, "suggested": int}, total=False)


class ConvertedFile(_OfGraph):
    """The object `convert/1`; of a folder without the format that was read, hash and suggested edges."""

    file: str
    to: str
    lost: list[str]
    "Parts of a graph that the new format cannot hold."
    text: NotRequired[str]
    "Without --out."
    written: NotRequired[list[str]]


class AgreementOfGraphs(TypedDict):
    """The object `graph-agree/1`; START and END edges are left out except in `raw_with_ends`."""

    first: str
    second: str
    raw: EdgeAgreement
    "Edges as drawn."
    raw_with_ends: EdgeAgreement
    reduced: EdgeAgreement
    "Without edges that others imply."
    closure: EdgeAgreement
    "With all implied edges."
    cross: EdgeAgreement
    "Reduced edges of each graph in the closure of the other."
    order_overlap: float | None
    "Orders valid in both / orders valid in at least one; None if they cannot be counted."
    only_first: tuple[Edge, ...]
    only_second: tuple[Edge, ...]
    fastening: float | None
    "Share of steps that both mark alike as fastened with a screw."


@click.command()
@FILE
@click.option(
    "--to", "target", type=click.Choice(WRITTEN), default="graph", show_default=True, help="Format to write."
)
@output("out", "--out", help="File to write, a folder for a folder [default: standard output].")
@click.option("--toy", default="", help="Which graph, when FILE holds several (ProMQA-Assembly).")
@click.option("--accept", is_flag=True, help="Take every suggested edge as an edge.")
@answers("convert/1")
def convert(
    file: Path,
    target: str,
    out: Path | None,
    force: bool,
    toy: str,
    accept: bool,
) -> Answer[ConvertedFile]:
    """Convert the graph or recipe in FILE to another format; list what the new format cannot hold.

    Reads CaptainCook4D JSON, graph.json, ProMQA-Assembly; a recipe as plain text, Cooklang (.cook) or
    schema.org JSON-LD becomes a new graph whose edges are suggestions. When FILE is a folder of annotations, all
    its annotation files and task graphs are written into the folder --out.

    \b
    Example: kitchensync graph convert kitchensync/examples/recipes/tea_and_toast.json --to dot
    Example: kitchensync graph convert pancakes.cook --out pancakes.graph.json
    """
    if file.is_dir():
        answer = convert_folder(file, out, force=force)
    else:
        answer = convert_file(
            file,
            target,
            out=out,
            toy=toy,
            accept_all=accept,
            force=force,
        )
    lost = [f"note: {file.name}: {target} cannot hold {part}" for part in answer["lost"]]
    return Answer(answer, _print_converted, lost)


def _print_converted(answer: ConvertedFile) -> None:
    if "text" in answer:
        click.echo(answer["text"], nl=False)
    else:
        click.echo(f"wrote {', '.join(answer['written'])}")


def convert_file(
    file: Path,
    target: str,
    *,
    out: Path | None,
    toy: str,
    accept_all: bool,
    force: bool = False,
) -> ConvertedFile:
    """Build the `convert/1` object of one graph, and write the file."""
    text = read_text(file)
    kind = kind_of(file.name, text)
    graph = parse_graph(text, name=file.name, kind=kind, toy=toy)
    if accept_all:
        graph = accept(graph)
    made = (written_back(text, kind, graph) if kind == target else None) or format_graph(graph, target)
    answer: ConvertedFile = {
        "file": file.name,
        "from": kind,
        "to": target,
        "graph_hash": graph.content_hash,
        "suggested": len(graph.suggested),
        "lost": lost_in(graph, target),
    }
    if out is None:
        return {**answer, "text": made}
    write_output(out, made.encode(), force=force)
    return {**answer, "written": [str(out)]}


def lost_in(graph: Graph, target: str) -> list[str]:
    """Return the parts of a graph that a format cannot hold."""
    if target == "graph":
        return []
    facts = {
        "spans": any(step.spans for step in graph.nodes),
        "times, hazards": any(step.est_s or step.passive or step.hazards for step in graph.nodes),
        "kinds and origins of edges": any(link.kind or link.why or link.origin for link in graph.links),
        "suggested edges": bool(graph.suggested),
        "languages": bool(graph.wordings or graph.language),
    }
    return [name for name, present in facts.items() if present]


def convert_folder(folder: Path, out: Path | None, *, force: bool = False) -> ConvertedFile:
    """Write all annotation files and task graphs of a folder into another."""
    if out is None:
        raise BadGraph(folder.name, "", "a folder of annotations needs an output folder; give it with --out")
    annotations = read_annotations(folder)
    if contrary := annotations.contradictions:
        raise BadGraph(
            folder.name, contrary[0], "two files disagree on its steps; take both from one release"
        )
    made = format_annotations(annotations)
    for stem, graph in read_task_graphs(folder).items():
        path = f"task_graphs/{stem}.json"
        made[path] = written_back(read_text(folder / path), "captaincook4d", graph)
    write_into(out, {path: text.encode() for path, text in made.items()}, force=force)
    return {
        "file": folder.name,
        "to": "captaincook4d",
        "written": sorted(made),
        "lost": [],
    }


@click.command()
@click.argument("first", type=given_path(exists=True))
@click.argument("second", type=given_path(exists=True))
@answers("graph-agree/1")
def agree(first: Path, second: Path) -> Answer[AgreementOfGraphs]:
    """Show how far two annotators' graphs of one recipe, FIRST and SECOND, agree.

    Edge precision, recall and F1 as drawn, reduced and in the closure, the share of valid orders that they have in
    common, and the edges that only one of them asks for. `fastening` is the share of steps that both mark alike as
    fastened with a screw (graphs of ProMQA-Assembly).

    \b
    Example: kitchensync graph agree ann.json ben.json
    """
    return Answer(agree_answer(first, second), _print_agreement)


def _print_agreement(answer: AgreementOfGraphs) -> None:
    forms = {
        "raw": answer["raw"],
        "raw with ends": answer["raw_with_ends"],
        "reduced": answer["reduced"],
        "closure": answer["closure"],
        "cross": answer["cross"],
    }
    rows = [
        [name, *(f"{share:.3f}" for share in (edges.precision, edges.recall, edges.f1))]
        for name, edges in forms.items()
    ]
    show_table(["edges", "precision", "recall", "F1"], rows)
    overlap = answer["order_overlap"]
    click.echo(f"\nvalid orders in common: {'too many to count' if overlap is None else f'{overlap:.1%}'}")
    if answer["fastening"] is not None:
        click.echo(f"steps marked alike as fastened: {answer['fastening']:.1%}")
    for name, edges in ((answer["first"], answer["only_first"]), (answer["second"], answer["only_second"])):
        click.echo(f"only {name}: {', '.join(f'{u} -> {v}' for u, v in edges) or 'none'}")


def agree_answer(first: Path, second: Path) -> AgreementOfGraphs:
    """Build the `graph-agree/1` object."""
    from kitchensync.task_graphs.order.agreement import agree

    graphs = read_graph(first), read_graph(second)
    agreement = agree(*graphs)
    return {
        "first": first.name,
        "second": second.name,
        "raw": agreement.raw,
        "raw_with_ends": agreement.raw_with_ends,
        "reduced": agreement.reduced,
        "closure": agreement.closure,
        "cross": agreement.cross,
        "order_overlap": agreement.order_overlap,
        "only_first": agreement.only_first,
        "only_second": agreement.only_second,
        "fastening": equal_ticks(*graphs),
    }
