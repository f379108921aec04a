"""`kitchensync graph script` and `hints`: scripts with stated errors, and proposals for errors."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kitchensync.dataset.commands.options import FILE, SEED
from kitchensync.shell.answer import Answer, answers
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.mistakes.hints import (
    graph_hints,
    hintable,
    step_hints,
    texts_after,
)
from kitchensync.task_graphs.mistakes.induced import induce as draw_errors
from kitchensync.task_graphs.mistakes.scripts import (
    GENERATOR,
    ScriptRequest,
    cautions,
    draw_script,
    script_sentences,
)
from kitchensync.task_graphs.text.safety import must_stay

if TYPE_CHECKING:
    from kitchensync.task_graphs.mistakes.hints import Hint
    from kitchensync.task_graphs.mistakes.scripts import Script
    from kitchensync.task_graphs.model import Graph


def edges_of(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> frozenset[tuple[int, int]]:
    """Read edges given as `3,7`."""
    edges = []
    for value in values:
        before, comma, after = value.partition(",")
        if not (comma and before.strip().isdecimal() and after.strip().isdecimal()):
            raise click.BadParameter(f"{value!r} is not an edge; give two step ids as 3,7")
        edges.append((int(before), int(after)))
    return frozenset(edges)


@click.command()
@FILE
@click.option(
    "--missing", type=click.IntRange(0), default=0, show_default=True, help="How many steps to leave out."
)
@click.option(
    "--flips", type=click.IntRange(0), default=0, show_default=True, help="How many edges to break."
)
@click.option(
    "--skip", type=int, multiple=True, metavar="NODE", help="Leave out this step, besides --missing."
)
@click.option(
    "--break",
    "broken",
    callback=edges_of,
    multiple=True,
    metavar="U,V",
    help="Break this edge, besides --flips.",
)
@click.option(
    "--protect", type=int, multiple=True, metavar="NODE", help="Never leave this step out nor move it."
)
@click.option("--safe", is_flag=True, help="Protect the steps that keep people safe (heat off, raw meat).")
@click.option(
    "--induce",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Give so many steps an induced error.",
)
@SEED
@answers("script/1")
def script(file: Path, seed: int, induce: int, **knobs: Any) -> Answer:
    """Draw an error script from FILE: exactly the stated steps are missing, exactly the stated edges are broken.

    A second, independent check confirms it before it is printed. The same seed gives the same script.

    \b
    Example: kitchensync graph script kitchensync/examples/recipes/tea_and_toast.json --missing 1 --flips 2 --seed 1
    """
    answer = script_answer(file, knobs, induce=induce, seed=seed)
    return Answer(
        answer, _print_script, [f"caution: {file.name}: {caution}" for caution in answer["cautions"]]
    )


def script_answer(file: Path, knobs: dict[str, Any], *, induce: int, seed: int) -> dict[str, Any]:
    """Build the `script/1` object."""
    graph = read_graph(file)
    kept_safe = {step.node for step in graph.steps if must_stay(step.text)} if knobs["safe"] else set()
    wish = ScriptRequest(
        missing=knobs["missing"],
        flips=knobs["flips"],
        skip=frozenset(knobs["skip"]),
        flip=knobs["broken"],
        protected=frozenset(knobs["protect"]) | kept_safe,
    )
    drawn = draw_script(graph, wish, seed=seed)
    errors = draw_errors(graph, drawn.order, count=induce, seed=seed, protected=wish.protected)
    return _answer(graph, wish, drawn, errors)


def _answer(graph: Graph, wish: ScriptRequest, drawn: Script, errors: dict[int, Hint]) -> dict[str, Any]:
    induced = [
        f"{graph.numbered.by_node[node].text}: {hint.wording} ({hint.category})."
        for node, hint in errors.items()
    ]
    return {
        "schema": "script/1",
        "file": graph.name,
        "missing": list(drawn.missing),
        "broken": [list(edge) for edge in drawn.broken],
        "steps": [_step(graph, node, errors.get(node)) for node in drawn.order],
        "seed": drawn.seed,
        "graph_hash": drawn.graph_hash,
        "unmet": [list(edge) for edge in drawn.unmet],
        "distance": drawn.distance,
        "reparable": drawn.reparable,
        "protected": sorted(wish.protected),
        "generator": GENERATOR,
        "sampler": drawn.sampler,
        "verified": True,
        "wording": script_sentences(graph, drawn) + induced,
        "cautions": cautions(graph, drawn),
    }


def _step(graph: Graph, node: int, hint: Hint | None) -> dict[str, Any]:
    text = graph.by_node[node].text
    if hint is None:
        return {"node": node, "text": text}
    error = {key: value for key, value in asdict(hint).items() if key not in ("node", "text")}
    return {"node": node, "text": hint.text, "original_text": text, "error": error}


def _print_script(answer: dict[str, Any]) -> None:
    missing, broken = len(answer["missing"]), len(answer["broken"])
    click.echo(f"{answer['file']}: {missing} missing, {broken} broken, checked; seed {answer['seed']}")
    repair = (
        "can all be put right afterwards" if answer["reparable"] else "cannot all be put right afterwards"
    )
    if missing or broken:
        click.echo(f"  {answer['distance']} ordered pairs come reversed; the errors {repair}")
    for sentence in answer["wording"]:
        click.echo(f"  {sentence}")
    click.echo()
    for place, step in enumerate(answer["steps"], start=1):
        click.echo(f"  {place:3}. [{step['node']}] {step['text']}")


@click.command()
@FILE
@click.option("--step", "node", type=int, help="Only this step [default: all].")
@click.option("--model/--no-model", default=False, help="Ask the model server named in the environment too.")
@answers("hints/1")
def hints(file: Path, node: int | None, model: bool) -> Answer:
    """Propose concrete errors for the steps in FILE, by category, each with the text to show.

    Rules work offline. --model also asks an OpenAI-compatible server: KITCHENSYNC_HINTS_URL (base address),
    KITCHENSYNC_HINTS_MODEL, and, if it wants a key, KITCHENSYNC_HINTS_KEY_FILE, a file that only you may read, or
    KITCHENSYNC_HINTS_KEY_ENV, the name of the variable that holds it. The step, its neighbours in the graph and the
    categories leave this computer, nothing of participants; host, bytes and hash are noted. Its answers pass the same
    check; when anything goes wrong, the rules alone answer and a note gives the reason.

    \b
    Example: kitchensync graph hints kitchensync/examples/recipes/tea_and_toast.json --step 2
    """
    answer = hints_answer(file, node, ask_model=model)
    return Answer(answer, _print_hints, [f"note: {file.name}: {note}" for note in answer["notes"]])


def hints_answer(file: Path, node: int | None, *, ask_model: bool) -> dict[str, Any]:
    """Build the `hints/1` object."""
    graph = read_graph(file)
    steps, notes = [], set[str]()
    for step in hintable(graph, node):
        proposed = step_hints(step, texts_after(graph, step.node)) + graph_hints(graph, step.node)
        if ask_model:
            from kitchensync.recipe_app.hints.hint_server import model_hints

            more, note = model_hints(graph, step)
            texts = {hint.text for hint in proposed}
            proposed += [hint for hint in more if hint.text not in texts]
            notes |= {note} - {""}
        steps.append({"node": step.node, "text": step.text, "hints": [asdict(hint) for hint in proposed]})
    return {
        "schema": "hints/1",
        "file": graph.name,
        "graph_hash": graph.content_hash,
        "steps": steps,
        "asked_utc": datetime.now(UTC).isoformat(timespec="seconds") if ask_model else None,
        "notes": sorted(notes),
    }


def _print_hints(answer: dict[str, Any]) -> None:
    for step in answer["steps"]:
        click.echo(f"[{step['node']}] {step['text']}")
        for hint in step["hints"]:
            click.echo(f"    {hint['category']:12}  {hint['text'] or hint['wording']}")
