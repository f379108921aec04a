"""The metrics for Prometheus: format, values and access."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from typing import Any

import pytest

from kitchensync.capture.monitor.metrics import METRICS, MetricsServer, metrics_text
from kitchensync.capture.monitor.monitor import CpuMeter, process_use

SAMPLE = re.compile(
    r'(?P<name>[a-z_]+)\{(?P<labels>[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*)\} (?P<value>\S+)'
)
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
STREAM = {
    "rate_hz": 29.9,
    "nominal_hz": 30.0,
    "silent_s": 0.1,
    "received": 1234567890123,
    "waiting": 12,
    "connections": 2,
    "losses": 0,
}
FINDING = {
    "rule": "camera_problem",
    "severity": "alarm",
    "subject": 'gopro "left"\n\\',
    "operator": "",
    "do": "",
}
TAKE: dict[str, Any] = {
    "recording": "take-1",
    "health": "problem",
    "news_s": 0.2,
    "findings": [FINDING],
    "restarts": 1,
    "streams": {"hololens/pv": STREAM},
    "cameras": {"gopro": {"battery_percent": 55, "minutes_left": None}},
    "disk": {"free_bytes": 10**12, "minutes_left": None},
    "stores": [{"target": "/mnt/nas", "files": 12, "files_done": 5, "bytes": 9000, "bytes_safe": 2500}],
    "processes": {"recorder": {"cpu_share": 0.12, "memory_bytes": 82_000_000, "probes": 7}},
}
UNKNOWN = {"recording": "take-2", "health": "unknown", "news_s": None, "findings": []}


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Parse the text format by its published grammar; other lines fail."""
    metrics, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kinds[name] = line.split()
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match["name"] in kinds, "its type comes before it"
            labels = {
                key: re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value)
                for key, value in LABEL.findall(match["labels"])
            }
            metrics[match["name"], frozenset(labels.items())] = float(match["value"])
    assert text.endswith("\n")
    assert set(kinds.values()) <= {"gauge", "counter"}
    return metrics


def value(metrics: dict[Any, float], name: str, **labels: str) -> float | None:
    return metrics.get((f"kitchensync_{name}", frozenset(labels.items())))


def test_every_metric_can_be_read_and_unknown_values_are_absent():
    metrics = samples(metrics_text([TAKE, UNKNOWN]))
    assert value(metrics, "healthy", recording="take-1") == 0
    assert value(metrics, "stream_received_total", recording="take-1", stream="hololens/pv") == 1234567890123
    assert value(metrics, "camera_battery_percent", recording="take-1", camera="gopro") == 55
    assert value(metrics, "camera_minutes_left", recording="take-1", camera="gopro") is None
    assert value(metrics, "disk_minutes_left", recording="take-1") is None
    assert value(metrics, "process_memory_bytes", recording="take-1", process="recorder") == 82_000_000
    assert value(metrics, "store_files_left", recording="take-1", store="/mnt/nas") == 7
    assert value(metrics, "store_bytes_left", recording="take-1", store="/mnt/nas") == 6500
    assert value(metrics, "clock_probes_total", recording="take-1", process="recorder") == 7
    finding = {key: FINDING[key] for key in ("rule", "severity", "subject")}
    assert value(metrics, "finding", recording="take-1", **finding) == 1
    assert {labels for _, labels in metrics if ("recording", "take-2") in labels} == {
        frozenset({("recording", "take-2")})
    }
    names = {name.removeprefix("kitchensync_") for name, _ in metrics}
    assert METRICS.keys() - names == {"camera_minutes_left", "disk_minutes_left"}


def test_a_healthy_recording_has_value_1():
    assert value(samples(metrics_text([TAKE | {"health": "recording"}])), "healthy", recording="take-1") == 1


@pytest.fixture
def server():
    """Serve the metrics of one recording."""
    server = MetricsServer(0, lambda: metrics_text([TAKE]))
    yield server
    server.close()


def fetch(port: int, path: str, host: str) -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def test_metrics_are_served_to_this_computer_only(server):
    status, text = fetch(server.port, "/metrics", f"127.0.0.1:{server.port}")
    assert (status, samples(text)) == (200, samples(metrics_text([TAKE])))
    assert fetch(server.port, "/", f"localhost:{server.port}")[0] == 404
    assert fetch(server.port, "/metrics", f"kitchen.example:{server.port}")[0] == 403


def test_process_use_is_read_from_the_system(tmp_path):
    stat = ["S", *["0"] * 10, "300", "200", *["0"] * 5, "0", "1000", "0", "25"]
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(f"7 (a ) name) {' '.join(stat)}\n")
    (tmp_path / "uptime").write_text("110.00 5.00\n")
    used = process_use(7, tmp_path)
    assert used is not None
    assert (used.cpu_s, used.age_s) == (5.0, 100.0)  # 100 ticks a second
    assert used.memory_bytes % 25 == 0
    assert used.memory_bytes > 0
    assert process_use(8, tmp_path) is None


def test_cpu_share_is_measured_since_the_previous_call(monkeypatch):
    looks = iter([(2.0, 10.0), (3.0, 12.0), None])

    def look(_pid: int) -> Any:
        from kitchensync.capture.monitor.monitor import ProcessUse

        use = next(looks)
        return use and ProcessUse(*use, memory_bytes=5)

    monkeypatch.setattr("kitchensync.capture.monitor.monitor.process_use", look)
    meter = CpuMeter()
    assert [meter.use_of(7)["cpu_share"] for _ in range(3)] == [0.2, 0.5, None]
