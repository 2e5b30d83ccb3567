"""The paper, reproduced: every table and figure of arXiv 2305.08344 as a spec, its runs as records, ours beside the
published values.

    naysay paper list                      # what there is, and how much of it is recorded
    naysay paper run tab-main --quick      # plan, estimate, run what is missing
    naysay paper show tab-main             # ours beside the published

A spec (`specs/*.toml`) says which runs a table or figure is made of. A run is named by its values alone, so that tables
which share runs share records. Everything that a run does is the library's own public API; what serves only the specs
stays in this folder.
"""

from naysay.paper.spec import NAMES, Spec, Wanted, get, wanted

__all__ = ["NAMES", "Spec", "Wanted", "get", "wanted"]
