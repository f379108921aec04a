"""Files of judged errors: which moments of an error are read and which are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kitchensync.storage.annotation_forms import misfit


def file_of(moments: Any, **more: Any) -> str:
    """Return a file of one error in a video of 450 frames."""
    error = {"error_id": "e1", "judged": {"verdict": "happened"}, "moments": moments}
    return json.dumps({"fps": "30000/1001", "frames": 450, "errors": [error], **more})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"errors": [{"error_id": "e1", "judged": {}}]}),
        file_of({"at": 1, "end": 450, "point_of_no_return": None, "noticed_at": 1, "corrected_at": 450}),
        file_of({"at": None, "end": 3}),
        file_of({}),
    ],
)
def test_moments_in_the_video_are_read(text: str) -> None:
    assert misfit(text, "judged-errors/1") == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (file_of({"begin": 5}), "Input should be 'at'"),
        (file_of({"at": 0}), "greater than or equal to 1"),
        (file_of({"at": True}), "valid integer"),
        (file_of({"at": 451}), "not in the video"),
        (file_of({"at": 5, "end": 4}), "before the begin"),
        (file_of({"at": None}, frames=None), "fps without frames"),
        (file_of({"at": 5}, fps=None, frames=None), "not in the video"),
        (file_of({"at": None}, fps=None, frames=None), "not in the video"),
        (file_of({}, fps="30/0"), "not a rate"),
        (file_of([]), "should be an object"),
    ],
)
def test_other_moments_are_refused(text: str, reason: str) -> None:
    assert reason in misfit(text, "judged-errors/1")
