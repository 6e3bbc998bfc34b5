"""The attacks of benchmarks/fuzz.py, in short: another hundred of each kind with every version of the program."""

import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import fuzz


@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero", "ignore:invalid value", "ignore:underflow")
@pytest.mark.parametrize(
    ("kind", "cases"),
    [("audits", 600), ("local", 150), ("builds", 60), ("files", 500), ("javascript", 2)],
    ids=lambda value: str(value),
)
def test_nothing_is_unsound_and_every_error_is_ours(kind, cases):
    if kind == "javascript" and shutil.which("node") is None:
        pytest.skip("Node is not installed (Debian: apt install nodejs)")
    verdicts = Counter()
    for number in range(cases):
        verdict, said = fuzz.run_case(kind, number)
        assert verdict in ("held", "refused"), f"{kind}:{number} {verdict}: {said}"
        verdicts[verdict] += 1
    assert verdicts["held"] >= cases // 100  # some attacks are answered, so that answers were judged


def test_a_case_without_an_answer_counts_as_hung():
    worker = fuzz.Worker.__new__(fuzz.Worker)  # without its process
    worker.pipe, worker.process, worker.used = Silent(), Silent(), 0.0
    worker.since = time.monotonic() - fuzz.PATIENCE / 2
    assert worker.poll() is None  # it got no processor yet
    worker.since = time.monotonic() - 2 * fuzz.PATIENCE
    assert worker.poll() == ("hung", "no answer in 10 s")


class Silent:
    """A process that is not there and a pipe on which nothing ever comes."""

    pid = None

    def poll(self):
        return False
