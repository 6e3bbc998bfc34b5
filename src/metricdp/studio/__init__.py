"""Studio: the service with a page in front of it, for people, on their own machine.

    metricdp studio

Five rooms, each a journey of the docs: feel what a promise means, protect a file, design a mechanism, audit one, look
after budgets. Nothing leaves the machine: the page, its map and its libraries come from here, and `door` lets in only
the browser that was given the address.
"""
