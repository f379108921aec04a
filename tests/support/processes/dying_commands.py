"""Work that dies before its n-th step: commands, in processes of their own, and functions, by Ctrl-C in this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DIES = """
import json, os, signal, sys
from kitchensync.cli import main
import kitchensync.recipe_app.commands.at_rest, scipy.optimize
import kitchensync.storage.move.mover, kitchensync.storage.move.upload, fsspec.implementations.local
import kitchensync.storage.redact.redaction, kitchensync.storage.withdraw.withdrawal

os.nice = os.sched_setscheduler = lambda *_: None  # a busy computer would let a mover wait

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def torn(write, half_of):
    def step(handle, content):
        if count_down():
            write(handle, half_of(content))
            die()
        return write(handle, content)
    return step

def half_of(content):
    return bytes(content)[: len(content) // 2]

def count_down():
    count[0] -= 1
    return count[0] < 0

def changes(event, arguments, root):
    if event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "sqlite3.connect"):
        return root in str(arguments[0])
    if event != "open" or root not in str(arguments[0]):
        return False
    return bool(isinstance(arguments[1], str) and set(arguments[1]) & set("wax+") or (arguments[2] or 0) & 3)

for line in sys.stdin:
    root, words, left = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    count = [left]
    def hook(event, arguments):
        if changes(event, arguments, root) and count_down():
            die()
    sys.addaudithook(hook)
    if "torn" in sys.argv:
        os.write = torn(os.write, half_of)
        os.writev = torn(os.writev, lambda views: [half_of(b"".join(views))])
    try:
        main(words)
    except SystemExit as error:
        os._exit(error.code or 0)
"""
Dying = Callable[[Path, list[str], int], bool]


@contextmanager
def dying_commands(*, may_refuse: bool = False, torn: bool = False) -> Iterator[Dying]:
    """Yield who runs a command that dies before its n-th change below a folder, and tells whether it did.

    With `torn` a write is a change too, in the middle of which it dies.
    """
    codes = (0, 1, -9) if may_refuse else (0, -9)
    words = [sys.executable, "-c", DIES, *(["torn"] if torn else [])]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def killed(root: Path, words: list[str], operation: int) -> bool:
            process.stdin.write(json.dumps([str(root), words, operation]) + "\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            assert code in codes, (words, code)
            return code == -9

        yield killed
        process.stdin.close()


def dying_after(steps: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return who wraps functions: once they were called so often in all, the next call is interrupted."""
    left = steps

    def dying(act: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return act(*args, **more)

        return step

    return dying
