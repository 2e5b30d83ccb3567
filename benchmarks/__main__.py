"""`make bench`: neighbours, propagation, training and engines against peers here; JSON lines in benchmarks/results/.

`python -m benchmarks estimates [...]` instead asks how many estimated accuracies hold the truth (`estimates.py`),
`python -m benchmarks tables [...]` holds the default against two lines of scikit-learn (`tables.py`), `python -m
benchmarks hard [...]` asks the same of intervals on hard sets (`hard.py`), and `python -m benchmarks sharing-choices
[...]` holds settings chosen by hidden labels against the paper's (`sharing_choices.py`). `python -m benchmarks gates
[...]` says whether the package is as right, as fast and as light as it was (`gates.py`).
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"

# each in a process of its own, so that no benchmark's threads or caches disturb the next
STEPS = (
    ("augmentation.py", "--out", str(RESULTS / "augmentation.jsonl")),
    ("training.py", "--json", str(RESULTS / "training.jsonl")),
    ("engine.py", "--out", str(RESULTS / "engine.jsonl")),
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["gates"]:
        from benchmarks import gates

        sys.exit(gates.main(sys.argv[2:]))
    RESULTS.mkdir(exist_ok=True)
    alone = sys.argv[1:2] in (["estimates"], ["tables"], ["hard"], ["sharing-choices"])
    asked = ((f"{sys.argv[1].replace('-', '_')}.py", *sys.argv[2:]),) if alone else STEPS
    for script, *arguments in asked:
        print(f"\n{script}", flush=True)
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}  # scripts import each other by either name
        subprocess.run([sys.executable, str(HERE / script), *arguments], check=True, env=environment)
