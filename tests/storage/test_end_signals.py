"""A process that is asked to end hears it, however often and in whatever moment it is asked."""

import signal
import subprocess
import sys
import time

import pytest

CHILD = """
import signal, threading, time
from kitchensync.shell.end_signals import ask_at_signals

asked, heard = threading.Event(), []
ask_at_signals((signal.SIGTERM,), lambda: (heard.append(1), asked.set()))
print("ready", flush=True)
until_s = time.monotonic() + 2
while time.monotonic() < until_s:  # holds the lock of the event most of the time
    asked.wait(0.0001)
    asked.clear()
print(f"alive {len(heard)}", flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""


@pytest.mark.slow
def test_a_process_that_is_asked_again_and_again_does_not_hang():
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            until_s = time.monotonic() + 1.5
            while time.monotonic() < until_s:
                child.send_signal(signal.SIGTERM)
            told, _ = child.communicate(timeout=60)
        finally:
            child.kill()
    word, heard = told.split()
    assert (word, child.returncode) == ("alive", 0)
    assert int(heard) > 0
