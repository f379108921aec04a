"""Metrics of the running recordings for a Prometheus server, over HTTP on loopback only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from kitchensync.capture.monitor.monitor import RecordingView

LOOPBACK = "127.0.0.1"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

Sample = tuple[str, dict[str, str], float]

METRICS: dict[str, tuple[str, str]] = {
    "healthy": (
        "gauge",
        "1 while it records without an alarm, else 0.",
    ),
    "news_age_seconds": ("gauge", "Seconds since the recorder's last report."),
    "finding": ("gauge", "1 for each rule that holds, by rule, severity and subject."),
    "stream_rate_hertz": ("gauge", "Packets a second over the last seconds."),
    "stream_nominal_hertz": ("gauge", "Nominal packets a second; 0 if not known."),
    "stream_silence_seconds": ("gauge", "Seconds since the last packet of a stream."),
    "stream_received_total": ("counter", "Packets received."),
    "stream_waiting_packets": ("gauge", "Packets that are not sealed on disk yet."),
    "stream_connections_total": ("counter", "Connections opened to the device."),
    "stream_lost_total": ("counter", "Packets that found no room in the queue."),
    "camera_battery_percent": ("gauge", "Battery of a camera."),
    "camera_minutes_left": ("gauge", "Minutes of video that fit on a camera's card."),
    "disk_free_bytes": ("gauge", "Free bytes on the disk of the recording."),
    "disk_minutes_left": ("gauge", "Minutes until the disk is full; absent while its use does not grow."),
    "store_files_left": ("gauge", "Files of the recording that a store does not hold yet."),
    "store_bytes_left": ("gauge", "Bytes of the recording that a store does not hold yet."),
    "clock_probes_total": ("counter", "Clock probes that a device answered."),
    "process_cpu_share": ("gauge", "Share of a core that a process uses."),
    "process_memory_bytes": ("gauge", "Resident memory of a process."),
    "restarts_total": ("counter", "Processes that died and were restarted."),
}
"""Type and help text by name; all names get the prefix `kitchensync_`."""

_STREAM = {
    "stream_rate_hertz": "rate_hz",
    "stream_nominal_hertz": "nominal_hz",
    "stream_silence_seconds": "silent_s",
    "stream_received_total": "received",
    "stream_waiting_packets": "waiting",
    "stream_connections_total": "connections",
    "stream_lost_total": "losses",
}


def metrics_text(recordings: list[RecordingView]) -> str:
    """Return the recordings of `RecordingMonitor.views` as Prometheus text format 0.0.4."""
    samples = [sample for recording in recordings for sample in _samples(recording)]
    lines = []
    for name, (kind, help_text) in METRICS.items():
        lines += [f"# HELP kitchensync_{name} {help_text}", f"# TYPE kitchensync_{name} {kind}"]
        lines += [_line(*sample) for sample in samples if sample[0] == name]
    return "\n".join(lines) + "\n"


def _samples(view: RecordingView) -> Iterator[Sample]:
    """Yield the samples of one recording; unknown values are absent."""
    recording = {"recording": str(view["recording"])}
    yield "healthy", recording, float(view["health"] == "recording")
    for finding in view["findings"]:
        yield "finding", recording | {key: finding[key] for key in ("rule", "severity", "subject")}, 1.0
    for name, labels, value in _values(view):
        if value is not None:
            yield name, recording | labels, float(value)


def _values(view: RecordingView) -> Iterator[tuple[str, dict[str, str], Any]]:
    yield "news_age_seconds", {}, view["news_s"]
    yield "restarts_total", {}, view.get("restarts")
    for stream, facts in view.get("streams", {}).items():
        for name, key in _STREAM.items():
            yield name, {"stream": stream}, cast("dict[str, Any]", facts)[key]
    for camera, status in view.get("cameras", {}).items():
        yield "camera_battery_percent", {"camera": camera}, status["battery_percent"]
        yield "camera_minutes_left", {"camera": camera}, status["minutes_left"]
    disk = view.get("disk", {})
    yield "disk_free_bytes", {}, disk.get("free_bytes")
    yield "disk_minutes_left", {}, disk.get("minutes_left")
    for store in view.get("stores", []):
        labels = {"store": store["target"]}
        yield "store_files_left", labels, store["files"] - store["files_done"]
        yield "store_bytes_left", labels, store["bytes"] - store["bytes_safe"]
    for process, use in view.get("processes", {}).items():
        yield "clock_probes_total", {"process": process}, use["probes"]
        yield "process_cpu_share", {"process": process}, use["cpu_share"]
        yield "process_memory_bytes", {"process": process}, use["memory_bytes"]


def _line(name: str, labels: dict[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{text.translate(ESCAPES)}"' for key, text in labels.items())
    return f"kitchensync_{name}{{{pairs}}} {value:.15g}"


class MetricsServer:
    """Answers GET /metrics on loopback until it is closed."""

    def __init__(self, port: int, text: Callable[[], str]) -> None:
        """Listen on a port, 0 for a free one. Raises OSError."""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.headers.get("Host", "").rpartition(":")[0] not in (LOOPBACK, "localhost"):
                    self.send_error(403)  # DNS rebinding: another site's name that resolves to loopback
                    return
                if self.path != "/metrics":
                    self.send_error(404)
                    return
                body = text().encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Print nothing: the terminal shows the recordings."""

        self._server = ThreadingHTTPServer((LOOPBACK, port), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
