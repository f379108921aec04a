"""Trouble of the computer, told apart from findings: what stands in the way of an answer says nothing of the data."""

from __future__ import annotations

import errno

OF_COMPUTER = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES),
    *(errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EBUSY, errno.ENODEV, errno.ENXIO),
    *(errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.ECONNRESET, errno.ECONNREFUSED),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH),
}
"""What a disk, a network store or memory says; a file that is gone or holds something else is a finding."""


def is_trouble(error: BaseException) -> bool:
    """Tell whether an error, or one that it came from, is of the computer."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno in OF_COMPUTER):
            return True
        cause = cause.__cause__
    return False


def pass_on_trouble(error: BaseException) -> None:
    """Raise an error again that is of the computer; a finding is left to who caught it."""
    if is_trouble(error):
        raise error
