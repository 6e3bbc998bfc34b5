"""Write what comes from declarations: python tools/pages.py, from the top of the repository.

Parts of the pages stand between `<!-- name: written by tools/pages.py -->` and `<!-- end -->`; the rest is by hand.
Tables of studies are `<!-- results aipo_table_2 city=rome: written by tools/pages.py -->`, and single numbers within a
sentence `<!-- number aipo_table_2 city=rome -->1.23<!-- end -->`: see metricdp_papers/common/markdown.py. A whole
file is `<!-- example examples/phone.py: written by tools/pages.py -->`: pages show their code wherever they are read.
`js/fields.json` says what the fields of a mechanism file may be; `node build.js` in `js/` puts it into JavaScript.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import metricdp as mdp
from metricdp.artifacts.codecs import CERTIFICATE, CONCENTRATED_FIELDS, GUARANTEE_FIELDS, LATER
from metricdp.cli import advice, app
from metricdp.design import BUILDERS
from metricdp.design.local.build import FEW
from metricdp.mechanisms import MECHANISMS
from metricdp.metrics import METRICS
from metricdp.registry import Field, plain_field
from metricdp.solvers import choice
from metricdp.spaces import SPACES
from metricdp.tables.formats import FORMATS
from metricdp_papers import STUDIES
from metricdp_papers.common import markdown
from metricdp_papers.common.rows import read_csv

PROJECT = Path(__file__).resolve().parents[1]
PART = re.compile(r"(<!-- (\w+)([^:>]*): written by tools/pages\.py -->\n).*?(<!-- end -->)", re.DOTALL)
NUMBER = re.compile(r"(<!-- number ([^>]*?) -->).*?(<!-- end -->)")
PAGES = (PROJECT / "docs", PROJECT / "papers" / "docs")
RESULTS = PROJECT / "papers" / "docs" / "results"  # of studies; what benchmarks recorded is in docs/results


def builders_api() -> str:
    """The builders, as entries of the API page."""
    return "".join(f"::: {one.module}.{one.function.__name__}\n" for one in BUILDERS)


def builders_table() -> str:
    """The builders, with what the command lets one choose."""
    rows = ["| builder | what it is | at the command line |", "| --- | --- | --- |"]
    for one in BUILDERS:
        options = " ".join(f"`--{name}`" for name in one.options)
        elsewhere = f"`{one.elsewhere}`" if one.elsewhere else ""
        command = f"`--builder {one.name}` {options}".strip() if one.at_command else elsewhere
        rows.append(f"| `mdp.{one.name}` | {one.about} | {command} |")
    return "\n" + "\n".join(rows) + "\n\n"


def formats_table() -> str:
    """The formats of tables, with their names and what they keep."""
    rows = ["| format | files | what it is | kept as it came | needs |", "| --- | --- | --- | --- | --- |"]
    for one in FORMATS:
        files = " ".join(f"`{end}`" for end in one.suffixes)
        files += ", each also `.gz` `.zst`" if one.packed else ", `FILE::TABLE`" if one.tables else ""
        needs = f"`metricdp[{one.extra}]`" if one.extra else ""
        rows.append(f"| `{one.name}` | {files} | {one.about} | {one.keeps} | {needs} |")
    return "\n" + "\n".join(rows) + "\n\n"


def schema_tables() -> str:
    """The parts of the schema of all JSON: a table of the fields of each."""
    parts = json.loads((PROJECT / "src" / "metricdp" / "metricdp.schema.json").read_text(encoding="utf-8"))["$defs"]
    lines = []
    for name, part in parts.items():
        lines += ["", f"## {name.replace('_', ' ').capitalize()}", "", part.get("description", "")]
        if "properties" in part:
            lines += ["", "| field | type | what it is |", "| --- | --- | --- |"]
            lines += [f"| `{field}` | {_type_of(one)} | {_about(one)} |" for field, one in part["properties"].items()]
    return "\n".join(lines) + "\n\n"


def _about(schema: dict[str, Any]) -> str:
    return schema.get("description", "").replace("|", "\\|")


def _type_of(schema: dict[str, Any]) -> str:
    """Return the type of a field of the schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "number" if name == "number" else f"[{name.replace('_', ' ')}](#{name.replace('_', '-')})"
    if "anyOf" in schema and "type" not in schema:
        return " or ".join(dict.fromkeys(_type_of(one) for one in schema["anyOf"]))
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    kinds = schema.get("type", "object")
    if kinds == "array":
        return f"list of {_type_of(schema['items'])}"
    return " or ".join([kinds] if isinstance(kinds, str) else kinds)


