"""Counts and times for Prometheus, by endpoint and mechanism. No person, key, secret or report is a label.

Several processes share a folder of counters (`METRICDP_SERVICE_COUNTERS`), so that each of them answers for all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from metricdp.errors import import_extra

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0, 10.0, 30.0)
TOGETHER = (1, 2, 4, 8, 16, 32, 64, 128)
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when it is first imported


def share_folder(folder: str) -> None:
    """Keep the counters of this process in a folder that others read too; before anything is counted."""
    os.environ[FOLDER] = folder


class Counters:
    """The counters of one process."""

    def __init__(self) -> None:
        prometheus = import_extra("prometheus_client", "service")
        self._client = prometheus
        self._registry: CollectorRegistry = prometheus.CollectorRegistry()
        where = {"registry": self._registry}
        gauge = {**where, "multiprocess_mode": "livesum"}
        self.requests = prometheus.Counter(
            "metricdp_requests", "Requests answered, by endpoint and status.", ["route", "status"], **where
        )
        self.seconds = prometheus.Histogram(
            "metricdp_request_seconds", "Time from the first byte to the answer.", ["route"], buckets=SECONDS, **where
        )
        self.releases = prometheus.Counter(
            "metricdp_releases", "Reports given, by mechanism; outcome is drawn, repeated or refused.",
            ["mechanism", "outcome"], **where,
        )  # fmt: skip
        self.together = prometheus.Histogram(
            "metricdp_commit_size", "Releases that were committed together.", buckets=TOGETHER, **where
        )
        self.commit_seconds = prometheus.Histogram(
            "metricdp_commit_seconds", "Time of one transaction of the ledger.", buckets=SECONDS, **where
        )
        self.ledger_errors = prometheus.Counter(
            "metricdp_ledger_errors", "Transactions that failed, by the class of the error.", ["error"], **where
        )
        self.at_work = prometheus.Gauge("metricdp_requests_at_work", "Requests at work or waiting.", **gauge)
        self.waiting = prometheus.Gauge("metricdp_releases_waiting", "Releases waiting for the ledger.", **gauge)
        self.refused = prometheus.Counter(
            "metricdp_requests_refused",
            "Requests that were refused, by the word of the refusal.",
            ["error"],
            **where,
        )

    def refusals(self, word: str) -> int:
        """Return how many requests this process refused with a word such as budget."""
        return int(self._registry.get_sample_value("metricdp_requests_refused_total", {"error": word}) or 0)

    def text(self) -> tuple[bytes, str]:
        """Return the counters of all processes and the type of that text."""
        registry = self._registry
        if os.environ.get(FOLDER):
            from prometheus_client.multiprocess import MultiProcessCollector

            registry = self._client.CollectorRegistry()
            collect: Callable[..., object] = MultiProcessCollector
            collect(registry)
        return self._client.generate_latest(registry), self._client.CONTENT_TYPE_LATEST
