"""Mechanism files: one versioned file without pickle, verified when it is loaded."""

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