def studies_table() -> str:
    """The studies that run by name."""
    rows = ["| study | what it shows |", "| --- | --- |"]
    rows += [f"| `metricdp reproduce {one.name}` | {one.about} |" for one in STUDIES]
    return "\n" + "\n".join(rows) + "\n\n"


def studies_state() -> str:
    """Every table of every study: what of it is recorded, and the command that runs it."""
    rows = ["| study | table | recorded | command |", "| --- | --- | --- | --- |"]
    for entry in STUDIES:
        study = entry.whole()
        for table in study.tables:
            path = RESULTS / f"{study.name}_{table.stem}.csv"
            facts = dict(line.partition(": ")[::2] for line in read_csv(path)[0]) if path.is_file() else {}
            state = f"[{facts.get('pieces', 'yes')}](results/{path.name})" if facts else "missing"
            number = f"'{table.number}'" if " " in table.number else table.number
            command = facts.get("command", f"metricdp reproduce {study.name} --table {number} --full")
            rows.append(f"| {study.name} | {table.heading} | {state} | `{command}` |")
    return "\n" + "\n".join(rows) + "\n\n"


def metrics_table() -> str:
    """The metrics, with the words the command knows."""
    rows = ["| metric | what it measures | at the command line |", "| --- | --- | --- |"]
    for one in METRICS:
        words = " ".join(f"`--metric {word}`" for word in one.words)
        where = "mdp" if one.name in mdp.__all__ else "mdp.metrics"
        rows.append(f"| `{where}.{one.name}` | {one.about} | {words} |")
    return "\n" + "\n".join(rows) + "\n\n"


def cities_table() -> str:
    """What was measured on whole cities, newest of every figure, without comparisons and grids."""
    rows = ["| problem | asked | reached |", "| --- | --- | --- |"]
    rows += [
        f"| {one['what']} | {one['asked']} | {one['measured']} |"
        for one in measured()
        if not {"regions", "picture"} & set(one["values"])
        and not re.search("against dense|in one piece|cells", one["what"])
    ]
    return "\n" + "\n".join(rows) + "\n\n"


