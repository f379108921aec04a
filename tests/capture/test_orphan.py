"""A process whose supervisor has died exits, even if something in it hangs."""

import subprocess
import sys

from kitchensync.capture.process.worker_process import EXIT_CODE

CHILD = """
import threading
from kitchensync.capture.process import worker_process

worker_process.GRACE_S = 0.2
forever = threading.Event()
worker_process.watch_supervisor(0, forever.wait)  # nobody's parent has this number: it is gone from the beginning
forever.wait()
"""


def test_an_orphan_exits_even_if_its_orderly_end_hangs():
    assert subprocess.run([sys.executable, "-c", CHILD], timeout=60, check=False).returncode == EXIT_CODE
