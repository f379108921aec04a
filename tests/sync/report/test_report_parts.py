"""The small parts of a report: numbers in words, drawings, histograms, gaps on the axis, alignment plots."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.storage.timeline.alignment import Alignment, AlignmentErrors
from kitchensync.storage.timeline.alignment_evidence import GyroEvidence, GyroFit, GyroSearch
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.report.alignment import lag_figure, overlay_figures, read_alignments, score_figures
from kitchensync.sync.report.facts import devices
from kitchensync.sync.report.numbers import numbers
from kitchensync.sync.report.plots import Axis, Plot, nice_ticks, thinned, tick_text
from kitchensync.sync.report.rates import histogram
from kitchensync.sync.report.render import clock, count_of, length, local_time, size, whole_clock
from kitchensync.sync.report.streams import ShownTime
from kitchensync.sync.report.timeline import ShownSpan


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00.0"),
        (59.96, "1:00.0"),
        (61.24, "1:01.2"),
        (3661, "1:01:01.0"),
        (-2.5, "-0:02.5"),
        (-0.01, "0:00.0"),
    ],
)
def test_seconds_as_a_clock(seconds, text):
    assert clock(seconds) == text


def test_numbers_in_words():
    assert [size(n) for n in (0, 999, 1_000, 3_050_000, 12_000_000_000)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "3.0 MB",
        "12.0 GB",
    ]
    assert [length(s) for s in (0.05, 4.06, 130, 7300)] == ["50 ms", "4.1 s", "2 min 10 s", "2 h 1 min"]
    assert (count_of(1, "gap"), count_of(2, "gap")) == ("1 gap", "2 gaps")
    assert whole_clock(600) == "10:00"


def test_a_moment_is_shown_as_the_wall_clock_showed_it():
    utc_ns = 1_750_000_000 * 10**9  # 2025-06-15 15:06:40 UTC
    assert local_time(utc_ns, {"iana": "Asia/Kolkata", "utc_offset_s": 19800}) == (
        "2025-06-15 20:36:40 (Asia/Kolkata, UTC+05:30)"
    )
    assert local_time(utc_ns, {"iana": None, "utc_offset_s": -12600}) == "2025-06-15 11:36:40 (UTC-03:30)"
    assert local_time(utc_ns, {}) == "2025-06-15 15:06:40 (UTC+00:00)"


def test_drawings_escape_all_they_are_given():
    plot = Plot(Axis(0, 1, "<b>&"), Axis(0, 1, "1"), '"><script>')
    drawing = plot.figure("").drawing
    assert 'aria-label="&#34;&gt;&lt;script&gt;"' in drawing
    assert ">&lt;b&gt;&amp;</text>" in drawing
    assert str(drawing).count("&lt;b&gt;") == 1


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_inside_few_and_tell_themselves_apart(low, width):
    width = max(width, 1e-6 * abs(low))
    ticks = nice_ticks(low, low + width)
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in ticks)
    assert len(ticks) <= 7
    if width > 1e-4 * abs(low) and width > 1e-4:
        assert len(ticks) >= 2
        assert len({tick_text(tick, ticks) for tick in ticks}) == len(ticks)


def test_a_thinned_line_keeps_its_peak():
    y = np.zeros(100_000)
    y[54_321] = 7.0
    x, thin = thinned(np.arange(100_000.0), y)
    assert len(x) < 1000
    assert thin.max() == 7.0
    assert x[np.argmax(thin)] == 54_321


def test_a_line_breaks_where_nothing_is_known():
    plot = Plot(Axis(0, 4, "s"), Axis(0, 1, "1"), "t")
    plot.line(np.arange(5.0), np.array([0, 1, np.nan, 1, 0]), "line")
    assert len(plot.shapes) == 2
    assert "s</text>" in plot.figure("").drawing


def test_a_histogram_shows_a_single_long_interval():
    steps = np.full(1000, 333_333, np.int64)
    steps[500] = 333_333 * 20
    drawing = str(histogram("pv", steps))
    assert drawing.count('class="count"') == 1
    assert drawing.count('class="over"') == 1
    assert "most 667 ms; 1 beyond" in drawing
    assert str(histogram("pv", steps[:3])) == ""


@pytest.mark.parametrize("whole_s", [0.5, 3, 61, 1200, 10_000, 400_000])
def test_the_axis_has_some_round_times(whole_s):
    span = ShownSpan(ShownTime(None, 0), -0.2, whole_s)
    ticks = span.ticks()
    assert 1 <= len(ticks) <= 8
    assert all(-0.2 <= tick <= whole_s for tick in ticks)


def test_the_peak_is_marked_at_the_lag_that_won():
    lag_s = np.arange(-500, 500) / 50.0
    score = 0.1 + 0.9 * np.exp(-((lag_s - 3.0) ** 2) / 0.01)
    score[:10] = np.nan
    whole, near = score_figures(lag_s, score, Alignment(thresholds={"rho_least": 0.25}))
    assert "3.00 s: 1.00" in whole.drawing
    assert "needed at least" in near.caption
    assert score_figures(lag_s, np.full(1000, np.nan), Alignment()) == []


def windows():
    t_s = np.arange(2.0, 58.0, 4.0)
    kept = np.ones(len(t_s), bool)
    kept[3] = False
    tau_s = 5.0 + 30e-6 * t_s
    tau_s[3] += 0.4
    return {
        "window_t_s": t_s,
        "window_tau_s": tau_s,
        "window_sigma_s": np.where(kept, 1e-4, np.inf),
        "window_kept": kept,
        "line_t_s": np.array([0.0, 60.0]),
        "line_tau_s": 5.0 + 30e-6 * np.array([0.0, 60.0]),
    }


def test_windows_lie_on_the_line_and_wild_ones_do_not_squeeze_it():
    figure = lag_figure(windows(), Alignment(gyro=GyroEvidence(GyroSearch(), fit=GyroFit(drift_ppm=30.0))))
    assert figure.drawing.count("<circle") == 13
    assert figure.drawing.count('class="bar"') == 13
    assert "13 windows" in figure.caption
    assert "slope 30.0 ppm" in figure.caption


def test_arrays_of_wrong_shape_draw_nothing():
    t_s = np.arange(10.0)
    arrays = {"overlay_t_s": t_s, "overlay_headset_rad_per_s": np.zeros((10, 3))}
    assert overlay_figures(arrays | {"overlay_camera_rad_per_s": np.zeros((9, 3))}) == []
    assert len(overlay_figures(arrays | {"overlay_camera_rad_per_s": np.zeros((10, 3))})) == 3


def test_alignments_are_read_with_their_plots_and_bad_ones_are_named(tmp_path):
    folder = tmp_path / "sync" / "alignment"
    folder.mkdir(parents=True)
    body = {
        "schema": "alignment/1",
        "status": "aligned",
        "epoch_hl2_qpc": 1000,
        "map": {"kind": "poly", "t_mid_s": 30.0, "coef": [5.0, 3e-5], "pieces": None, "valid_s": [0.0, 60.0]},
        "sigma": {
            "bound95_ms": [0.2, 0.1, 0.2],
            "systematic_ms": [{"part": "gyro_to_frame", "value": 0, "sigma": 15, "source": "default"}],
            "total_ms": 15.0,
        },
        "evidence": {
            "gyro": {"drift_ppm": 30.0, "drift_sigma_ppm": 2.0, "rho": 0.9, "windows": 14, "windows_ok": 13}
        },
    }
    (folder / "gopro.json").write_text(json.dumps(body))
    np.savez(folder / "gopro.plot.npz", **windows())
    (folder / "left.json").write_text("{")
    (folder / "right.json").write_text(json.dumps(body | {"status": "not_aligned"}))
    (folder / "right.plot.npz").write_bytes(b"nothing")
    gopro, left, right = read_alignments(tmp_path)
    assert len(gopro.figures) == 2
    assert dict(numbers(gopro.alignment))["Camera's first picture"] == "4.9991 s after tick 1000 of hololens"
    assert dict(numbers(gopro.alignment))["Clock drift, headset against camera"] == "30.0 ± 2.0 ppm"
    assert (
        dict(numbers(gopro.alignment))["Systematic: the camera's pictures against its gyroscope"]
        == "0 ± 15 ms (assumed)"
    )
    assert left.alignment.status == "unreadable"
    assert "left.json" in left.alignment.problem
    assert right.alignment.clock_map is None
    assert not any("bound" in name or "drift" in name for name, _ in numbers(right.alignment))
    assert "cannot be read" in right.figures[0].caption


def test_a_bound_that_nobody_knows_at_one_end_is_named():
    clock_map = ClockMap(0, 0.0, (1.0, 0.0), (0.0, 60.0))
    alignment = Alignment(clock_map=clock_map, errors=AlignmentErrors(bound95_ms=(0.2, 0.1, None)))
    assert dict(numbers(alignment))["Clock to clock, 95 % bound"] == (
        "0.20 / 0.10 / not known ms at start / middle / end"
    )


def test_what_a_device_had_to_say_stands_in_words_and_nothing_where_it_had_nothing():
    cameras = {"left": {"kind": "gopro", "model": "HERO12 Black", "notes": []}, "right": {"kind": "gopro"}}
    cameras["right"]["notes"] = ["GPS stayed on", "the clock was set"]
    left, right = devices({"devices": cameras})
    assert left["words"] == "model HERO12 Black"
    assert right["words"] == "notes GPS stayed on; the clock was set"
