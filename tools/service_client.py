"""Write from the service itself its OpenAPI file, the client for JavaScript and TypeScript, and records for Python.

    python tools/service_client.py            write js/service/ and src/metricdp/service/answers.py
    python tools/service_client.py --check    write nothing, fail where something would change

For JavaScript every operation becomes a method and every schema an interface. That client has no dependencies: it needs
`fetch`, which browsers, Node, Deno and Bun have. For Python what comes back becomes frozen records.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from textwrap import fill, indent
from typing import Any

from metricdp.service.app import endpoints

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "js" / "service"
ANSWERS = PROJECT / "src" / "metricdp" / "service" / "answers.py"
WRITTEN = "written by tools/service_client.py from the OpenAPI file; change the service instead."
RUNTIME = (FOLDER / "runtime.js").read_text(encoding="utf-8")
RECORDS = {  # what the client for Python gives, by the names of the schemas; other parts of an answer are plain objects
    "Accuracy": "Accuracy", "Amount": "Amount", "Guarantee": "Guarantee", "LimitLeft": "LimitLeft",
    "BatchPerson": "BatchPerson", "BatchAnswer": "ReleasedBatch", "BudgetAnswer": "Budget", "JobAnswer": "Job",
    "ReleaseAnswer": "Released",
}  # fmt: skip
PYTHON = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}
TYPES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def typed(schema: dict[str, Any]) -> str:
    """Return the TypeScript type of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(dict.fromkeys(typed(part) for part in schema[word]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(TYPES[one] for one in kind)
    if kind == "array":
        inner = typed(schema["items"])
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    if kind == "object":
        return f"Record<string, {typed(inner_of(schema))}>"
    return TYPES.get(str(kind), "unknown")


def inner_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the values of an object; an empty one where any value is allowed."""
    inner = schema.get("additionalProperties")
    return inner if isinstance(inner, dict) else {}


def interface(name: str, schema: dict[str, Any]) -> str:
    """Return an object of the service as an interface."""
    needed, lines = (
        schema.get("required", []),
        [comment(schema.get("description", ""), ""), f"export interface {name} {{"],
    )
    for field, part in schema["properties"].items():
        lines.append(comment(part.get("description", ""), "  "))
        lines.append(f"  {field}{'' if field in needed else '?'}: {typed(part)};")
    return "\n".join(line for line in [*lines, "}"] if line)


def hinted(schema: dict[str, Any]) -> str:
    """Return the Python type of a schema."""
    if "$ref" in schema:
        return RECORDS.get(schema["$ref"].rpartition("/")[2], "dict[str, Any]")
    if "enum" in schema or "const" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema.get('enum', [schema.get('const')]))}]"
    if "anyOf" in schema:  # a part that may be missing stays a plain object
        return " | ".join(dict.fromkeys("dict[str, Any]" if "$ref" in one else hinted(one) for one in schema["anyOf"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(PYTHON[one] for one in kind)
    if kind == "array":
        return f"tuple[{hinted(schema['items'])}, ...]"
    if kind == "object":
        return f"dict[str, {hinted(inner_of(schema))}]"
    return PYTHON.get(str(kind), "Any")


def records(schemas: dict[str, Any]) -> str:
    """Return what the client for Python gives as a module of frozen records."""
    parts = [f'"""Answers as records: {WRITTEN}"""', "", "from __future__ import annotations", ""]
    parts += ["from dataclasses import dataclass", "from typing import Any, Literal"]
    for name, record in RECORDS.items():
        about = fill(f'"""{" ".join(schemas[name]["description"].split())}', 116, subsequent_indent="")
        about = about + "\n" * ("\n" in about) + '"""'
        fields = [
            f"{field}: {hinted(part)}".replace(f"[{record}, ...]", "[dict[str, Any], ...]")  # a part of itself is plain
            for field, part in schemas[name]["properties"].items()
        ]
        parts += [
            "",
            "",
            "@dataclass(frozen=True)",
            f"class {record}:",
            indent("\n".join([about, "", *fields]), "    "),
        ]
    return "\n".join(parts) + "\n"


def comment(text: str, indent: str) -> str:
    """Return a text as a comment, nothing where there is none."""
    return f"{indent}/** {' '.join(text.split())} */" if text else ""


def operations(description: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what can be asked for: a name, the way, the path, what goes in and what comes out."""
    found = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            sent = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
            found.append(
                {
                    "name": operation["operationId"],
                    "about": operation.get("description", operation["summary"]),
                    "method": method.upper(),
                    "path": path,
                    "parameters": re.findall(r"\{(\w+)\}", path),
                    "sent": None if sent is None else typed(sent),
                    "gives": gives(good.get("content", {})),
                }
            )
    return found


def gives(content: dict[str, Any]) -> str:
    """Return what an answer is: an object, bytes, events or text."""
    if "application/json" in content and content["application/json"].get("schema"):
        return typed(content["application/json"]["schema"])
    if "application/octet-stream" in content:
        return "Uint8Array"
    return "ServiceEvent" if "text/event-stream" in content else "string"


def method_of(one: dict[str, Any]) -> tuple[str, str]:
    """Return an operation as a method of the class, and as its declaration."""
    names = [*one["parameters"], *(["body"] if one["sent"] else [])]
    types = [*(f"{name}: string" for name in one["parameters"]), *([f"body: {one['sent']}"] if one["sent"] else [])]
    path = re.sub(r"\{(\w+)\}", r"${encodeURIComponent(\1)}", one["path"])
    how = {"Uint8Array": "bytes", "string": "text", "ServiceEvent": "events"}.get(one["gives"], "json")
    last = ", body" if one["sent"] else ""
    about = comment(one["about"], "  ")
    asked = f'return this.#{how}("{one["method"]}", `{path}`{last});'
    code = f"{about}\n  {one['name']}({', '.join(names)}) {{\n    {asked}\n  }}"
    result = "AsyncGenerator<ServiceEvent>" if how == "events" else f"Promise<{one['gives']}>"
    return code, f"{about}\n  {one['name']}({', '.join(types)}): {result};"


def files() -> dict[Path, str]:
    """Return every file that is written, by its place."""
    description = endpoints().openapi()
    methods = [method_of(one) for one in operations(description)]
    schemas = description["components"]["schemas"]
    interfaces = "\n\n".join(interface(name, schema) for name, schema in sorted(schemas.items()))
    head, _, tail = RUNTIME.partition("  // operations\n")
    declared = (FOLDER / "runtime.d.ts").read_text(encoding="utf-8")
    types_head, _, types_tail = declared.partition("  // operations\n")
    listed = "\n\n".join(code for code, _ in methods)
    return {
        FOLDER / "openapi.json": json.dumps(description, indent=1, ensure_ascii=False, sort_keys=True) + "\n",
        FOLDER / "client.js": f"/** A client of the metricdp service: {WRITTEN} */\n\n{head}{listed}\n{tail}",
        FOLDER / "client.d.ts": f"/** Types of the client: {WRITTEN} */\n\n{interfaces}\n\n{types_head}"
        + "\n\n".join(declaration for _, declaration in methods)
        + f"\n{types_tail}",
        ANSWERS: records(schemas),
    }


def main() -> int:
    changed = []
    for path, text in files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            changed.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if changed and "--check" in sys.argv:
        print(f"run `python tools/service_client.py`: {', '.join(changed)} would change", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
