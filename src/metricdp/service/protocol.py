"""HTTP from strangers: a connection ends if the head of a request does not arrive in time."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0  # seconds for a request line and its headers, from the moment of connecting or of their first byte
UNFINISHED = 3.0  # seconds that a connection stays open after an answer to a request whose body has not arrived


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with a limit on how long a head may take; `auth` limits bodies."""

    _head: asyncio.TimerHandle | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.access_log = False  # paths are the sender's; `auth` logs which endpoint it was

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head = self.loop.call_later(PATIENCE, self._hang_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(PATIENCE, self._hang_up)

    def on_response_complete(self) -> None:
        self._forget()
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete:  # refused before its end
            self._head = self.loop.call_later(UNFINISHED, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _forget(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _hang_up(self) -> None:
        self._head = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
