"""What every test may ask for: shared real data, free loopback addresses, nothing left running."""

from __future__ import annotations

import os
import random
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from leftovers import held, left
from property_runs import IS_DEEP
from sources import source_of

settings.load_profile("deep" if IS_DEEP else "quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what goes into the background deaf to Ctrl-C, and every process below it inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

PRIORITY = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)
REPOSITORY = Path(__file__).resolve().parent.parent
ONLY_READ = {"test_docs", "test_faults_and_verdicts"}
"""Files of `tests/system` that start nothing."""
SERVERS = {"browser", "tablet", "kitchen_on_postgresql", "postgresql_server"}
"""Fixtures that start a browser or a database server."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep which installations are this user's apart from those of whoever runs the tests."""
    state = tempfile.TemporaryDirectory(prefix="kitchensync-state-")
    config.add_cleanup(state.cleanup)
    os.environ["XDG_STATE_HOME"] = state.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what starts the whole system, a browser or a server as slow."""
    for item in items:
        is_live = "system" in item.path.parts and item.path.stem not in ONLY_READ
        is_live |= item.path.stem.endswith("_in_a_browser") or "[postgresql" in item.name
        if is_live or SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    # The longest ones first: at the end nobody waits for the last.
    items.sort(key=lambda item: "system" not in item.path.parts)


SKIPPED_AT: dict[str, tuple[str, int | None]] = {}
"""Where a test was first skipped for each reason."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Report all tests that are skipped for one reason at one place: the summary has one line for them."""
    _skipped_at_one_place(report)


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Report modules that are skipped for one reason at one place."""
    _skipped_at_one_place(report)


def _skipped_at_one_place(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        file, line, reason = report.longrepr
        report.longrepr = (*SKIPPED_AT.setdefault(reason, (file, line)), reason)


@pytest.fixture(autouse=True)
def _priority_kept() -> Iterator[None]:
    """Fail a test that steps back behind others in this process: every test after it would starve."""
    yield
    assert (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)) == PRIORITY


@pytest.fixture(autouse=True, scope="module")
def _nothing_left_behind() -> Iterator[None]:
    """Fail the last test of a module that leaves a process, a thread, a listening socket or a file in the clone."""
    before = held(REPOSITORY)
    yield
    assert left(before, REPOSITORY) == [], "left behind"


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Find a file of the real sample data, or skip the test with a reason."""
    root = Path(os.environ.get("KITCHENSYNC_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))

    def find(relative: str) -> Path:
        path = root / relative
        if not path.exists():
            folder = relative.partition("/")[0]
            said = relative if (root / folder).exists() else folder
            pytest.skip(f"{said} is not here (KITCHENSYNC_SHARED_DATA): {source_of(said)}")
        return path

    return find


@pytest.fixture
def loopback_host() -> str:
    """Choose a loopback address whose headset ports nobody uses, so that tests may run side by side."""
    for _ in range(50):
        host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"
        with socket.socket() as probe:
            try:
                probe.bind((host, 3809))
            except OSError:
                continue
            return host
    pytest.skip("no free loopback address: this computer gives only 127.0.0.1")
