"""Ray: data sets block by block and jobs as tasks, with workers killed in the middle. One Ray for all of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput, OutOfDomain
from metricdp.ledger import Ledger
from metricdp.tables import Charging, Disclosure, Draws, protect_table, spec_of, task_for
from metricdp.tables.jobs import plan as jobs
from restoring import as_it_was
from scripts import main
from tables.engines.killing import killing
from tables.engines.law import LOCAL, MATRIX, check, files, table, together
from tables.engines.replay import copied, folder_of, replayed
from tables.engines.words import BAD, DRAWN, KERNEL, REFUSING, STAYING, WHOLE, WORDS

ray = pytest.importorskip("ray", reason="needs the extra `ray`")
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds workers by /proc"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own warnings
]
KEY = bytes(range(32))
EXAMPLES = Path(__file__).parents[3] / "examples" / "engines"


@pytest.fixture(scope="module", autouse=True)
def running():
    with as_it_was():
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
        ray.shutdown()


def rows_of(dataset) -> pa.Table:
    return pa.concat_tables(ray.get(dataset.to_arrow_refs()))


def data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    before = table(300_000)
    parts = [before.slice(start, 100_000) for start in range(0, 300_000, 100_000)]
    monkeypatch.setattr("metricdp.tables.engines.ray.secrets.token_bytes", lambda count: KEY)
    thread, killed = killing(lambda command, parent: command.startswith(b"ray::_protect_block"))
    result = mdp.perturb(ray.data.from_arrow(parts), MATRIX)
    thread.join()
    monkeypatch.undo()
    assert len(killed) == 1
    after = rows_of(result)
    check(before, after)
    assert rows_of(result).equals(after)  # looked at twice, drawn once
    task = task_for(before.column_names, MATRIX)
    applied = spec_of(task).applied
    for number, part in enumerate(parts):  # the block that was run twice among them
        alone = protect_table(part, task, Draws(KEY, f"block {number}", 0, applied))
        assert alone.equals(after.slice(100_000 * number, 100_000).combine_chunks())


def traps() -> None:
    same = table(3000)
    twice = rows_of(mdp.perturb(ray.data.from_arrow([same, same]), MATRIX))
    assert not np.array_equal(twice["x"][:3000], twice["x"][3000:])  # equal blocks draw independently
    many = table(60_000)
    check(many, rows_of(mdp.perturb(ray.data.from_arrow(many), LOCAL)), LOCAL)
    constant = pa.table({"x": [1.0] * 5000, "y": [1.0] * 5000})
    reports = rows_of(mdp.perturb(ray.data.from_arrow(constant), MATRIX))
    assert len(set(zip(reports["x"].to_pylist(), reports["y"].to_pylist(), strict=True))) == 9
    with pytest.raises(OutOfDomain, match=r"block 1 of the data set: row 1 .*in x, y, secrets are its 9 points"):
        mdp.perturb(
            ray.data.from_arrow([same, pa.table({"id": [0, 1], "x": [1.0, 7.0], "note": ["", ""], "y": [1.0, 1.0]})]),
            MATRIX,
        )
    with pytest.raises(InvalidInput, match="`rng` cannot be given"):
        mdp.perturb(ray.data.from_arrow(same), MATRIX, rng=np.random.default_rng(0))


def charged(folder: Path) -> None:
    people = [["anna", "ben"], ["anna", "anna"]]
    parts = [pa.table({"who": who, "x": [1.0, 2.0], "y": [1.0, 1.0]}) for who in people]
    with Ledger.open(folder / "budget.db", policy="5 ever") as ledger:
        options = {"id": "who", "ledger": Charging(ledger, job="monday")}
        after = rows_of(mdp.perturb(ray.data.from_arrow(parts), MATRIX, **options))
        assert after["who"].to_pylist() == ["anna", "ben", "anna", "anna"]
        spent = [ledger.budget(person).accounts[0].spent for person in ("anna", "ben")]
        assert spent == [2_700_003, 900_001]  # 0.9 is a double a little above nine tenths
        with pytest.raises(InvalidInput, match="was charged before"):  # nobody kept its blocks
            mdp.perturb(ray.data.from_arrow(parts), MATRIX, **options)
        with pytest.raises(BudgetExceeded, match="1 of 2 people"):
            mdp.perturb(ray.data.from_arrow(parts), MATRIX, id="who", ledger=ledger)
        empty = pa.table({"who": pa.array([None, "cleo"]), "x": [1.0, 2.0], "y": [1.0, 1.0]})
        with pytest.raises(InvalidInput, match="1 row has no who"):
            mdp.perturb(ray.data.from_arrow([parts[0], empty]), MATRIX, id="who", ledger=ledger)
        assert [ledger.budget(person).accounts[0].spent for person in ("anna", "ben")] == spent


def job_over_files(folder: Path) -> None:
    before = files(folder / "in", rows=100_000, count=3, groups=100_000)

    def copy() -> None:
        copied(folder)

    thread, killed = killing(lambda command, parent: command.startswith(b"ray::_protect_partition"), before=copy)
    mdp.save(MATRIX, folder / "cells.mdp")
    places = [str(folder / name) for name in ("in", "cells.mdp", "out")]
    assert main(["perturb", places[0], "--mechanism", places[1], "-o", places[2], "--engine", "ray"]) == 0
    thread.join()
    assert len(killed) == 1
    check(before, together(folder / "out"))
    assert not (folder_of(folder) / "key").exists()
    replayed(folder)


def texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricdp.tables.engines.ray.secrets.token_bytes", lambda count: KEY)
    made = rows_of(mdp.perturb(ray.data.from_arrow([WHOLE, WHOLE]), DRAWN, columns="text", drop="note"))
    monkeypatch.undo()
    assert made.column_names == ["id", "text"]
    assert made["id"].to_pylist() == [1, 2, 3, 4, 5] * 2
    # What Ray drew is what anybody draws who has the key, the place and the texts.
    task = task_for(WHOLE.schema.names, DRAWN, columns="text", disclosure=Disclosure(drop="note"))
    applied = spec_of(task).applied
    for block, start in ((0, 0), (1, 5)):
        alone = protect_table(WHOLE, task, Draws(KEY, f"block {block}", 0, applied))
        assert alone.equals(made.slice(start, 5).combine_chunks())
    few = ray.data.from_items([{"text": "the room", "n": number} for number in range(4)]).filter(expr="n > 2")
    assert mdp.perturb(few, STAYING).take_all() == [{"text": "the room", "n": 3}]  # blocks without rows have no columns
    with pytest.raises(OutOfDomain, match=r"block 1 of the data set: words in the column 'text' .* in row 1 ") as told:
        mdp.perturb(ray.data.from_arrow([BAD.slice(0, 1), BAD]), REFUSING, columns="text")
    assert "quagga" not in str(told.value)
    with pytest.raises(InvalidInput, match="the column 'id' must hold text"):
        mdp.perturb(ray.data.from_arrow(WHOLE), STAYING, columns="id")
    vectors = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0), pa.float32()), 2)})
    near = rows_of(mdp.perturb(ray.data.from_arrow(vectors), mdp.laplace(mdp.Lp(2), 1e6, dimension=2), columns="v"))
    assert near.schema == vectors.schema
    assert np.allclose(near["v"].to_pylist(), vectors["v"].to_pylist(), atol=0.01)
    kernel = rows_of(mdp.perturb(ray.data.from_arrow(pa.table({"word": WORDS})), KERNEL, columns="word"))
    assert kernel["word"].to_pylist() == WORDS


def test_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_sets(monkeypatch)
    traps()
    texts(monkeypatch)
    charged(tmp_path)
    monkeypatch.setattr(jobs, "PARTITION_ROWS", 1000)
    job_over_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = runpy.run_path(str(EXAMPLES / "ray_dataset.py"))
    assert shown["protected"].count() == 1000
