"""What a recording is worth, judged from its files alone: the balance of every stream, and the verdict."""

from kitchensync.storage.verify.by_life import keep_if_closed, keep_verdict, kept_verdict
from kitchensync.storage.verify.findings import FAIL, PASS, WARN
from kitchensync.storage.verify.verification import verify, verify_all

__all__ = ["FAIL", "PASS", "WARN", "keep_if_closed", "keep_verdict", "kept_verdict", "verify", "verify_all"]
