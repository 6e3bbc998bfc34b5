"""Count the pages and words of the guide, and its long sentences: python tools/words.py, from the top of the project.

Counted is what people wrote: README.md and docs/ without api.md and figures.md, and without the parts that tools write,
between `<!-- name: written by tools/pages.py -->` and `<!-- end -->`. Words are those of `wc -w`. A sentence is long
above 30 words; code, formulas, tables and headings are no sentences. `--long` prints the long ones. "With examples"
also counts those parts, except the help of the commands and the tables of the schema.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
WHOLLY_GENERATED = ("api.md", "figures.md")
REFERENCE = re.compile(r"<!-- (command_help|schema_tables|builders_api)[^>]*-->\n.*?<!-- end -->", re.DOTALL)
LONG = 30
PART = re.compile(r"<!-- \w+[^>]*: written by tools/pages\.py -->\n.*?<!-- end -->", re.DOTALL)
NUMBER = re.compile(r"<!-- number [^>]*? -->(.*?)<!-- end -->")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NOT_PROSE = re.compile(r"^(    |#|\||</?\w|<!--|---|:::)")
ITEM = re.compile(r"^\s*([-*]|\d+\.)\s+")
END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[^a-z])")


def pages() -> list[Path]:
    """The pages that people wrote, README.md first."""
    written = sorted(path for path in (PROJECT / "docs").rglob("*.md") if path.name not in WHOLLY_GENERATED)
    return [PROJECT / "README.md", *written]


def own_text(path: Path) -> str:
    """The text of a page without the parts that tools write."""
    return NUMBER.sub(r"\1", PART.sub("", path.read_text(encoding="utf-8")))


def sentences(text: str) -> list[str]:
    """The sentences of a page: of its paragraphs and of the items of its lists."""
    blocks = [""]
    for line in LINK.sub(r"\1", FENCE.sub("", text)).splitlines():
        if not line.strip() or (NOT_PROSE.match(line) and not ITEM.match(line)):
            blocks.append("")
        elif ITEM.match(line):
            blocks.append(ITEM.sub("", line))
        else:
            blocks[-1] += " " + line.strip()
    return [one.strip() for block in blocks for one in END.split(block) if one.strip()]


def main() -> None:
    """Print the words, the sentences and the long sentences of every page, and of all."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--long", action="store_true", help="print the long sentences")
    listed = parser.parse_args().long
    words = shown = count = longer = 0
    for path in pages():
        text = own_text(path)
        found = sentences(text)
        long = [one for one in found if len(one.split()) > LONG]
        words, count, longer = words + len(text.split()), count + len(found), longer + len(long)
        shown += len(REFERENCE.sub("", path.read_text(encoding="utf-8")).split())
        name = path.relative_to(PROJECT)
        print(f"{len(text.split()):6} words {len(found):5} sentences {len(long):4} long  {name}")
        for one in long if listed else ():
            print(f"       {one}")
    print(f"{len(pages())} pages, {words:,} words ({shown:,} with examples)")
    print(f"{longer} of {count:,} sentences have more than {LONG} words: {longer / count:.2%}")


if __name__ == "__main__":
    main()
