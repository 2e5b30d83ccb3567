"""The error path of a full disk, without root: no file of this process may grow beyond a number of bytes."""

import resource
from contextlib import contextmanager


@contextmanager
def files_of_at_most(limit):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
