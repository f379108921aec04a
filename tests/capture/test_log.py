"""The log of a recording's processes."""

from __future__ import annotations

import json

from kitchensync.capture.process.log import FILE, RecordingLog, log_event


def test_every_event_is_a_line_and_nothing_is_written_after_the_end(tmp_path):
    log = RecordingLog(tmp_path, "drainer 0")
    log_event("sealed", packets=3)
    log.close()
    log_event("ends")
    (line,) = map(json.loads, (tmp_path / FILE).read_text().splitlines())
    assert (line["process"], line["event"], line["packets"]) == ("drainer 0", "sealed", 3)


def test_a_full_disk_ends_neither_the_work_nor_the_closing(tmp_path):
    """The recording is closed after the log is written: a failing log must not leave it open."""
    (tmp_path / FILE).symlink_to("/dev/full")
    log = RecordingLog(tmp_path, "supervisor")
    log_event("recording ends")
    log.close()
