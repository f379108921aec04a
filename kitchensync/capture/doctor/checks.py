"""Check this computer before a session; every finding has a status and advice."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, cast

from kitchensync.capture.process.cpu_pressure import BUSY_PERCENT, waits_percent
from kitchensync.shell.files_on_disk import NO_INODES, lacks_inodes

GOOD, LOOK, BAD = "good", "look", "bad"
_ORDER = (GOOD, LOOK, BAD)
RIG_MB_PER_S = {"wifi": 10.8, "wired": 58.8}
"""Data rate of a headset with all its streams and one camera, by the connection of the headset."""
TABLET_PORT = 8000  # default of `kitchensync app --port`
WRITE_TEST_BYTES = 64 << 20  # as much as a full chunk of a recording (CHUNK_BYTES)
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
GOOD_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")


@dataclass
class CheckResult:
    """Result of one check."""

    what: str
    status: str
    seen: str
    advice: str = ""


class DoctorAnswer(TypedDict):
    """The object `doctor/1`; with --acceptance also measured values by name."""

    subject: str
    status: str
    "The worst."
    findings: list[CheckResult]


@dataclass
class Report:
    """Results of all checks."""

    subject: str
    findings: list[CheckResult] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, status: str, result: str, advice: str = "") -> None:
        """Add one finding; the advice is dropped if the status is good."""
        self.findings.append(CheckResult(what, status, result, advice if status != GOOD else ""))

    def take(self, device: str, other: Report) -> None:
        """Add the findings of a device, under its name."""
        self.findings += [replace(finding, what=f"{device}: {finding.what}") for finding in other.findings]

    @property
    def status(self) -> str:
        """The worst of all findings."""
        return max((finding.status for finding in self.findings), key=_ORDER.index, default=GOOD)

    def answer(self) -> DoctorAnswer:
        """Return the object `doctor/1`."""
        answer = {"subject": self.subject, "status": self.status, "findings": self.findings, **self.facts}
        return cast(DoctorAnswer, answer)


def examine_computer(data: Path, minutes: float, mb_per_s: float) -> Report:
    """Check this computer for a session of `minutes` that is recorded into `data` at this rate."""
    report = Report(socket.gethostname())
    _clock_source(report)
    _ntp(report)
    _processors(report)
    _disk(report, data, minutes, mb_per_s)
    _sleep_settings(report)
    _network(report)
    _tablet_port(report)
    _encryption(report, data)
    return report


def _clock_source(report: Report) -> None:
    name = _read(CLOCK_SOURCE) or "unknown"
    resolution_ns = round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9)
    fine = name in GOOD_CLOCKS and resolution_ns <= 1000
    report.add(
        "clock source",
        GOOD if fine else LOOK,
        f"{name}, steps of {resolution_ns} ns",
        "a slow clock source blurs arrival times; prefer tsc",
    )


def _ntp(report: Report) -> None:
    answer = _output(["timedatectl", "show", "-p", "NTPSynchronized", "--value"])
    results = {"yes": (GOOD, "this computer's UTC is synchronized"), "no": (LOOK, "not synchronized")}
    status, result = results.get(answer, (LOOK, "cannot be checked here"))
    report.add("NTP", status, result, "switch on time synchronization (timedatectl set-ntp true)")


def _processors(report: Report) -> None:
    waits = waits_percent()
    result = f"programs waited for one {waits:.0f} % of the last 10 s"
    report.add(
        "processors", LOOK if waits > BUSY_PERCENT else GOOD, result, "end what else runs on this computer"
    )


def _disk(report: Report, data: Path, minutes: float, mb_per_s: float) -> None:
    place = next(folder for folder in (data, *data.absolute().parents) if folder.is_dir())
    if lacks_inodes(place):
        report.add("disk space", BAD, f"{place}: {NO_INODES}", "remove small files or give --data")
        return
    free = shutil.disk_usage(place).free
    needed = minutes * 60 * mb_per_s * 1e6
    free_minutes = int(free / (mb_per_s * 60e6))
    result = f"{free / 1e9:.1f} GB free in {place}: room for {free_minutes} min, {minutes:g} are needed"
    report.add("disk space", GOOD if free > 1.2 * needed else BAD, result, "free some space or give --data")
    try:
        rate = _write_rate(place)
    except OSError as error:
        report.add("write rate", BAD, f"cannot write in {place}: {error.strerror}", "give another --data")
        return
    report.facts |= {"free_bytes": free, "needed_bytes": round(needed), "minutes_left": free_minutes}
    report.facts["write_bytes_per_s"] = rate
    result = f"{rate / 1e6:.0f} MB/s synced, a session needs {mb_per_s:.1f}"
    report.add("write rate", GOOD if rate > 3e6 * mb_per_s else BAD, result, "use a faster disk")


def _write_rate(place: Path) -> float:
    block = os.urandom(1 << 20)
    with tempfile.TemporaryFile(dir=place) as file:
        begin_s = time.perf_counter()
        for _ in range(WRITE_TEST_BYTES // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return WRITE_TEST_BYTES / (time.perf_counter() - begin_s)


def _sleep_settings(report: Report) -> None:
    answer = _output(["systemctl", "is-enabled", "sleep.target"])
    if answer == "masked":
        report.add("sleep", GOOD, "sleep is switched off")
    else:
        result = "this computer may fall asleep" if answer else "cannot be checked here"
        advice = "keep the lid open and the power in, or: systemctl mask sleep.target suspend.target"
        report.add("sleep", LOOK, result, advice)


def _network(report: Report) -> None:
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    states = {name: _read(Path("/sys/class/net") / name / "operstate") for name in names}
    up = [name for name, state in states.items() if state in ("up", "unknown")]
    result = ", ".join(f"{name} {state}" for name, state in states.items()) or "none"
    report.add(
        "interfaces", GOOD if up else LOOK, result, "no network is up: plug in or join the rig's network"
    )
    routes = [line.split()[0] for line in _read(Path("/proc/net/route")).splitlines()[1:] if line.split()]
    wireless = [name for name in up if (Path("/sys/class/net") / name / "wireless").exists()]
    report.add("routes", GOOD if routes or not up else LOOK, ", ".join(sorted(set(routes))) or "none")
    if wireless:
        advice = "a cable from this computer to the access point halves the traffic in the air"
        report.add("wireless", LOOK, ", ".join(wireless), advice)
    advice = "the headset's protocol has no password: use a network of its own, without guests"
    report.add("isolation", LOOK, "cannot be checked here", advice)


def _tablet_port(report: Report) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", TABLET_PORT))  # noqa: S104 (as the app would)
            result, status = f"port {TABLET_PORT} is free", GOOD
        except OSError as error:
            result, status = f"port {TABLET_PORT}: {error.strerror}", LOOK
    advice = "the recipe app may run there already; else choose --port"
    report.add("tablet port", status, result, advice)
    firewall = (_output(["ufw", "status"]) or _output(["firewall-cmd", "--state"])).lower()
    if firewall.split("\n")[0] in ("status: active", "running"):
        report.add("firewall", LOOK, "a firewall is on", f"let the tablet in: TCP port {TABLET_PORT}")


def _encryption(report: Report, data: Path) -> None:
    place = next(folder for folder in (data, *data.absolute().parents) if folder.is_dir())
    source = _output(["findmnt", "-no", "SOURCE", "-T", str(place)]).split("[")[0]
    kinds = _output(["lsblk", "-sno", "TYPE", source]) if source.startswith("/dev/") else ""
    is_encrypted = "crypt" in kinds.split()
    result = f"{source or place} is {'encrypted' if is_encrypted else 'apparently not encrypted'}"
    advice = "recordings show people: put the data on an encrypted disk"
    report.add("encryption", GOOD if is_encrypted else LOOK, result, advice)


def _output(command: list[str]) -> str:
    """Return the output of a command, "" if it does not exist or does not answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
