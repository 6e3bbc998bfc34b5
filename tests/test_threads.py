"""Threads: products keep to one inside the block and to what they had outside it."""

from __future__ import annotations

import os
import sys

import pytest

from metricdp.threads import cores, limit_product_threads


def products() -> list[int]:
    """How many threads every library of matrix products would start now."""
    found = pytest.importorskip("threadpoolctl").threadpool_info()
    return [library["num_threads"] for library in found if library["user_api"] == "blas"]


def test_products_keep_to_one_thread_inside_the_block_only() -> None:
    before = products()
    with limit_product_threads():
        assert set(products()) <= {1}
    assert products() == before


def test_without_the_extra_products_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = products()
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with limit_product_threads():
        monkeypatch.undo()
        assert products() == before


def test_threads_are_as_many_as_the_machine_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cores() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "as many as you like")
    assert cores() == (os.cpu_count() or 1)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert cores() == (os.cpu_count() or 1)
