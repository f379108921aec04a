"""What `sync` kept of a recording is taken for an answer only where it is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kitchensync.sync.result.state import SCHEMA, STATE, kept_answer

ANSWER = {"recording": "take", "status": "aligned", "pairs": [{"status": "aligned", "source": "gopro/x.MP4"}]}

HARMLESS = [("recording", "elsewhere"), ("pairs", []), ("reasons", []), ("pairs", [{"status": 5}])]


def kept(recording: Path, answer: Any, written: Any = ()) -> dict[str, Any] | None:
    (recording / STATE).parent.mkdir(exist_ok=True)
    (recording / STATE).write_text(json.dumps({"schema": SCHEMA, "answer": answer, "written": list(written)}))
    return kept_answer(recording)


@pytest.mark.parametrize("value", [None, 5, [], {}, "elsewhere", [5], [{"status": 5}], {"a": {}}])
@pytest.mark.parametrize("key", ["recording", "status", "pairs", "reasons"])
def test_an_answer_of_other_types_is_none(tmp_path: Path, key: str, value: Any) -> None:
    assert kept(tmp_path, ANSWER) == ANSWER | {"path": str(tmp_path)}
    found = kept(tmp_path, ANSWER | {key: value})
    is_harmless = (key, value) in HARMLESS
    assert (found is not None) == is_harmless


def test_none_is_read_through_a_link(tmp_path: Path) -> None:
    kept(tmp_path, ANSWER)
    (tmp_path / "sync").rename(tmp_path.parent / "home")
    (tmp_path / "sync").symlink_to(tmp_path.parent / "home")
    assert kept_answer(tmp_path) is None
