"""The laboratory: every table and figure of arXiv 2305.08344 as a spec, its runs as records, ours beside the published.

    python -m reproduction list                      # what there is, and how much of it is recorded
    python -m reproduction run tab-main --quick      # plan, estimate, run what is missing
    python -m reproduction show tab-main             # ours beside the published
    python -m reproduction write                     # all of it, as docs/REPRODUCTION.md

A spec (`specs/*.toml`) says which runs a table or figure is made of. A run is named by its values alone, so that tables
which share runs share records. The laboratory stands beside the library, which does not know it, and uses its public
names alone (`tests/test_reproduction_imports.py`).
"""

from reproduction.spec import NAMES, Spec, Wanted, get, wanted

__all__ = ["NAMES", "Spec", "Wanted", "get", "wanted"]
