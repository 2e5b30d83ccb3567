"""Jobs on both engines: the same values, a killed worker costs its own job one attempt, what fails says why, and
nothing is left behind.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import engine_jobs
import numpy as np
import pytest
import torch

from naysay import engine, labels
from naysay.cluster import connect
from naysay.engine import worker
from naysay.engine.local import Local
from naysay.errors import InputError
from naysay.learning import Config, HeldOut, grid, search

# tests that open ports run one after another: a free port that one has found must not be another's
OPENS_PORTS = True

BOTH = ["local", "ray"]


@pytest.fixture(scope="module")
def ray():
    """One Ray of two CPUs for all tests of this file; `start("ray")` inside uses it and leaves it running."""
    with connect(workers=2) as connected:
        yield connected


@pytest.fixture(scope="module")
def local():
    with engine.start("local", workers=2, threads=1) as started:
        yield started


@pytest.fixture(params=BOTH)
def started(request):
    """Either engine with two workers of one thread."""
    if request.param == "local":
        yield request.getfixturevalue("local")
    else:
        request.getfixturevalue("ray")
        with engine.start("ray", workers=2, threads=1) as running:
            yield running


def kill_when_named(folder):
    """Kill the process whose number appears in the file "victim", from another thread."""
    file = folder / "victim"

    def kill():
        engine_jobs.wait_for(lambda: file.exists() and file.read_text().endswith("\n"))
        os.kill(int(file.read_text()), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def by_key(outcomes):
    return {outcome.key: outcome for outcome in outcomes}


def test_both_engines_give_the_same_values_as_this_process(local, ray):
    table = {"rows": np.random.default_rng(0).normal(size=(5, 1000))}
    values = {}
    with engine.start("local", workers=0, threads=1) as here, engine.start("ray", workers=2, threads=1) as remote:
        for name, running in {"here": here, "local": local, "ray": remote}.items():
            shared = running.share(table)
            outcomes = by_key(
                running.run(
                    engine.Job(str(seed), engine_jobs.arithmetic, {"seed": seed, "table": shared}) for seed in range(5)
                )
            )
            assert len(outcomes) == 5
            assert all(
                outcome.error is None and outcome.attempts == 1 and outcome.seconds > 0 for outcome in outcomes.values()
            )
            values[name] = [outcomes[str(seed)].value for seed in range(5)]
    for name in BOTH:
        for ours, theirs in zip(values["here"], values[name], strict=True):
            assert (ours["product"] == theirs["product"]).all()
            assert (ours["shared"] == theirs["shared"]).all()
            assert theirs["threads"] == "1"


def test_a_grid_searched_on_an_engine_chooses_as_one_searched_here(started):
    generator = torch.Generator().manual_seed(0)
    x, comp = (
        torch.randn(200, 6, generator=generator),
        labels.from_indices(torch.randint(0, 4, (200,), generator=generator), 4),
    )
    configs = grid(Config(epochs=3, model_options={"hidden": 8}), learning_rates=(1e-2, 1e-3), weight_decays=(1e-4,))
    arguments = (configs, x[:150].numpy(), comp[:150], HeldOut(x[150:], comp[150:]))
    here, there = search(*arguments), search(*arguments, run=partial(engine.each, started))
    assert here.choice == there.choice
    for ours, theirs in zip(here.runs, there.runs, strict=True):
        assert [f["held_out"] for f in ours.history] == [f["held_out"] for f in theirs.history]
        assert torch.equal(ours.predictor.logits(x), theirs.predictor.logits(x))


def test_a_shared_array_cannot_be_written_to(started):
    shared = started.share({"rows": np.zeros((2, 2))})
    (outcome,) = started.run([engine.Job("a", engine_jobs.write_shared, {"table": shared})], attempts=1)
    assert "read-only" in str(outcome.error)
    with pytest.raises(InputError, match="a shared value must stand at the top level of a job's arguments"):
        list(started.run([engine.Job("a", engine_jobs.write_shared, {"table": [shared]})]))


def test_a_worker_killed_in_the_middle_costs_its_own_job_one_attempt(started, tmp_path):
    killer = kill_when_named(tmp_path)
    others = engine_jobs.jobs(tmp_path, 6, 0.05)
    outcomes = by_key(
        started.run([others[0], engine.Job("victim", engine_jobs.victim, {"folder": str(tmp_path)}), *others[1:]])
    )
    killer.join()
    assert outcomes["victim"].value == outcomes["victim"].attempts == 2
    assert [outcomes[job.key].attempts for job in others] == [1] * 6
    assert sorted((tmp_path / "log").read_text().split()) == list("012345")  # each was begun once only


def test_a_job_whose_worker_is_killed_at_its_last_attempt_says_so(started, tmp_path):
    killer = kill_when_named(tmp_path)
    (outcome,) = started.run([engine.Job("victim", engine_jobs.victim, {"folder": str(tmp_path)})], attempts=1)
    killer.join()
    assert outcome.value is None
    assert re.match(r"WorkerDied: the process that ran it was ended .*fewer workers need less", str(outcome.error))


def test_a_worker_killed_while_it_sends_a_large_result_is_no_end_of_the_others(local, tmp_path):
    engine.each(local, time.sleep, [0.1, 0.1])  # both workers are there
    outcomes = local.run(
        [engine.Job("large", engine_jobs.large, {"folder": str(tmp_path)}), *engine_jobs.jobs(tmp_path, 2, 0.0)]
    )
    assert next(outcomes).key == "job 0"
    time.sleep(1)  # nobody listens, so the large result waits in its full pipe
    os.kill(int((tmp_path / "victim").read_text()), signal.SIGKILL)
    rest = by_key(outcomes)
    assert rest["large"].value.shape == (10_000_000,)
    assert rest["large"].attempts == 2
    assert rest["job 1"].attempts == 1
    assert len((tmp_path / "victim").read_text().split()) == 2


def test_a_job_that_fails_three_times_is_reported_and_the_rest_goes_on(started, tmp_path):
    failing = engine.Job("dry", engine_jobs.fail, {"times": 9, "folder": str(tmp_path)})
    outcomes = by_key(started.run([failing, *engine_jobs.jobs(tmp_path, 3, 0.0)]))
    assert [outcomes[f"job {at}"].value for at in range(3)] == [{"square": at**2} for at in range(3)]
    assert outcomes["dry"].attempts == 3
    text = str(outcomes["dry"].error)
    assert text.startswith("ValueError: the well is dry\n")
    assert "engine_jobs.py" in text
    assert 'raise ValueError("the well is dry")' in text
    assert "perform" not in text  # the engine's own lines would only hide the job's


def test_a_job_that_succeeds_at_the_third_attempt_has_succeeded(started, tmp_path):
    (outcome,) = started.run([engine.Job("dry", engine_jobs.fail, {"times": 2, "folder": str(tmp_path)})])
    assert (outcome.value, outcome.error, outcome.attempts) == ({"value": "at last"}, None, 3)


def test_what_is_refused_is_not_tried_again(started, tmp_path):
    (outcome,) = started.run([engine.Job("no", engine_jobs.refuse, {"folder": str(tmp_path)})])
    assert str(outcome.error) == "InputError: epochs must be at least 1; got 0."
    assert outcome.attempts == 1
    assert (tmp_path / "failures").read_text() == "x"


def test_a_job_that_exits_or_whose_result_cannot_be_sent_has_failed(started, ray):
    outcomes = by_key(started.run([engine.Job("exit", engine_jobs.leave)], attempts=2))
    assert str(outcomes["exit"].error).startswith("SystemExit: 3")
    if started.name == "local":  # Ray's pickler can send a lambda
        outcomes = by_key(started.run([engine.Job("lambda", engine_jobs.unpicklable)], attempts=2))
        assert "Can't pickle local object 'unpicklable.<locals>.<lambda>'" in str(outcomes["lambda"].error)


def test_a_function_that_no_worker_could_find_is_refused_before_anything_runs(local):
    with pytest.raises(
        InputError, match=r"job 'a' cannot be sent to a worker: .*<lambda>.* or the local engine with workers=0"
    ):
        list(local.run([engine.Job("a", lambda: 1)]))
    with engine.start("local", workers=0) as here:
        assert next(here.run([engine.Job("a", lambda: 1)])).value == 1


def test_each_keeps_the_order_and_raises_the_first_failure(started):
    assert engine.each(started, engine_jobs.half, range(0, 20, 2)) == list(range(10))
    assert engine.each(started, engine_jobs.half, []) == []
    with pytest.raises(InputError, match=r"^only even numbers can be halved; got 3\.$"):
        engine.each(started, engine_jobs.half, [2, 3])
    with pytest.raises(engine.JobFailed, match="item 1 failed 3 times: TypeError"):
        engine.each(started, engine_jobs.half, [2, None])


def test_leaving_in_the_middle_ends_the_jobs_that_run_and_the_engine_goes_on(started, tmp_path):
    victim = engine.Job("victim", engine_jobs.victim, {"folder": str(tmp_path)})
    outcomes = started.run([victim, *engine_jobs.jobs(tmp_path, 3, 0.3)])
    next(outcomes)
    with pytest.raises(InputError, match="this engine is at other jobs already"):
        next(started.run([]))
    process = int((tmp_path / "victim").read_text())
    outcomes.close()
    engine_jobs.wait_for(lambda: not alive(process))
    assert engine.each(started, engine_jobs.half, [2, 4]) == [1, 2]


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_each_worker_has_its_own_environment_from_its_first_instruction_on():
    before = dict(os.environ)
    running = Local([{"CUDA_VISIBLE_DEVICES": str(at), "OMP_NUM_THREADS": "1"} for at in range(2)])
    try:
        arguments = {"name": "CUDA_VISIBLE_DEVICES", "seconds": 0.3}
        values = [
            outcome.value
            for outcome in running.run(engine.Job(str(at), engine_jobs.variable, arguments) for at in range(2))
        ]
    finally:
        running.close()
    # no terminal for bars to fight over, and deaf to Ctrl-C
    assert sorted(values) == [("0", False, True), ("1", False, True)]
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "slurm"}, "unknown engine 'slurm': .*local, ray"),
        ({"name": "local", "workers": -1}, "workers of the local engine must be at least 0; got -1"),
        ({"name": "ray", "workers": 0}, "workers of the ray engine must be at least 1; got 0"),
        ({"name": "local", "threads": 0}, "threads of the local engine must be at least 1; got 0"),
        ({"name": "local", "address": "auto"}, "the local engine has no address; got 'auto'"),
    ],
)
def test_what_cannot_be_started_is_an_error_in_a_sentence(options, message):
    with pytest.raises(InputError, match=message), engine.start(**options):
        pass


def test_threads_are_what_was_asked_for_or_a_share_of_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert worker.share_of_threads(3, n_cores=8, workers=2) == 3
    assert worker.share_of_threads(None, n_cores=8, workers=3) == 2
    assert worker.share_of_threads(None, n_cores=2, workers=8) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert worker.share_of_threads(None, n_cores=8, workers=2) == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    with (
        pytest.raises(InputError, match="OMP_NUM_THREADS must be a number of threads; got 'many'"),
        engine.start("local"),
    ):
        pass


def test_zero_attempts_are_refused(local):
    with pytest.raises(InputError, match="attempts must be at least 1; got 0"):
        list(local.run([], attempts=0))


def test_the_error_of_a_missing_ray_has_the_command_that_gets_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(InputError, match=r"needs a package that is not here: .*pip install 'naysay\[ray\]'"),
        engine.start("ray"),
    ):
        pass


def test_a_cluster_that_does_not_answer_is_an_error_in_a_sentence():
    done = subprocess.run(
        [sys.executable, "-c", "from naysay import engine\nwith engine.start('ray', address='127.0.0.1:1'): pass"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "InputError: no Ray cluster could be joined at '127.0.0.1:1': " in done.stderr
    assert "Start one with `ray start --head`" in done.stderr


def test_a_cluster_is_joined_by_its_address_and_left_running(ray, monkeypatch):
    # it listens on 127.0.0.1 only, and Ray would ask elsewhere
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    program = (
        "import sys, engine_jobs\nfrom naysay import engine\n"
        "with engine.start('ray', address=sys.argv[1]) as started:\n"
        "    print(started.workers, engine.each(started, engine_jobs.half, [2, 4]))\n"
    )
    address = ray.get_runtime_context().gcs_address
    done = subprocess.run(
        [sys.executable, "-c", program, address],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "2 [1, 2]\n", done.stderr
    with engine.start("ray", threads=1) as started:  # joins what is there
        assert engine.each(started, engine_jobs.half, [6]) == [3]
    assert ray.is_initialized()


def test_a_script_without_a_guard_is_told_what_it_lacks(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from naysay import engine\nwith engine.start(workers=1) as started:\n    print(engine.each(started, abs, "
        "[-1]))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "InputError: 3 workers ended while they started; " in done.stderr.splitlines()[-1]
    assert 'under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


def test_the_example_of_a_cluster_is_what_ray_takes():
    import jsonschema
    import yaml
    from ray import autoscaler

    example = yaml.safe_load((Path(__file__).parent.parent / "examples" / "ray-cluster.yaml").read_text())
    jsonschema.validate(example, json.loads((Path(autoscaler.__file__).parent / "ray-schema.json").read_text()))
    assert all(
        "/naysay/bin/" in line for step in ("setup_commands", "head_start_ray_commands") for line in example[step][1:]
    )
