"""The demo's people at the desk: what they say of a recording comes out in all four later forms, with a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from filmed_cooking import cook_on_film

from kitchensync.virtual_kitchen.tablet import Desk

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_the_demo_s_people_say_is_exported(
    kitchen: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import later_forms

    recording, _, _ = cook_on_film(kitchen)
    with httpx.Client(base_url=kitchen.url, timeout=60, trust_env=False) as client:
        desk = Desk(client)
        desk.admin = kitchen.desk("admin").headers["x-kitchensync-login"]
        expected = later_forms.review(desk, {"take1": recording}, ["tea_and_toast"])
    kitchen.tools.films.close()
    out = tmp_path / "later-forms"
    found = later_forms.export(kitchen.data, out, expected)
    assert found, "this film has no numbers in its pictures, as the demo's have"
    assert [one for one in found if "has no number" not in one] == []
    assert "<img" in (out / "later-forms.html").read_text()
    expected.decided["take1"][0] = ["no"] * 3
    question, *_ = expected.answers["take1"]
    expected.answers["take1"][question] = {"another"}
    clip, *_ = expected.evidence["take1"]
    expected.evidence["take1"][clip] = 0.5
    found = later_forms.export(kitchen.data, tmp_path / "again", expected)
    for form in ("opinions", "promqa", "windows"):
        assert any(f"export {form}" in one for one in found), form
