"""`kitchensync graph script` and `hints`: scripts with stated errors, and proposals for errors."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NotRequired, TypedDict

import click

from kitchensync.dataset.commands.options import FILE, SEED
from kitchensync.recipe_app.hints.hint_server import model_hints
from kitchensync.shell.answer import Answer, answers
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.mistakes.hints import (
    Hint,
    graph_hints,
    hintable,
    step_hints,
    texts_after,
)
from kitchensync.task_graphs.mistakes.induced import induce as draw_errors
from kitchensync.task_graphs.mistakes.scripts import (
    GENERATOR,
    Script,
    ScriptRequest,
    cautions,
    draw_script,
    script_sentences,
)
from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.text.safety import must_stay


class InducedError(TypedDict):
    """An error that a step is to be done with."""

    category: str
    subtype: str
    expected: str
    actual: str
    wording: str
    origin: str
    before: int | None
    "Node before which the step is done, for an error of order."


class ScriptStep(TypedDict):
    """A step of an error script."""

    node: int
    text: str
    original_text: NotRequired[str]
    error: NotRequired[InducedError]


class ErrorScript(TypedDict):
    """The object `script/1`."""

    file: str
    missing: list[int]
    broken: list[Edge]
    steps: list[ScriptStep]
    seed: int
    graph_hash: str
    unmet: list[Edge]
    "Edges with a missing first step and a second step that is done."
    distance: int
    "Ordered pairs of steps in the wrong order."
    reparable: bool
    protected: list[int]
    "Nodes that are neither left out nor moved."
    generator: str
    sampler: str
    verified: bool
    wording: list[str]
    "A sentence for each error."
    cautions: list[str]


class StepHints(TypedDict):
    """Proposed errors of a step."""

    node: int
    text: str
    hints: list[Hint]


class ProposedErrors(TypedDict):
    """The object `hints/1`."""

    file: str
    graph_hash: str
    steps: list[StepHints]
    asked_utc: str | None
    "When a model was asked."
    notes: list[str]


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
def script(
    file: Path, missing: int, flips: int, skip: tuple[int, ...], broken: frozenset[Edge],
    protect: tuple[int, ...], safe: bool, induce: int, seed: int,
) -> Answer[ErrorScript]:  # fmt: skip
    """Draw an error script from FILE: exactly the stated steps are missing, exactly the stated edges are broken.

    A second, independent check confirms it before it is printed. The same seed gives the same script.

    \b
    Example: kitchensync graph script kitchensync/examples/recipes/tea_and_toast.json --missing 1 --flips 2 --seed 1
    """
    graph = read_graph(file)
    kept_safe = {step.node for step in graph.steps if must_stay(step.text)} if safe else set()
    wish = ScriptRequest(
        missing=missing,
        flips=flips,
        skip=frozenset(skip),
        flip=broken,
        protected=frozenset(protect) | kept_safe,
    )
    drawn = draw_script(graph, wish, seed=seed)
    errors = draw_errors(graph, drawn.order, count=induce, seed=seed, protected=wish.protected)
    answer = _answer(graph, wish, drawn, errors)
    return Answer(
        answer, _print_script, [f"caution: {file.name}: {caution}" for caution in answer["cautions"]]
    )


def _answer(graph: Graph, wish: ScriptRequest, drawn: Script, errors: dict[int, Hint]) -> ErrorScript:
    induced = [
        f"{graph.numbered.by_node[node].text}: {hint.wording} ({hint.category})."
        for node, hint in errors.items()
    ]
    return {
        "file": graph.name,
        "missing": list(drawn.missing),
        "broken": list(drawn.broken),
        "steps": [_step(graph, node, errors.get(node)) for node in drawn.order],
        "seed": drawn.seed,
        "graph_hash": drawn.graph_hash,
        "unmet": list(drawn.unmet),
        "distance": drawn.distance,
        "reparable": drawn.reparable,
        "protected": sorted(wish.protected),
        "generator": GENERATOR,
        "sampler": drawn.sampler,
        "verified": True,
        "wording": script_sentences(graph, drawn) + induced,
        "cautions": cautions(graph, drawn),
    }


def _step(graph: Graph, node: int, hint: Hint | None) -> ScriptStep:
    text = graph.by_node[node].text
    if hint is None:
        return {"node": node, "text": text}
    error: InducedError = {
        "category": hint.category,
        "subtype": hint.subtype,
        "expected": hint.expected,
        "actual": hint.actual,
        "wording": hint.wording,
        "origin": hint.origin,
        "before": hint.before,
    }
    return {"node": node, "text": hint.text, "original_text": text, "error": error}


def _print_script(answer: ErrorScript) -> None:
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
def hints(file: Path, node: int | None, model: bool) -> Answer[ProposedErrors]:
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


def hints_answer(file: Path, node: int | None, *, ask_model: bool) -> ProposedErrors:
    """Build the `hints/1` object."""
    graph = read_graph(file)
    steps, notes = list[StepHints](), set[str]()
    for step in hintable(graph, node):
        proposed = step_hints(step, texts_after(graph, step.node)) + graph_hints(graph, step.node)
        if ask_model:
            more, note = model_hints(graph, step)
            texts = {hint.text for hint in proposed}
            proposed += [hint for hint in more if hint.text not in texts]
            notes |= {note} - {""}
        steps.append({"node": step.node, "text": step.text, "hints": proposed})
    return {
        "file": graph.name,
        "graph_hash": graph.content_hash,
        "steps": steps,
        "asked_utc": datetime.now(UTC).isoformat(timespec="seconds") if ask_model else None,
        "notes": sorted(notes),
    }


def _print_hints(answer: ProposedErrors) -> None:
    for step in answer["steps"]:
        click.echo(f"[{step['node']}] {step['text']}")
        for hint in step["hints"]:
            click.echo(f"    {hint.category:12}  {hint.text or hint.wording}")
