"""What a recording is worth, judged from its files alone: the balance of every stream, and the verdict."""

from storage.verify.answer import verify, verify_all
from storage.verify.by_life import keep_verdict, kept_verdict
from storage.verify.findings import FAIL, PASS, WARN

__all__ = ["FAIL", "PASS", "WARN", "keep_verdict", "kept_verdict", "verify", "verify_all"]
