"""Memory: what a file's header says it will take is compared with what there is, before any of it is taken.

A few bytes can ask for gigabytes: packed zeros, an image of one colour, ten thousand classes. A process that takes more
than there is gets killed without a word, so whoever is about to take much asks first.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from naysay.errors import InputError

SMALL = 1 << 26  # bytes that are always there: nobody asks for so little
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
# the limit of a container and what it uses of it, in both versions of Linux' control groups
GROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def afford(n_bytes: int, what: str, way_out: str) -> None:
    """Raise InputError where `what` needs so many bytes and there are fewer."""
    if n_bytes > SMALL and n_bytes > (room := available()):
        raise InputError(f"{what} needs {n_bytes / 1e9:.1f} GB of memory and {room / 1e9:.1f} GB are free. {way_out}")


def available() -> int:
    """The bytes that this process can still take: what the machine has free, or less where it is held to less."""
    return max(0, min(_rooms(), default=sys.maxsize))


def _rooms() -> Iterator[int]:
    listed = Path("/proc/meminfo")
    if listed.exists():
        lines = (line.split() for line in listed.read_text().splitlines())
        yield from (1024 * int(parts[1]) for parts in lines if parts[0] == "MemAvailable:")
    elif hasattr(os, "sysconf"):
        yield PAGE * os.sysconf("SC_PHYS_PAGES")
    for limit, used in (tuple(Path("/sys/fs/cgroup") / name for name in names) for names in GROUPS):
        if limit.exists() and used.exists() and (most := limit.read_text().strip()) != "max":
            yield int(most) - int(used.read_text())
    taken = Path("/proc/self/statm")
    if taken.exists():
        import resource

        held_to, _ = resource.getrlimit(resource.RLIMIT_AS)
        if held_to != resource.RLIM_INFINITY:
            yield held_to - PAGE * int(taken.read_text().split()[0])
