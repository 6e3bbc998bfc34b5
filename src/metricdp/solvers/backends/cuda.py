"""Kernels on an NVIDIA GPU, compiled by CuPy when first used."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from metricdp.errors import import_extra

THREADS = 256
ROWS_AT_ONCE = 8  # of max_times and worst_ratio
TILE = 64


@cache
def kernels() -> Any:
    """Return the compiled kernels."""
    cupy = import_extra("cupy", "gpu")
    source = files("metricdp.solvers.backends").joinpath("kernels.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("-std=c++14",))


def launch(name: str, grid: tuple[int, ...], arguments: tuple[Any, ...], shared: int = 0) -> None:
    """Run one kernel over a grid of blocks, with so many bytes of shared memory."""
    kernel = kernels().get_function(name)
    if shared > 48 * 1024:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel(grid, (THREADS,), arguments, shared_mem=shared)


def slices(size: int, width: int = 512) -> list[slice]:
    """Cut rows into pieces that fit into memory."""
    return [slice(start, start + width) for start in range(0, size, width)]
