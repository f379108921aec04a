"""Each promise of README is shown by one to three slow tests, which `make test` runs beside the quick ones."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

PROMISES = (
    "A headset and a camera are recorded whole and aligned with the truth",
    "What we stop is a prefix of what was sent, by Ctrl-C and from another terminal",
    "Nothing that the queue had is lost, whatever process is killed",
    "Two headsets and a sensor of your own become streams",
    "A recording is read from Python, every stream on one clock",
    "What is missing is named, with its cause",
    "A camera's film comes home, or the camera's trouble is named",
    "The wire is read as the headset sends it",
    "Everything is on one clock, with a bound that holds",
    "One page to judge a recording by",
    "Lens and mount are found within their stated error, and depth matches the room",
    "Copies are proven before anything is freed, and a move goes on after a kill",
    "Many recordings are worked through, and what ended is not done twice",
    "Nothing leaves without consent; pauses and withdrawals reach every file",
    "Every touch is in the log once, on the capture clock, from both databases",
    "Strangers on the network get a refusal",
    "A cook with wet hands is led through a recipe on the glass",
    "An operator, a researcher and an annotator find their work at the desk",
    "Task graphs, orders and error scripts are what the published definitions say",
    "A data set is released, checked, and equal to the published one",
    "Commands and documents say the same, and a mistake is one line",
    "The object of a stream states what is special about it",
    "Live pictures come from the queue, and nothing of a privacy pause",
    "What was recorded without a tablet is put into the list",
    "A recording from elsewhere changes nothing outside of it, is obeyed by nothing, and hangs nothing",
)
MOST = 3
"""Tests of a promise: they are those that show it where the user meets it, and `make test` stays short."""


def test_each_promise_has_few_tests() -> None:
    found = Counter[str]()
    texts = (path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    for text in (one for one in texts if "mark.promise" in one):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise":
                found[ast.literal_eval(node.args[0])] += 1
            if isinstance(node, ast.FunctionDef):
                marks = {ast.unparse(one).partition("(")[0] for one in node.decorator_list}
                assert not {"pytest.mark.promise", "pytest.mark.parametrize"} <= marks, "mark one parameter"
    assert found.keys() == set(PROMISES)
    assert max(found.values()) <= MOST, found
