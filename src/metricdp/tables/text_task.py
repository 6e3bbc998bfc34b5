"""Which columns of a table hold texts, and what is done with them: what a task is for rows, this is for texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.options import CAREFREE, Disclosure, Names
from metricdp.tables.task import check_present, there_are
from metricdp.tables.trim import names_of
from metricdp.tables.values import is_text
from metricdp.text import TextMechanism

TRIED = ("text", "texts", "review", "reviews", "comment", "comments", "sentence", "message", "body", "content")


@dataclass(frozen=True)
class TextTask:
    """What is done to every batch: by which mechanism and rules, on which columns, and what leaves beside them."""

    mechanism: TextMechanism
    columns: tuple[str, ...]
    care: Disclosure = CAREFREE
    shown: bool = True

    @property
    def reports(self) -> tuple[str, ...]:
        """The columns that hold the protected texts: those of the texts."""
        return self.columns


@dataclass(frozen=True)
class TextRequest:
    """What a caller asks to be done to the texts of a table, before its columns are known.

    Errors name the columns only where `shown`: the first line of standard input may be a text.
    """

    mechanism: TextMechanism
    columns: Sequence[str] | str | None = None
    care: Disclosure = CAREFREE
    shown: bool = True

    def task(self, schema: pa.Schema, stored: Sequence[str] | None = None) -> TextTask:
        """Check what was asked for against the columns there are; `stored` are those of the file, where it has others.

        Columns that were named are flat ones: `review.text` is a column of that name.
        """
        chosen = names_of(self.columns) or only_column(schema, shown=self.shown)
        check_columns(schema, chosen, self.care, stored, shown=self.shown)
        return TextTask(self.mechanism, chosen, self.care, self.shown)


def only_column(schema: pa.Schema, *, shown: bool = True) -> tuple[str, ...]:
    """Return the column that is meant where none was named: the only one of text, or the one that is called so."""
    texts = [field.name for field in schema if holds_text(field.type)]
    named = [name for name in texts if name.strip().lower() in TRIED]
    chosen = tuple(texts if len(texts) == 1 else named)
    if len(chosen) != 1:
        there = there_are(schema.names, shown=shown)
        raise InvalidInput(f"say which column holds the texts, such as --column text. {there}")
    return chosen


def check_columns(
    schema: pa.Schema, chosen: Names, care: Disclosure, stored: Sequence[str] | None = None, *, shown: bool = True
) -> None:
    """Refuse a table whose columns are not there, not texts, or wanted for two things at once."""
    check_present(schema.names, chosen, shown=shown)
    there = schema.names if stored is None else stored
    lists = [name for name in chosen if name not in there and name.endswith("]")]
    if lists:
        raise InvalidInput(
            f"the column {lists[0].rpartition('[')[0]!r} holds lists: join the items of a row to one text first."
        )
    if len(set(chosen)) < len(chosen):
        raise InvalidInput(f"the columns of texts must be different ones, got {', '.join(chosen)}.")
    for name in chosen:
        if schema.names.count(name) > 1:
            raise InvalidInput(
                f"the table has more than one column {name!r}: rename one of them, or name it as {name}#1 or {name}#2 "
                "where the table is a file."
            )
        if not holds_text(schema.field(name).type):
            raise InvalidInput(f"the column {name!r} must hold text, it holds {schema.field(name).type}.")
    for name in (*care.trim.touched, *care.kept):
        if name in chosen:
            raise InvalidInput(f"{name!r} is protected: it is neither dropped, coarsened nor kept as it is.")
        if not any(name == other or name.startswith((f"{other}.", f"{other}[")) for other in schema.names):
            check_present(schema.names, [name], shown=shown)


def holds_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds texts, be it by way of a dictionary."""
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def text_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of protected texts: no dictionary, since they hardly repeat."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def text_fields(schema: pa.Schema, task: TextTask) -> list[pa.Field]:
    """Return the fields of the protected texts."""
    return [schema.field(name).with_type(text_type(schema.field(name).type)) for name in task.columns]
