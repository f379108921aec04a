"""`kitchensync graph ...` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.recipe_app.commands.graph.group import graph

TEA = Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes" / "tea_and_toast.json"


@pytest.fixture
def cyclic(tmp_path: Path) -> Path:
    path = tmp_path / "loop.json"
    steps = {"0": "START", "1": "Boil-Boil water", "2": "Pour-Pour water", "3": "END"}
    path.write_text(json.dumps({"steps": steps, "edges": [[0, 1], [1, 2], [2, 1], [2, 3]]}))
    return path


def test_orders_prints_one_object_of_valid_orders() -> None:
    result = CliRunner().invoke(main, ["graph", "orders", str(TEA), "--count", "5", "--seed", "3", "--json"])
    answer = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (answer["schema"], answer["total"], answer["sampler"]) == ("orders/1", 630, "dp")
    edges = [(edge["from"], edge["to"]) for edge in json.loads(TEA.read_text())["edges"]]
    assert len({tuple(order) for order in answer["orders"]}) == 5
    for order in answer["orders"]:
        assert sorted(order) == list(range(1, 12))
        for before, after in edges:
            assert before == 0 or after == 12 or order.index(before) < order.index(after)


def test_orders_for_people_names_steps() -> None:
    result = CliRunner().invoke(main, ["graph", "orders", str(TEA)])
    assert result.exit_code == 0
    assert "tea_and_toast.json: 630 valid orders; 1 drawn by dp" in result.stdout
    assert "[2] Boil the water in the kettle" in result.stdout


def test_fewer_orders_than_requested_are_noted_on_stderr() -> None:
    result = CliRunner().invoke(main, ["graph", "orders", str(TEA), "--count", "1000", "--json"])
    assert len(json.loads(result.stdout)["orders"]) == 630
    assert "the graph has 630 orders, 1000 were requested" in result.stderr


@pytest.mark.parametrize("command", ["orders", "check"])
def test_a_cycle_is_one_line_and_exit_1(cyclic: Path, command: str) -> None:
    result = CliRunner().invoke(main, ["graph", command, str(cyclic)])
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "loop.json" in result.stderr
    assert "1 (Boil water) -> 2 (Pour water) -> 1" in result.stderr
    assert "remove one of these edges" in result.stderr


@pytest.mark.parametrize("command", ["orders", "check"])
def test_json_is_one_object_also_on_exit_1(cyclic: Path, command: str, tmp_path: Path) -> None:
    for path, code in ((cyclic, 1), (tmp_path / "absent.json", 2)):
        result = CliRunner().invoke(main, ["graph", command, str(path), "--json"])
        assert result.exit_code == code
        assert json.loads(result.stdout)["schema"] in ("orders/1", "graph-check/1")


def test_check_prints_counts_and_findings(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["graph", "check", str(TEA), "--json"])
    answer = json.loads(result.stdout)
    assert (answer["status"], answer["topological_orders"], answer["findings"]) == ("PASS", 630, [])
    path = tmp_path / "odd.json"
    steps = {"0": "START", "1": "A-A", "2": "B-B", "3": "END"}
    path.write_text(json.dumps({"steps": steps, "edges": [[0, 1], [1, 2], [0, 2], [2, 3]]}))
    result = CliRunner().invoke(main, ["graph", "check", str(path)])
    assert result.exit_code == 0
    assert "WARN  odd.json" in result.stdout
    assert "edge [0, 2]: other edges imply it; remove the edge" in result.stdout


def test_wrong_usage_is_exit_2() -> None:
    for arguments in (["orders"], ["orders", str(TEA), "--count", "0"], ["nothing"]):
        assert CliRunner().invoke(main, ["graph", *arguments]).exit_code == 2


@pytest.mark.parametrize("name", sorted(graph.commands))
def test_every_command_has_help_with_an_example(name: str) -> None:
    assert "Example: kitchensync graph " in CliRunner().invoke(main, ["graph", name, "--help"]).stdout