def scales_columns() -> str:
    """What columns, blocks and the whole program reach on the same roads, in one run."""
    rows = [
        "| crossings | way | gap | processor | loss, km | none below, km |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    found = [one["values"] for one in measured("scales") if "ways" in one["values"]]
    rows += [
        f"| {one['size']} | {one['how']} | {one['gap']:.2%} | {one['work']:.3g} s | {one['loss']:.6g} | "
        f"{one['bound']:.6g} |"
        for one in sorted(found, key=lambda one: (one["size"], one["work"]))
    ]
    return "\n" + "\n".join(rows) + "\n\n"


def scales_families() -> str:
    """What the wider families of places lose over a thousand random spaces, as a share above the proven bound."""
    names = {
        "hierarchical": "steps down a tree, `mdp.hierarchical`",
        "dantzig_wolfe": "columns, `metricdp_papers.columns`, gap 1 %",
        "condensed": 'condensed, `mdp.exponential(..., budget="half")`',
        "masked": "masks (rings), `mdp.masked`",
        "protection_sets": "protection sets, `mdp.exponential` on them",
        "personal_errors": "the same, one place in four asking for twice the error",
    }
    found = {one["what"].partition(":")[0]: one for one in measured("scales") if "random spaces" in one["what"]}
    rows = ["| family | hold, and loss above the bound |", "| --- | --- |"]
    rows += [f"| {about} | {found[name]['measured']} |" for name, about in names.items() if name in found]
    return "\n" + "\n".join(rows) + "\n\n"


def survey_missing() -> str:
    """Which families are not in the survey's comparison of a domain, and why: once for every reason."""
    why: dict[tuple[str, str], dict[str, None]] = {}
    for row in read_csv(RESULTS / "survey_comparison.csv")[1]:
        if row["measure"] == "not there":
            why.setdefault((row["family"], row["note"]), {})[row["domain"]] = None
    every = max(len(domains) for domains in why.values())
    rows = ["| family | domains | why |", "| --- | --- | --- |"]
    for (family, note), domains in sorted(why.items()):
        where = "all" if len(domains) == every else ", ".join(domains)
        rows.append(f"| {family} | {where} | {note.replace('|', chr(92) + '|')} |")
    return "\n" + "\n".join(rows) + "\n\n"


def scales_maps() -> str:
    """The maps of whole cities, with what was measured by crossing."""
    found = [one for one in measured("elastic") if one["values"].get("picture") in ("rome", "nyc")]
    return (
        "".join(
            "\n![Maps of a city: protection, loss and the error of the best guess]"
            f"(../../docs/images/elastic_{city}.png)\n\n"
            f"*{one['what']} (`docs/results/elastic_{city}.csv`, one row a square of the map). {one['measured']}.*\n"
            for one in found
            for city in [one["values"]["picture"]]
        )
        + "\n"
    )


def scales_cities() -> str:
    """What windows reach on whole cities under elastic promises and local scales."""
    rows = ["| problem | asked | reached |", "| --- | --- | --- |"]
    kept = [one for one in measured("elastic") if "steps" in one["values"]]
    rows += [f"| {one['what']} | {one['asked']} | {one['measured']} |" for one in kept]
    return "\n" + "\n".join(rows) + "\n\n"


def scales_spaces() -> str:
    """What builders lose on a thousand random spaces under either metric."""
    rows = ["| metric, builder | asked | measured |", "| --- | --- | --- |"]
    kept = [one for one in measured("elastic") if one["values"].get("spaces")]
    rows += [f"| {one['what']} | {one['asked']} | {one['measured']} |" for one in kept]
    return "\n" + "\n".join(rows) + "\n\n"


def vocabularies_table() -> str:
    """What mechanisms on whole vocabularies lose, beside what none can go below."""
    rows = ["| words | epsilon | prior | exponential | unchanged | optimal | unchanged | none below |"]
    rows.append("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    names = ("words", "epsilon", "prior", "how")
    kept = [one["values"] for one in measured("vocabularies")]
    found = {tuple(one[name] for name in names): one for one in kept}
    for words, epsilon, prior in sorted({key[:3] for key in found}):
        plain, best = (
            found.get((words, epsilon, prior, how)) for how in ("exponential, certified", "kernel in balance")
        )
        if plain is None or best is None:
            continue
        cells = [f"{one['loss']:.4g} | {one['unchanged']:.2%}" for one in (plain, best)]
        rows.append(f"| {words:,} | {epsilon:g} | {prior} | {' | '.join(cells)} | {best['bound']:.4g} |")
    return "\n" + "\n".join(rows) + "\n\n"


def windows_table() -> str:
    """What windows of whole cities lose on words, beside the kernel in balance."""
    rows = ["| words | epsilon | prior | kernel in balance | none below | windows | unchanged |"]
    rows.append("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    kept = [one["values"] for one in measured("vocabularies")]
    found = {(one["words"], one["epsilon"], one["prior"], one["how"]): one for one in kept}
    for words, epsilon, prior, how in sorted(found):
        best = found.get((words, epsilon, prior, "kernel in balance"))
        if how == "windows" and best is not None:
            here = found[words, epsilon, prior, how]
            cells = f"{best['loss']:.4g} | {best['bound']:.4g} | {here['loss']:.4g} | {here['unchanged']:.2%}"
            rows.append(f"| {words:,} | {epsilon:g} | {prior} | {cells} |")
    return "\n" + "\n".join(rows) + "\n\n"


def retrieval_table() -> str:
    """What protected queries find of the ten nearest, by set and law."""
    kept = [one["values"] for one in measured("retrieval")]
    laws = list(dict.fromkeys(one["law"] for one in kept))
    found = {(one["set"], one["epsilon"], one["law"]): one for one in kept}
    rows = ["| set | epsilon | " + " | ".join(laws) + " |", "| --- | ---: |" + " ---: |" * len(laws)]
    for name in dict.fromkeys(one["set"] for one in kept):
        here = {key[1:]: one for key, one in found.items() if key[0] == name}
        for epsilon in sorted({key[0] for key in here}):
            cells = [f"{here[epsilon, distribution]['recall']:.2f}" for distribution in laws]
            rows.append(f"| {name} | {epsilon:g} | {' | '.join(cells)} |")
        cells = [
            f"{next(one['clean'] for key, one in here.items() if key[1] == distribution):.2f}" for distribution in laws
        ]
        rows.append(f"| {name} | no noise | {' | '.join(cells)} |")
    return "\n" + "\n".join(rows) + "\n\n"


def recognition_table() -> str:
    """What is still recognised in protected images and series: the task, and who it was."""
    kept = [one["values"] for one in measured("recognition")]
    rows = []
    for data in dict.fromkeys(one["data"] for one in kept):
        own = [one for one in kept if one["data"] == data]
        levels = sorted({one["epsilon"] for one in own if one["epsilon"] is not None})
        names = [*(f"{level:g}" for level in levels), "no noise"]
        found = {(one["release"], one["epsilon"]): one for one in own}
        chance = f"{own[0]['task_by_chance']:.0%} / {own[0]['person_by_chance']:.0%} / {1 / own[0]['rows']:.1%}"
        rows += ["", f"| {data}: task / person / record, by chance {chance} | " + " | ".join(names) + " |"]
        rows.append("| --- |" + " ---: |" * len(names))
        for release in dict.fromkeys(one["release"] for one in own):
            cells = [found.get((release, level)) for level in (*levels, None)]
            told = [
                "" if one is None else f"{one['task']:.0%} / {one['person']:.0%} / {one['found']:.0%}" for one in cells
            ]
            rows.append(f"| {release} | " + " | ".join(told) + " |")
    return "\n".join(rows) + "\n\n"


def composition_table() -> str:
    """What many releases of one mean error cost together: added up, and in rho."""
    rows = ["| releases | apart | Laplace, added up (pure) | Laplace in rho | Gaussian in rho | gain |"]
    rows.append("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for one in (found["values"] for found in measured("concentrated") if "linear" in found["values"]):
        sums = [one[name] for name in ("linear", "laplace_rho", "gaussian_rho")]
        cells = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in sums]
        gain = f"{one['linear'] / one['gaussian_rho']:.2g}"
        rows.append(f"| {one['releases']:,} | {1000 * one['distance_km']:g} m | {' | '.join(cells)} | {gain} |")
    return "\n" + "\n".join(rows) + "\n\n"


def covariance_table() -> str:
    """How often words stay and how many they become, by the share of their covariance in the noise."""
    rows = [
        "| epsilon | share | a word stays | in sparse regions | different words | in sparse regions | in Euclid's |"
    ]
    rows.append("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for one in (found["values"] for found in measured("shapes") if "euclidean" in found["values"]):
        names = ("stays", "stays_sparse", "different", "different_sparse")
        cells = " | ".join(f"{one[name]:.0%}" for name in names)
        rows.append(f"| {one['epsilon']:g} | {one['share']:g} | {cells} | {one['euclidean']:.3g} |")
    return "\n" + "\n".join(rows) + "\n\n"


def solvers_table() -> str:
    """Which solver is chosen, from which size."""
    side, gap, memory = int(choice.ROUGH_SIZE**0.5), f"{100 * choice.ROUGH_GAP:g} %", f"{choice.MEMORY / 1e9:g} GB"
    lines = [
        ("secrets x reports", "asked gap", "auto takes"),
        ("---", "---", "---"),
        (f"up to {choice.ROUGH_SIZE:,} ({side} x {side})", "any", f"interior point while it needs at most {memory}"
         " and fits the time, else first order"),
        ("more", f"{gap} or more", "first order"),
        ("more", f"below {gap}", "as in the first row"),
        (f"more than {FEW:,} secrets", "any", "first order on [windows](../how-to/cities.md), on cores or "
         "`mdp.solvers.Gpu()`; nothing is n x n"),
        (f"more than {FEW:,} secrets far apart, as words are", "any",
         "a [kernel in balance](../how-to/text.md): no program, no table"),
    ]  # fmt: skip
    return "\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def extras_table() -> str:
    """The extras of the project file, with the comment above each."""
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    rows, about = ["| extra | for | brings |", "| --- | --- | --- |"], ""
    for line in section.splitlines():
        if line.startswith("#"):
            about = line.lstrip("# ")
        elif found := re.match(r"([\w-]+) = \[(.*)\]", line):
            needs = ", ".join(f"`{need}`" for need in re.findall(r'"([^"]+)"', found[2]))
            rows.append(f"| `{found[1]}` | {about} | {needs} |")
    return "\n" + "\n".join(rows) + "\n\n"


def borders_table() -> str:
    """What regions of a city would exchange, and how much faster an iteration would be."""
    (found,) = (one["values"] for one in measured() if "regions" in one["values"])
    ways = list(found["regions"][0]["faster"])
    rows = [
        "| regions | rows that several touch | told in an iteration | by the busiest | " + " | ".join(ways) + " |",
        "| --- " * (4 + len(ways)) + "|",
    ]
    for one in found["regions"]:
        told = f"{one['told'] / 1e6:.1f} MB | {one['most_told'] / 1e6:.2f} MB"
        times = " | ".join(f"{one['faster'][way]:.2g} times" for way in ways)
        rows.append(f"| {one['regions']} | {one['shared_rows']:.0%} | {told} | {times} |")
    inner = f"{found['entries'] / 1e6:.1f} million entries, {found['regions'][0]['inner'] / 1e6:.0f} MB moved in memory"
    rows += [
        "",
        f"Without a cut: {inner} in every iteration; "
        + " and ".join(f"{1000 * seconds:.3g} ms on {machine}" for machine, seconds in found["iteration"].items())
        + ".",
    ]
    (larger,) = (one["values"]["seconds"] for one in measured() if one["what"].endswith("one machine with a GPU"))
    cores = [f"{1000 * seconds:.0f} ms on {name}" for name, seconds in larger.items() if name.endswith("cores")]
    rows += ["", f"One machine with more cores, measured: {', '.join(cores)}."]
    return "\n" + "\n".join(rows) + "\n\n"


def said(line: str) -> str:
    """Return a measurement with the bound said as it holds: old lines of results stay as they were written."""
    return line.replace("no mechanism below", "none with these reports below")


def cities_picture() -> str:
    """The map of losses with its caption; nothing before it was drawn."""
    about = (
        "Dark crossings pay most, those where streets are dense; a lonely crossing, whose neighbours are far away, "
        "pays least. The bound is one for the average, not for a single crossing."
    )
    lines = [one["measured"] for one in measured() if "picture" in one["values"]]
    picture = "![A map of Rome, every crossing in the colour of its expected loss](../images/cities.png)"
    return "\n" + "".join(f"{picture}\n\n*Rome at epsilon 10/km, {said(line)}. {about}*\n\n" for line in lines)


def measured(group: str = "cities") -> list[dict[str, Any]]:
    """Return the newest line of every figure of a group."""
    spec = spec_from_file_location("figures", PROJECT / "benchmarks" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    figures = module_from_spec(spec)
    spec.loader.exec_module(figures)
    found: list[dict[str, Any]] = figures.newest(figures.RESULTS / f"{group}.jsonl")
    return found


def choose_table() -> str:
    """For whom each mechanism is: what `metricdp choose` answers from."""
    return f"\n{advice.table()}\n\n"


def choose_questions() -> str:
    """What decides: what `metricdp choose` asks."""
    return f"\n{advice.paragraphs()}\n\n"


def command_help() -> str:
    """Every command with its options, from its own help."""
    # the usage lines say how this Python was started, where that was with `python -m`
    pages = re.sub(r"^(metricdp(?: [a-z]+)*) -m [\w.]+", r"\1", app.generate_docs(), flags=re.MULTILINE)
    return (
        "\n" + "\n".join(line.rstrip() for line in pages[pages.index("## metricdp ") :].splitlines()).strip() + "\n\n"
    )


PARTS = {
    "choose_table": choose_table,
    "choose_questions": choose_questions,
    "command_help": command_help,
    "cities_table": cities_table,
    "composition_table": composition_table,
    "covariance_table": covariance_table,
    "scales_columns": scales_columns,
    "scales_families": scales_families,
    "scales_cities": scales_cities,
    "survey_missing": survey_missing,
    "scales_maps": scales_maps,
    "scales_spaces": scales_spaces,
    "solvers_table": solvers_table,
    "retrieval_table": retrieval_table,
    "windows_table": windows_table,
    "recognition_table": recognition_table,
    "vocabularies_table": vocabularies_table,
    "extras_table": extras_table,
    "borders_table": borders_table,
    "cities_picture": cities_picture,
    "metrics_table": metrics_table,
    "builders_api": builders_api,
    "builders_table": builders_table,
    "formats_table": formats_table,
    "schema_tables": schema_tables,
    "studies_table": studies_table,
    "studies_state": studies_state,
}


def fields() -> str:
    """The fields of a mechanism file as JSON, one declaration a line."""
    tables: dict[str, Mapping[str, Any]] = {
        registry.sort: {
            name: {key: entry[key] for key in ("since", "promise", "along", "policy", "fields") if key in entry}
            for name, entry in table.items()
        }
        for registry, table in ((registry, registry.table()) for registry in (METRICS, SPACES, MECHANISMS))
    }
    records: dict[str, Mapping[str, Field]] = {
        "pure": GUARANTEE_FIELDS,
        "concentrated": CONCENTRATED_FIELDS,
        "certificate": CERTIFICATE,
    }
    tables |= {sort: {name: plain_field(kind) for name, kind in one.items()} for sort, one in records.items()}
    lines = []
    for sort, entries in (tables | {"later": LATER}).items():
        inner = (f"    {json.dumps(name)}: {json.dumps(entry, allow_nan=False)}" for name, entry in entries.items())
        lines.append(f"  {json.dumps(sort)}: {{\n" + ",\n".join(inner) + "\n  }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def written(page: str) -> str:
    """Return a page with its parts as the declarations and the recorded results have them now."""
    page = NUMBER.sub(lambda found: f"{found[1]}{markdown.value(_results(found[2]), found[2])}{found[3]}", page)
    return PART.sub(lambda found: f"{found[1]}{_part(found[2], found[3])}{found[4]}", page)


def _results(words: str) -> Path:
    """Return the folder that holds a recorded table: one of a study, or one of a benchmark."""
    name = f"{words.split()[0]}.csv"
    return next((one for one in (RESULTS, PROJECT / "docs" / "results") if (one / name).is_file()), RESULTS)


def figures_table(words: str) -> str:
    """Return what was asked for and measured in a group, `<!-- figures devices: ... -->`, or of those with a word."""
    group, _, having = words.partition(" ")
    lines = ["| what | asked for | measured |", "| --- | --- | --- |"]
    kept = [one for one in measured(group) if having in one["what"]]
    lines += [f"| {one['what']} | {one['asked']} | {one['measured']} |" for one in kept]
    return "\n" + "\n".join(lines) + "\n\n"


def _part(name: str, words: str) -> str:
    if name == "figures":
        return figures_table(words.strip())
    if name == "example":
        path = PROJECT / words.strip()
        language = {".py": "python", ".mjs": "js"}[path.suffix]
        return f"\n```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```\n\n"
    return f"\n{markdown.table(_results(words), words)}\n" if name == "results" else PARTS[name]()


def main() -> int:
    """Write everything that has changed."""
    paths = [path for pages in PAGES for path in sorted(pages.rglob("*.md"))]
    wanted = {path: written(path.read_text(encoding="utf-8")) for path in paths}
    wanted[PROJECT / "js" / "fields.json"] = fields()
    for path, after in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != after:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(PROJECT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
