"""What a verdict says reaches the cards of a report and the page of a folder; nothing looks better than it is."""

from __future__ import annotations

import pytest
from timed_recordings import HZ, Stream, make, steady

from kitchensync.storage.verify import keep_verdict, verify
from kitchensync.sync.report.overview import summary_page
from kitchensync.sync.report.page import write_report

STOP_S = 20.0


def take(path, pv_end_s: float):
    streams = {name: Stream(steady(HZ[name], 0.1, STOP_S)) for name in ("depth_ahat", "gyroscope")}
    return make(path, streams | {"pv": Stream(steady(30, 0.1, pv_end_s))}, STOP_S)


@pytest.mark.parametrize(("pv_end_s", "level"), [(6, "bad"), (15, "warn"), (20, "good")])
def test_the_first_card_takes_the_colour_of_the_coverage(tmp_path, page_of, pv_end_s, level):
    page = page_of(write_report(take(tmp_path / "take", pv_end_s)).read_text(encoding="utf-8"))
    assert page.of_class("verdict")[0]["class"] == f"verdict {level}"
    if level == "good":
        assert "everything covers 0:00 to 0:20" in page.text
    else:
        assert f"pv ends at 0:{pv_end_s:02d}: do not use it after that" in page.text
        assert f"{ {6: 29, 15: 74}[pv_end_s] }" in " ".join(words for words in page.words if "%" in words)


def recording_of(path, status="aligned"):
    return {"recording": path.name, "status": status, "pairs": [], "path": str(path)}


def test_the_page_of_a_folder_says_what_each_recording_is_good_for(tmp_path, page_of):
    paths = [take(tmp_path / name, end) for name, end in (("bad", 6), ("fair", 15), ("good", 20))]
    for path in paths:
        keep_verdict(path, verify(path))
    paths.append(take(tmp_path / "new", 20))
    page = page_of(summary_page({"recordings": [recording_of(path) for path in paths]}, tmp_path))
    cards = [card["class"] for card in page.of_class("verdict")]
    assert cards == ["verdict bad", "verdict warn", "verdict none", "verdict good", "verdict good"]
    for words in ("1 FAIL", "1 WARN", "1 PASS", "1 not checked", "4 aligned"):
        assert words in page.text
    assert "pv ends at 0:06: do not use it after that" in page.text
    assert page.badly_closed == []
