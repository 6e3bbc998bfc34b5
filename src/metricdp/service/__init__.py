"""The service: release, budget, audit and design over HTTP, for programs.

    metricdp serve --mechanism rome.mdp --ledger budget.db

Nothing leaves the service before the ledger has it on disk: charge and report are committed in one transaction, and the
answer is sent after it. A request id that comes again gets the stored report. Nothing is allowed unless a key with the
right scope asks (`keys`). Sizes, times and rates have limits (`limits`, `auth`). Errors are sentences without secrets,
keys and reports (`refusals`, `logs`).

The parts, from the top: `server` (sockets, TLS, processes), `app` (the application), `releases`, `batches` and
`designs` (the endpoints), `auth` (keys and limits), `commits` (the queue of releases), `workers` (work that takes
long), `served_mechanisms` (mechanisms by name), `models` (requests and answers). `client` asks such a service from
Python.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
