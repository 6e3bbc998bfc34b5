"""The service: release, budget, audit and design over HTTP, for programs.

    metricdp serve --mechanism rome.mdp --ledger budget.db

Nothing leaves but what a mechanism drew and the ledger has on disk: charge and report are committed in one transaction
before the answer is sent, and a request id that comes again gets the stored report. Everything is denied unless a key
with the right scope asks (`keys`), in sizes, times and rates with limits (`limits`, `auth`); what goes wrong is said in
sentences that hold no secret, key or report (`refusals`, `logs`).

The parts, from the top: `running` (sockets, TLS, processes), `app` (what is asked where), `releasing`, `batches` and
`designing` (the endpoints), `auth` (who may come in), `commits` (releases that wait for one commit), `workers` (work
that takes long), `served` (mechanisms by name), `models` (what goes in and out). `client` asks such a service from
Python.
"""
