"""The commands about mechanism files: explain one, write it for a device, make keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from metricdp import messages
from metricdp.cli import terminal
from metricdp.cli.options import Corners, Output, Verbose
from metricdp.cli.tree import NO_PRUNING, UNSIGNED, PruneOptions, prune_file
from metricdp.errors import InvalidInput
from metricdp.rendering import plural

if TYPE_CHECKING:
    from metricdp.artifacts import Inspection
    from metricdp.mechanisms import Mechanism


def inspect(source: str, /, *, key: str | None = None, json: bool = False, verbose: Verbose = False) -> int:
    """Explain a mechanism file: what it is, what it guarantees, what was verified, who signed it.

    An example: `metricdp inspect cells.mdp --key me.pub`

    Args:
        source: A mechanism file.
        key: A public key file; the file is refused unless this key signed it.
        json: Print everything as JSON.
        verbose: Print everything that is known about the mechanism.
    """
    from metricdp.artifacts import inspect as open_file
    from metricdp.cli import guarantees, summaries
    from metricdp.mechanisms import MECHANISMS
    from metricdp.metrics import graph_of
    from metricdp.units import HOP

    found = open_file(source, trusted=key)
    if json:
        terminal.say_json(_values(found), sort_keys=True)
        return 0
    mechanism = found.mechanism
    snap = guarantees.snap_of(mechanism)
    about = f"{MECHANISMS.named(found.kind).about} ({found.kind}), checksum correct"
    if not verbose:
        terminal.say(*summaries.inspect_lines(found, about, _signature(found, key), snap))
        return 0
    terminal.say(f"{source}: {about}.")
    terminal.say(f"From {mechanism.inputs} to {mechanism.outputs}.")
    terminal.say(*guarantees.guarantee_lines(mechanism, snap=snap))
    terminal.say(f"In short: {guarantees.guarantee_sentence(mechanism, snap=snap)}")
    if (graph := graph_of(mechanism.inputs.metric)) is not None and mechanism.guarantee.unit == HOP:
        terminal.say(
            f"Policy: {graph.fingerprint}, a graph of {plural(graph.nodes, 'place')} and "
            f"{plural(len(graph.edges), 'edge')}. A guarantee in its hops is none in those of another, and the ledger "
            "has an account for each."
        )
    terminal.say(f"Size: {_size(found.bytes)}; {_storage(found)}; format version {found.version}.")
    terminal.say(f"Licence of the data: {found.licence or 'not stated'}.")
    terminal.say(_signature(found, key))
    terminal.say(f"sha256 {found.sha256}")
    return 0


def export(
    source: str,
    /,
    *,
    output: Output,
    storage: Literal["dense", "sparse", "quantised"] | None = None,
    bits: int | None = None,
    around: Corners | None = None,
    radius: str | None = None,
    pruning: Annotated[PruneOptions, Parameter(name="*")] = NO_PRUNING,
    licence: str | None = None,
    key: str | None = None,
    vectors: str | None = None,
    json: bool = False,
    verbose: Verbose = False,
    overwrite: bool = False,
) -> int:
    """Write a mechanism file again for a device: smaller, a district of it, without some places, signed.

    An example: `metricdp export cells.mdp -o phone.mdp --storage quantised --bits 16 --key me.key`

    A district: `metricdp export rome.mdp -o district.mdp --around 41.9,12.48 --radius 3km`. A device that asked a
    server for the district around its own place would show that place: ship districts that are public.

    Never a report from some areas: `metricdp export porto/places.mdp --prune --tree porto --areas Bonfim -o mine.mdp`

    Args:
        source: A mechanism file.
        output: Where the new file goes.
        storage: How probabilities are stored: dense, sparse or quantised. sparse is exact, without zeros; quantised has
            whole numbers, certified as such, and is the default for tables. Mechanisms of whole cities are sparse.
        bits: For quantised: probabilities are whole multiples of 1 / 2**bits.
        around: Keep the secrets around this place only, such as 41.9,12.48. Their guarantee stays the same, and so do
            all reports. With --prune the reports around this place are removed instead.
        radius: How far around it, such as 3km.
        licence: Who owns the data in it and under which terms. Unless given it stays as it is. Streets that come with
            metricdp have one already.
        key: A private key file from `metricdp keys`, to sign with.
        vectors: The file with the vectors of a vocabulary. The new file names it, with its checksum, and holds no copy.
        json: Print the result as JSON.
        verbose: Print everything that is known about the new file.
        overwrite: Replace a file that is there.
    """
    from metricdp.artifacts import inspect as open_file
    from metricdp.artifacts import save
    from metricdp.artifacts.storage import layout_of
    from metricdp.cli import guarantees
    from metricdp.design.quantised import quantised
    from metricdp.files import check_target
    from metricdp.mechanisms import MECHANISMS

    check_target(output, source=source, overwrite=overwrite)
    pruned = pruning.spec(around, radius)
    if pruned is not None:
        if (storage, bits, licence, vectors) != (None, None, None, None):
            raise InvalidInput("--prune writes a file of its own: export that file for --storage, --bits and the rest.")
        return prune_file(source, output, pruned, key, json=json, verbose=verbose)
    if (around is None) != (radius is None):
        raise InvalidInput("--around and --radius belong together, such as --around 41.9,12.48 --radius 3km.")
    before = open_file(source)
    terms = (before.licence or None) if licence is None else licence
    made = before.mechanism if around is None or radius is None else _district(before.mechanism, around, radius)
    kind = MECHANISMS.kind(made)
    chosen = storage or ("quantised" if kind is not None and kind.holds_table else layout_of(made, None).storage)
    if bits is not None and chosen != "quantised":
        raise InvalidInput("--bits belongs to --storage quantised.")
    if chosen == "quantised":
        made = quantised(made, bits=bits)
    save(made, output, storage=chosen, licence=terms, key=key, vectors=vectors)
    after = open_file(output, vectors=vectors)
    if json:
        terminal.say_json(_values(after), sort_keys=True)
        return 0
    done = f"{output}: {_size(after.bytes)} (before {_size(before.bytes)}); {_storage(after)}."
    unsigned = [UNSIGNED] if before.signed_by and not after.signed_by else []
    if not verbose:
        watch = [*unsigned, _signature(after, None)]
        terminal.say(*terminal.three_lines(done, messages.headline(after.mechanism.guarantee), watch))
        return 0
    terminal.say(done)
    terminal.say(*guarantees.guarantee_lines(after.mechanism, snap=guarantees.snap_of(after.mechanism)), *unsigned)
    terminal.say(_signature(after, None))
    return 0


def keys(name: str, /) -> int:
    """Make a pair of keys: NAME.key to sign mechanism files with, NAME.pub to hand out.

    An example: `metricdp keys me`

    Args:
        name: What the two files are called, without an ending.
    """
    from metricdp.artifacts.signing import create_keys, read_public

    private, public = create_keys(name)
    terminal.say(f"{private}: the private key. Keep it to yourself: anybody who has it can sign in your name.")
    terminal.say(f"{public}: the public key. Hand it out: with it everybody can check what you signed.")
    terminal.say(f"ed25519 {read_public(public)}")
    return 0


def _district(mechanism: Mechanism, around: str, radius: str) -> Mechanism:
    """Return the rows of a mechanism for the secrets around a place."""
    from metricdp.mechanisms import MECHANISMS
    from metricdp.units import parse_distance, parse_numbers

    kind = MECHANISMS.kind(mechanism)
    if kind is None or not (kind.holds_table or kind.is_sparse):
        raise InvalidInput(
            "--around is for mechanisms on finitely many places with rows of their own; this one has none to choose "
            "from (a kernel is one distribution over all its words: design one for fewer)."
        )
    place = parse_numbers(around, "around", "numbers such as 41.9,12.48")
    holder: Any = mechanism
    reach = parse_distance(radius, mechanism.inputs.ground.unit, option="radius")
    district: Mechanism = holder.around(place, reach)
    return district


def _storage(found: Inspection) -> str:
    from metricdp.mechanisms import MECHANISMS
    from metricdp.registry import Many, Table

    if found.storage == "quantised":
        return f"probabilities as whole multiples of 1/2^{found.bits}, certified as stored"
    kind = MECHANISMS.named(found.kind)
    if words := getattr(kind, "storage", None):
        held = f"vectors in {' and '.join(found.vectors)}" if found.vectors else "vectors"
        return str(words.format(vectors=held))
    if found.storage == "sparse":
        return "zeros left out, exact"
    return (
        "stored in full"
        if any(isinstance(field, Table | Many) for field in kind.fields.values())
        else "no table, noise is drawn"
    )


def _signature(found: Inspection, key: str | None) -> str:
    if not found.signed_by:
        return "Signature: none. The checksum finds accidents; only a signature says who wrote the file."
    if found.trusted:
        return f"Signature: good, made with the key in {key} (ed25519 {found.signed_by})."
    return f"Signature: good, by ed25519 {found.signed_by}. Compare that key, or name it with --key me.pub."


def _size(count: int) -> str:
    if count < 10_000:
        return f"{count:,} bytes"
    return f"{count / 1e3:,.0f} kB" if count < 1e6 else f"{count / 1e6:,.2f} MB"


def _values(found: Inspection) -> dict[str, object]:
    from metricdp.cli import guarantees

    snap = guarantees.snap_of(found.mechanism)
    return {
        "path": found.path,
        "kind": found.kind,
        "version": found.version,
        "bytes": found.bytes,
        "sha256": found.sha256,
        "storage": found.storage,
        "vectors": list(found.vectors),
        "bits": found.bits,
        "licence": found.licence,
        "signed_by": found.signed_by or None,
        "trusted": found.trusted,
        "positions": guarantees.positions_of(found.mechanism, snap),
        **guarantees.mechanism_values(found.mechanism, snap=snap),
    }
