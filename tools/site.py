"""Put the pages of the site together: python tools/site.py, before `zensical build`.

The pages of docs/ and those of papers/docs/ go to build/docs and build/docs/papers. Links between the two are true in
the repository; here they are written anew. The JavaScript module goes beside the page that draws with it.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "build" / "docs"
TO_PAPERS, FROM_PAPERS = re.compile(r"\]\(\.\./((?:\.\./)*)papers/docs/"), re.compile(r"\]\(\.\./\.\./docs/")


def main() -> None:
    """Copy all pages with what belongs to them."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(PROJECT / "docs", FOLDER)
    shutil.copytree(PROJECT / "papers" / "docs", FOLDER / "papers")
    shutil.copy(
        PROJECT / "js" / "dist" / "metricdp.js", FOLDER / "assets" / "try"
    )  # the page docs/try.md draws with it
    for page in FOLDER.rglob("*.md"):
        text = TO_PAPERS.sub(r"](\1papers/", page.read_text(encoding="utf-8"))
        page.write_text(FROM_PAPERS.sub("](../", text), encoding="utf-8")


if __name__ == "__main__":
    main()
