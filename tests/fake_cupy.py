"""A stand-in for CuPy: numpy arrays, and the real CUDA text compiled for one thread a block on the CPU."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg

SHIM = """
#include <cmath>
#include <cstring>
using std::isfinite;
#define __global__
#define __device__
#define __shared__
#define __syncthreads()
struct Index { long long x, y, z; };
static Index blockIdx, threadIdx, blockDim;
template <typename T> T __shfl_down_sync(unsigned, T value, int) { return value; }
template <typename T> void atomicAdd(T* place, T value) { *place += value; }
template <typename T> void atomicMax(T* place, T value) { if (value > *place) *place = value; }
static long long __double_as_longlong(double x) { long long y; std::memcpy(&y, &x, 8); return y; }
static double __longlong_as_double(long long x) { double y; std::memcpy(&y, &x, 8); return y; }
extern "C" {
float shared[1 << 20]; double least[1 << 16]; double tile[1 << 16];
float held[1 << 16], window[1 << 16], slope[1 << 16]; double sums[1 << 16], held_window[1 << 16], bounds[1 << 16];
void set_block(long long x, long long y) {
    blockIdx.x = x; blockIdx.y = y; threadIdx.x = 0; blockDim.x = 1;
}
}
"""


def build(folder: Path, part: str = "backends") -> ctypes.CDLL:
    """Compile the kernels of a part of the solvers with the host's compiler."""
    import metricdp.solvers

    source = (Path(metricdp.solvers.__file__).with_name(part) / "kernels.cu").read_text(encoding="utf-8")
    text = folder / "kernels.cpp"
    text.write_text(SHIM + source, encoding="utf-8")
    library = folder / "kernels.so"
    subprocess.run(
        ["g++", "-O2", "-fno-strict-aliasing", "-shared", "-fPIC", "-w", str(text), "-o", str(library)], check=True
    )
    return ctypes.CDLL(str(library))


class Kernel:
    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.library, self.name = library, name

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: Any, shared_mem: int = 0) -> None:
        assert block == (1,), "the stand-in runs one thread a block"
        function = getattr(self.library, self.name)
        converted: list[Any] = []
        for value in arguments:
            if isinstance(value, np.ndarray):
                assert value.flags.c_contiguous, self.name
                converted.append(ctypes.c_void_p(value.ctypes.data))
            elif isinstance(value, np.float32):
                converted.append(ctypes.c_float(float(value)))
            elif isinstance(value, np.float64):
                converted.append(ctypes.c_double(float(value)))
            elif isinstance(value, np.int32):
                converted.append(ctypes.c_int(int(value)))
            elif isinstance(value, np.int64):
                converted.append(ctypes.c_longlong(int(value)))
            else:
                raise TypeError(f"{self.name} got {type(value)}")
        for x, y in itertools.product(range(grid[0]), range(grid[1] if len(grid) > 1 else 1)):
            self.library.set_block(ctypes.c_longlong(x), ctypes.c_longlong(y))
            function(*converted)


def install(library: ctypes.CDLL, monkeypatch: Any, module: Any = None) -> None:
    """Let `import cupy` find this stand-in, with one thread a block in the module that launches kernels."""
    from metricdp.solvers.backends import cuda

    launching = cuda if module is None else module
    fake = types.ModuleType("cupy")
    for name in dir(np):
        if not name.startswith("__"):
            setattr(fake, name, getattr(np, name))

    class RawModule:
        def __init__(self, **_: Any) -> None:
            pass

        def get_function(self, name: str) -> Kernel:
            return Kernel(library, name)

    fake.RawModule = RawModule  # type: ignore[attr-defined]
    fake.asnumpy = np.array  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", fake)
    for name, content in (
        ("cupyx", {}),
        ("cupyx.scipy", {}),
        ("cupyx.scipy.linalg", {"solve_triangular": scipy.linalg.solve_triangular}),
    ):
        module = types.ModuleType(name)
        for key, value in content.items():
            setattr(module, key, value)
        monkeypatch.setitem(sys.modules, name, module)
    launching.kernels.cache_clear()
    monkeypatch.setattr(launching, "THREADS", 1)
