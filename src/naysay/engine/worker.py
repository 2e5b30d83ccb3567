"""The inside of a worker process: it performs one job after another, and lives no longer than the driver that started
it.

Nothing heavy is imported here: a worker is ready after the start of Python, and loads what its jobs need when the first
one comes.
"""

import io
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing import parent_process, reduction
from multiprocessing.connection import Connection
from typing import Any

from naysay.engine.jobs import Failure
from naysay.engine.packing import Pickler, pack, unpack
from naysay.engine.sharing import open_shared
from naysay.engine.turns import Reply
from naysay.errors import InputError

TRACE_LINES = 12


def serve(connection: Connection) -> None:
    """Perform what comes in until the driver closes the connection or dies."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stderr = _NoTerminal(sys.stderr.buffer, errors="backslashreplace", line_buffering=True)
    try:
        connection.send(None)  # ready
        while True:
            message, spans = connection.recv()
            shared = {name: open_shared(reduction.recv_handle(connection), places) for name, places in spans.items()}
            connection.send(perform(message, shared))
    except (EOFError, ConnectionError):  # the driver has left, or is gone
        return


def perform(message: bytes, shared: Mapping[str, Sequence[Any]], pickler: Any = Pickler) -> Reply:
    """The reply to a packed (call, arguments), with the packed shared values among the arguments."""
    started = time.perf_counter()
    try:
        call, arguments = pickle.loads(message)
        arguments |= {name: unpack(parts) for name, parts in shared.items()}
        started = time.perf_counter()  # loading what the function needs is no part of the job
        value = call(**arguments)
        seconds = time.perf_counter() - started
        return Reply(pack(value, pickler), None, seconds)
    except (Exception, SystemExit) as error:  # here the jobs end: whatever one raises is its outcome
        return Reply(None, failure(error), time.perf_counter() - started)


def receive(reply: Reply) -> Reply:
    """The reply as the driver sees it, its value unpacked."""
    if reply.failure is not None:
        return reply
    try:
        return reply._replace(value=pickle.loads(reply.value))
    except Exception as error:  # what cannot be read here is that job's failure, not the end of the others
        return Reply(None, failure(error), reply.seconds)


def failure(error: BaseException) -> Failure:
    """An exception as text; an `InputError` is a sentence that needs no traceback."""
    refused = isinstance(error, InputError)
    inside = error.__traceback__.tb_next if error.__traceback__ else None  # without the line that called the job
    lines = "".join(traceback.format_tb(inside)).splitlines()[-TRACE_LINES:]
    return Failure(type(error).__name__, str(error), "" if refused else "\n".join(lines), refused)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _NoTerminal(io.TextIOWrapper):
    """Standard error of a worker: several progress bars on one terminal would overwrite each other."""

    def isatty(self) -> bool:
        return False
