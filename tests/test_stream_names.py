"""Nobody branches on a stream's name: what is special about a stream is said by its object, in one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest
from root_folders import PACKAGE, product_files

from kitchensync.sensors.hololens.catalogue import STREAMS

WHERE_THEY_ARE = PACKAGE / "sensors" / "hololens" / "streams"
ALLOWED = {
    "calibration/jobs/joint_lenses.py": ({"pv"}, "a key of the answer that is printed"),
    "dataset/data_set_cards/load_data_set.py": (
        {"pv", "gyroscope", "accelerometer"},
        "attributes of a program that goes with a data set and can ask nothing of ours",
    ),
    "sensors/hololens/profile.py": ({"microphone"}, "a value of the option extended_audio_source"),
}
"""File -> names that may stand there and why: no branch on a stream."""

PREFIXES = ("vlc_", "depth_", "extended_")
ASKS = ("startswith", "endswith", "removeprefix", "removesuffix", "has", "get", "index", "count")


def named(node: ast.AST, bound: Mapping[str, str] = MappingProxyType({})) -> str:
    """The stream (or family) that an expression names, "" for none; also by its module or a variable in `bound`."""
    if isinstance(node, ast.Name):
        return bound.get(node.id, "")
    if isinstance(node, ast.JoinedStr):
        return named(node.values[-1]) if node.values else ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        short = node.value.rpartition("/")[2]
        return short if short in STREAMS or (short and short in PREFIXES) else ""
    if isinstance(node, ast.Attribute) and node.attr == "NAME":
        return ast.unparse(node)
    if (
        isinstance(node, ast.Attribute)
        and node.attr == "name"
        and "STREAM" in ast.unparse(node.value).split(".")
    ):
        return ast.unparse(node)
    return ""


def elements(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return node.elts
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    return []


def bound_names(tree: ast.AST) -> dict[str, str]:
    """Variables that stand for one stream's name in a file: a branch on them is one on the name."""
    return {
        target.id: name
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and (name := named(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def branches(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every comparison with a stream's name, and of every table of such names."""
    tree = ast.parse(source)
    bound = bound_names(tree)
    types = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        for part in ast.walk(node.slice)
    }
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            asked = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS:
            asked = [part for argument in node.args for part in (argument, *elements(argument))]
        elif id(node) not in types:
            asked = elements(node)
        yield from ((node.lineno, name) for part in asked if (name := named(part, bound)))


@pytest.mark.parametrize(
    "source",
    [
        'short == "pv"',
        'name.endswith("/pv")',
        'name.rpartition("/")[2].startswith("vlc_")',
        'short in ("gyroscope", x)',
        'RUNS = ("x", "microphone")',
        '{"spatial_input": f}.get(short)',
        'match short:\n    case "eye_tracking":\n        pass',
        "short == pv.STREAM.name",
        "short != depth_ahat.NAME",
        'headset.has("microphone")',
        'name == f"{device}/pv"',
        'FRONT = "pv"\nif short == FRONT:\n    pass',
        'FRONT = f"{device}/pv"\nFRONT in names',
    ],
)
def test_a_branch_is_found(source: str) -> None:
    assert list(branches(source))


@pytest.mark.parametrize(
    "source", ['recording[f"{device}/gyroscope"]', "stream.is_front_camera", 'f(camera="pv")']
)
def test_what_is_no_branch_passes(source: str) -> None:
    assert not list(branches(source))


@pytest.mark.promise("The object of a stream states what is special about it")
@pytest.mark.slow
def test_no_code_branches_on_the_name_of_a_stream() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), name): line
        for path in product_files()
        if WHERE_THEY_ARE not in path.parents
        for line, name in branches(path.read_text(encoding="utf-8"))
    }
    allowed = {(file, name) for file, (names, _) in ALLOWED.items() for name in names}
    strange = [
        f"{file}:{line}: {name}" for (file, name), line in found.items() if (file, name) not in allowed
    ]
    assert not strange, "ask the stream's object instead:\n" + "\n".join(strange)
    assert allowed <= found.keys(), "no longer needed"
