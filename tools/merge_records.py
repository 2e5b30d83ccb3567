"""Puts records that were made elsewhere into results/, in the place of older ones of the same runs.

    python tools/merge_records.py FOLDER [--results results]

A record replaces those of its own key and of every key that its run had before a repair. Then write the page anew
(`python -m reproduction write`).
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
        new = {record["key"]: record for record in Ledger(path).read() if "failed" not in record}
        replaced = {key for one in new.values() for key in Wanted(one["experiment"], "", one["values"]).keys}
        target = asked.results / path.name
        old = list(Ledger(target).read())
        kept = [record for record in old if record["key"] not in replaced]
        rewrite(target, [*kept, *new.values()])
        print(f"{target}: {len(new)} put in, {len(old) - len(kept)} taken out, {len(kept)} kept")


if __name__ == "__main__":
    main()
