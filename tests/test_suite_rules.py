"""What a test may not do, so that no result depends on how busy the computer is: held in the text of all tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SLEEPS = ("time.sleep", "page.wait_for_timeout", "asyncio.sleep")
WAITS = ("wait", "communicate", "join", "result", "until")
LEAST_S = 60
"A wait with a limit ends when what it waits for has come; the limit is for what never comes."
FAULT_AT = re.compile(r"^[a-z_]+(:[\w/]*)?@\d+(\.\d+)?([+-]\d+(\.\d+)?)?$")
"A fault at a second of the world; where a recorder takes part it is `@armed+`, for it may begin late."

NOTHING_HAPPENS = "shows that nothing happens: a busy computer makes it weaker, never red"
FOR_A_WHILE = "lets a device or a person go on for a while: how long is not judged"
SLOW_ON_PURPOSE = "plays somebody who is slow"
BOUNCE = "a bounce comes at its time"
EXCEPTIONS = {
    "recipe_app/test_connections.py": {
        "play": SLOW_ON_PURPOSE,
    },
    "recipe_app/test_errors_in_a_browser.py": {
        "test_an_error_is_of_the_step_that_was_touched_and_the_review_changes_all_of_it": FOR_A_WHILE,
    },
    "recipe_app/test_tablet_in_a_browser.py": {
        "test_the_whole_way_through_four_stages": FOR_A_WHILE,
        "test_a_late_answer_that_nobody_is_signed_in_is_heeded": NOTHING_HAPPENS,
        "test_an_answer_of_before_the_sign_in_undoes_no_sign_in": NOTHING_HAPPENS,
    },
    "recipe_app/test_tablet_looks_in_a_browser.py": {
        "test_a_paragraph_looks_the_same_at_the_first_and_at_the_last_step": NOTHING_HAPPENS,
    },
    "recipe_app/test_tablet_touches_in_a_browser.py": {
        "test_a_privacy_pause_a_wiped_screen_and_a_withdrawal": NOTHING_HAPPENS,
        "test_drops_on_the_glass_do_nothing_and_do_not_stop_a_finger": NOTHING_HAPPENS,
        "test_a_bounce_is_no_second_touch_though_the_button_was_drawn_anew": BOUNCE,
        "test_a_bounce_touches_nothing_of_the_sheet_that_opened_under_the_finger": BOUNCE,
        "test_what_is_drawn_meanwhile_does_not_take_a_button_from_under_the_finger": FOR_A_WHILE,
    },
    "recipe_app/test_timers_in_a_browser.py": {
        "test_a_timer_that_ends_turns_the_whole_screen_and_can_go_on": FOR_A_WHILE,
    },
    "storage/test_batch.py": {
        "worked": "would be interrupted at once",
    },
    "support/commands/matrix.py": {
        "interrupted": FOR_A_WHILE,
    },
    "support/servers/model_server.py": {
        "do_POST": SLOW_ON_PURPOSE,
    },
    "sync/test_workers_elsewhere.py": {
        "cluster_pause": SLOW_ON_PURPOSE,
    },
    "system/test_rebuilt.py": {
        "take": "any gap does, wherever it is",
    },
    "system/test_tablet_steers.py": {
        "test_both_devices_die_and_the_operator_ends_it_and_begins_again": FOR_A_WHILE,
    },
    "system/test_true_causes.py": {
        "test_a_gap_is_named_for_who_was_held_up": "holds a process up for longer than its limits",
    },
    "system/test_withdrawal_of_what_was_made.py": {
        "filmed": FOR_A_WHILE,
        "test_the_camera_s_card_is_erased_when_it_answers": FOR_A_WHILE,
    },
}
"""File -> function -> why it may do what the rules forbid."""


def broken_rules(path: Path) -> Iterator[str]:
    """Find what a file of tests may not do: `function: what`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (f"{function.name}: {what}" for what in _in(function, in_loop=False))
            if path.is_relative_to(TESTS / "system"):
                yield from (f"{function.name}: {what}" for what in _faults(function))


def _faults(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and FAULT_AT.match(node.value):
            yield f"a fault at a second of the world, {node.value}"


def _in(node: ast.AST, *, in_loop: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.Call):
            yield from _of_call(child, in_loop)
        yield from _in(child, in_loop=in_loop or isinstance(child, ast.While | ast.For))


def _of_call(call: ast.Call, in_loop: bool) -> Iterator[str]:
    name = ast.unparse(call.func)
    if name in SLEEPS and not in_loop:
        yield f"{name} beside an assertion"
    limit = next((word.value for word in call.keywords if word.arg in ("timeout", "limit_s")), None)
    short = isinstance(limit, ast.Constant) and isinstance(limit.value, int | float) and limit.value < LEAST_S
    if short and name.rpartition(".")[2] in WAITS:
        yield f"{name} waits for less than a minute"
    for word in call.keywords:
        if word.arg == "port" and isinstance(word.value, ast.Constant) and word.value.value not in (0, None):
            yield f"{name} with a fixed port"


def test_no_result_depends_on_the_load() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        file = str(path.relative_to(TESTS))
        excepted = EXCEPTIONS.get(file, {})
        found += [f"{file}, {one}" for one in broken_rules(path) if one.partition(":")[0] not in excepted]
    assert found == []


def test_every_exception_is_still_needed() -> None:
    for file, functions in EXCEPTIONS.items():
        assert set(functions) <= {one.partition(":")[0] for one in broken_rules(TESTS / file)}, file
