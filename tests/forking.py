"""Children of a test program that has imported torch: a fork costs milliseconds, a start of Python seconds."""

import os
import traceback


def fork(work):
    """A child process that does `work` and ends, with status 0 where it went well; its number."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)  # a forked child must not go on as its parent
    return child
