"""Puts records that were made elsewhere into results/, in the place of older ones of the same runs.

    python tools/merge_records.py FOLDER [--results results]

A record replaces those of its own key and of every key that its run had before; one of before a repair does not come
into the place of a later one. Then write the page anew (`python -m reproduction write`).
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from naysay.engine import Ledger  # noqa: E402
from naysay.learning.records import rewrite  # noqa: E402
from reproduction.spec import Wanted  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of <experiment>.jsonl files")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    asked = parser.parse_args()
    for path in sorted(asked.folder.glob("*.jsonl")):
        target = asked.results / path.name
        came, old = ([one for one in Ledger(path).read() if "failed" not in one], list(Ledger(target).read()))
        there, new, replaced = {one["key"] for one in (*came, *old) if "failed" not in one}, {}, set()
        for record in came:
            keys = list(Wanted(record["experiment"], "", record["values"]).keys)  # newest first
            at = keys.index(record["key"])
            if not there & set(keys[:at]):
                new[record["key"]] = record
                replaced |= set(keys[at:])
        kept = [record for record in old if record["key"] not in replaced]
        rewrite(target, [*kept, *new.values()])
        print(f"{target}: {len(new)} put in, {len(old) - len(kept)} taken out, {len(kept)} kept")


if __name__ == "__main__":
    main()
