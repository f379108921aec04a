"""The desk closes the review of a recording: who cooked adds nothing more, and nothing made before is lost."""

from __future__ import annotations

from typing import Any

from kitchensync.recipe_app.store.app_records import new_id

CLOSED = "the review of this recording is closed; ask at the desk to open it again"


def finished(kitchen: Any) -> str:
    recording = str(kitchen.choose()["recording"])
    kitchen.post(kitchen.operation(recording, "end", {}), kitchen.operation(recording, "finish", {}))
    return recording


def error(kitchen: Any, recording: str, error_id: str, seen: int) -> dict[str, Any]:
    """Add an error on a tablet that has received the log up to `seen`; return its receipt."""
    body = {"error_id": error_id, "fields": {"node": 1, "categories": [1]}}
    (receipt,) = kitchen.post(kitchen.operation(recording, "add_error", body, seen=seen))
    return dict(receipt)


def close(kitchen: Any, desk: Any, recording: str, closed: bool) -> int:
    sent = {"op_id": new_id(kitchen.utc_ns), "kind": "close_review", "body": {"closed": closed}, "seen": 0}
    answer = desk.post(f"/api/v1/desk/recordings/{recording}/corrections", json=sent)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["n"])


def test_a_review_takes_errors_after_its_end_until_the_desk_closes_it(kitchen: Any) -> None:
    recording, desk = finished(kitchen), kitchen.desk("researcher")
    first, second, third, fourth = (new_id(number) for number in range(4))
    assert "review_closed" not in kitchen.tools.records.state(recording)
    assert "error" not in error(kitchen, recording, first, seen=3)
    n = close(kitchen, desk, recording, True)
    assert error(kitchen, recording, second, seen=n)["error"] == CLOSED
    undo = kitchen.operation(recording, "undo", {"undoes": [new_id(9)]}, seen=n)
    assert kitchen.post(undo)[0]["error"] == CLOSED
    assert "error" not in error(kitchen, recording, third, seen=n - 1), (
        "made before the tablet had heard of it"
    )
    state = kitchen.tools.records.state(recording)
    assert (state["review_closed"], sorted(state["errors"])) == (True, sorted((first, third)))
    n = close(kitchen, desk, recording, False)
    assert "error" not in error(kitchen, recording, fourth, seen=n)
    assert kitchen.tools.records.state(recording)["review_closed"] is False
    close(kitchen, desk, recording, True)
    assert "error" not in kitchen.post(kitchen.operation(recording, "withdraw", {}, seen=10**6))[0]


def test_only_the_desk_closes_a_review(kitchen: Any) -> None:
    recording = finished(kitchen)
    (receipt,) = kitchen.post(kitchen.operation(recording, "close_review", {"closed": True}))
    assert "kind" in receipt["error"]
    desk = kitchen.desk("researcher")
    sent = {"op_id": new_id(9), "kind": "close_review", "body": {"closed": "later"}, "seen": 0}
    answer = desk.post(f"/api/v1/desk/recordings/{recording}/corrections", json=sent)
    assert (answer.status_code, "close_review: closed" in answer.json()["error"]) == (422, True)
    sent["body"] = {"closed": True}
    annotator = kitchen.desk("annotator")
    answer = annotator.post(f"/api/v1/desk/recordings/{recording}/corrections", json=sent)
    assert answer.status_code in (401, 403)
    assert "review_closed" not in kitchen.tools.records.state(recording)
