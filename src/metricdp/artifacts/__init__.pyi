"""Mechanism files: one versioned file without pickle, verified when it is loaded.

A mechanism file is a safetensors file. Its metadata has one entry, `metricdp`: a manifest in canonical JSON (keys
sorted, no spaces, UTF-8; numbers that are not finite as {"float": "inf"}). The manifest holds

    format    "metricdp-mechanism"          version   1 or 2; 2 is written
    kind      the name of a declared mechanism (`metricdp.mechanisms.MECHANISMS`)
    metrics   list; a metric is {"name", "parameters"} and may refer to earlier ones
    spaces    list; a space refers to its metrics by number and to its points by the names of tensors
    body      what belongs to the kind: spaces by number, tensors by name, plain numbers
    guarantee, certificate                  the guarantee, and what was verified
    units     of the distances              licence   of the data
    signature null, or {"algorithm": "ed25519", "public_key", "value"}
    sha256    of the whole file with these 64 digits written as zeros

Probabilities are stored dense, sparse or as whole numbers (see `storage`), those of whole cities as near reports
and a background (see `mechanisms.local`). The format is described byte by byte in
docs/format.md. Loading refuses a file that is truncated, altered in any byte, foreign or newer, and audits the
mechanism again: a matrix by the exact audit, noise by its theorem. An audit that took long is done once for a file on
one machine (see `audit_cache`).
"""

from .file import Inspection as Inspection
from .file import dumps as dumps
from .file import inspect as inspect
from .file import load as load
from .file import loads as loads
from .file import save as save
from .limits import LoadLimits as LoadLimits
from .signing import create_keys as create_keys
from .trees import TreeFile as TreeFile
from .trees import TreeLevel as TreeLevel
from .trees import load_tree as load_tree
from .trees import save_tree as save_tree
