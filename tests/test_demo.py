"""The demo, in short: every file is there, and what it says is true."""

import numpy as np
import pyarrow.parquet as parquet
import pytest

from metricdp import demo
from metricdp.artifacts import load
from metricdp.errors import OutputProblem

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    shares = []
    made = demo.run(
        tmp_path_factory.mktemp("demo") / "out", nodes=40, seconds=15.0, trips=8, progress=lambda s, w: shares.append(s)
    )
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    return made


def test_files(result):
    names = {path.name for path in result.folder.iterdir()}
    assert names == {"protected.parquet", "trips.parquet", "mechanism.mdp", "report.html", "picture.png"}
    table = parquet.read_table(result.folder / "protected.parquet")
    assert table.column_names == ["trip", "t", "lat", "lon"]
    assert table.num_rows == result.story.rows
    assert load(result.folder / "mechanism.mdp").certificate.epsilon <= demo.EPSILON


def test_promise_and_cost(result):
    story = result.story
    assert story.audit.verdict == "holds"
    # Brute force over all pairs, written out here.
    space, matrix = result.mechanism.inputs, result.mechanism.matrix
    used = matrix[:, matrix.max(axis=0) > 0]
    logs = np.log(used / used.sum(axis=1, keepdims=True))
    for i in range(len(space)):
        for j in range(i):
            assert np.abs(logs[i] - logs[j]).max() <= demo.EPSILON * space.distances[i, j] * (1 + 1e-12)
    losses = {entry.name: entry.loss for entry in story.comparison.contenders}
    assert min(losses, key=lambda name: losses[name]) == "optimal"
    assert story.comparison.lower_bound <= losses["optimal"] <= losses["exponential, certified budget"]
    assert losses["exponential, remapped"] <= losses["exponential, certified budget"] + 1e-12


def test_reports_are_crossings(result):
    table = parquet.read_table(result.folder / "protected.parquet")
    positions = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    result.mechanism.outputs.encode(positions)  # raises for a stranger


def test_last_lines_are_plain_words(result):
    text = "\n".join(result.lines())
    assert "factor of two" in text
    assert "along the roads" in text
    assert "report.html" in text


def test_an_unusable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OutputProblem):
        demo.run(tmp_path / "file")


def test_the_table_is_protected_without_a_slack_that_would_not_hold_along_the_roads(result):
    assert result.story.guarantee.slack == 0.0
    table = parquet.read_table(result.folder / "trips.parquet")
    positions = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    codes = result.mechanism.inputs.encode(positions)  # every secret is a crossing, to the digit
    assert np.array_equal(result.mechanism.inputs.decode(codes), positions)
    page = (result.folder / "report.html").read_text(encoding="utf-8")
    assert "The secret is a crossing" in page


def test_the_commands_of_the_report_run(result, tmp_path, capsys):
    from metricdp.cli import main

    assert result.story.repeat[0].startswith("metricdp demo ")
    for line in result.story.repeat[1:]:
        assert main(line.replace("out.parquet", str(tmp_path / "out.parquet")).split()[1:]) == 0, line
    assert "holds" in capsys.readouterr().out


def test_a_larger_map_is_solved_on_windows(tmp_path, capsys):
    from metricdp.cli import main
    from metricdp.mechanisms import LocalMechanism

    assert main(["demo", str(tmp_path / "city"), "--city", "porto", "--nodes", "90"]) == 0
    said = capsys.readouterr().out
    assert "along all streets, which imply all pairs" in said
    assert "a report lies at most" in said
    assert "exponential" not in said
    made = load(tmp_path / "city" / "mechanism.mdp")
    assert isinstance(made, LocalMechanism)
    assert len(made.inputs) == 90
    page = (tmp_path / "city" / "report.html").read_text(encoding="utf-8")
    assert f"metricdp demo {tmp_path / 'city'} --city porto --nodes 90" in page
    assert "at most" in page
    assert "central Porto" not in page
