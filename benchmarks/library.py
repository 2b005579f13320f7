"""What the library costs besides simulation: import, compilation, memory, and the exact laws."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from .measure import Row, in_subprocess

FIRST = """
import time
begin = time.perf_counter()
from rankrouting import System, mjsq, queues
system = System(n=100, K=3, upsilon=1.0, policy=mjsq(c=2.0))
queues.simulate_paths(system, [0.5, 1.0], replications=4, progress=False)
result = {"seconds": time.perf_counter() - begin}
"""

# Every kernel of the library is called; one that was forgotten is an error.
ALL = """
import sys, time, warnings
import numpy as np
from rankrouting import (
    System, diffusion, exact, general, halfin_whitt, jsq, mjsq, occupancy, pauses, queues, stale, time_laws
)
warnings.simplefilter("ignore")
system, steep, full = System(100, 3, 1.0, mjsq(2.0)), System(100, 3, 6.0, mjsq(4.0)), System(100, 3, 6.0, jsq())
crowd = System(n=1, K=20, upsilon=2.0, policy=jsq())
short = {"horizon": 2.0, "warmup": 0.5, "replications": 15, "progress": False}
begin = time.perf_counter()
for method in ("events", "jumps", "lazy"):
    queues.simulate_paths(system, [0.1], method=method, progress=False)
queues.simulate_paths(system, [0.1], idle=True, progress=False)
queues.simulate_paths(full, [0.1], progress=False)
queues.simulate_stationary(full, spacing=0.1, **short)
for scheme in ("reflected", "projected"):
    for local_times in (False, True):
        diffusion.simulate_paths(system.limit(), [0.1], 1.0, 2, 0.01, 1, scheme=scheme, local_times=local_times)
for model in (steep, steep.limit()):
    stale.simulate_stale(model, 0.1, **short)
pauses.simulate_pauses(system, [0.1], progress=False)
general.simulate_paths(system, time_laws.exponential(), [0.1], progress=False)
time_laws.exponential().sample(2, np.random.default_rng(1))
occupancy.simulate_stationary(crowd, **short)
halfin_whitt.stationary_means(1.0, step=0.05, **short)
exact.stationary(System(9, 3, 1.0, mjsq(2.0)))
exact.two_places(crowd)
for K in (1, 2):
    exact.transient(System(9, K, 0.5, mjsq(1.0)), 1.0, [0.5])
result = {"seconds": time.perf_counter() - begin}
kernels = {
    f"{module}.{name}": value
    for module, contents in sys.modules.copy().items()
    for name, value in vars(contents).items()
    if module.startswith("rankrouting.") and name.endswith("_kernel") and hasattr(value, "signatures")
}
assert len(kernels) > 15 and all(one.signatures for one in kernels.values())
"""

LONG = """
from rankrouting import System, mjsq, queues
system = System(n=10_000, K=10, upsilon=1.0, policy=mjsq(c=2.0))
queues.simulate_paths(system, [{time}], method="{method}", replications=2, progress=False)
result = {{}}
"""

EXACT = """
import time
from rankrouting import System, exact, mjsq
begin = time.perf_counter()
law = exact.stationary(System(n={n}, K={K}, upsilon=1.0, policy=mjsq(c=2.0)))
result = {{"seconds": time.perf_counter() - begin}}
"""


def start() -> Iterator[Row]:
    """Import and a first small simulation with compiled kernels, and the compilation of all kernels."""

    def cold() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return float(in_subprocess(ALL, NUMBA_CACHE_DIR=folder)["seconds"])

    yield Row("start", "import and a first small simulation, kernels compiled before", "s",
              lambda: float(in_subprocess(FIRST)["seconds"]))  # fmt: skip
    yield Row("start", "compile all kernels", "s", cold, runs=1)


def memory() -> Iterator[Row]:
    """Peak memory of a process that simulates twenty million events, and a hundred times as many."""
    for method in ("events", "lazy"):
        for time in (50, 5000):
            code = LONG.format(time=time, method=method)

            def peak(code: str = code) -> float:
                return float(in_subprocess(code)["MB"])

            events = f"{2 * time * 2e5:.0e}".replace("e+0", "·10^")
            yield Row("memory", f"{method}, MJSQ, K = 10, n = 10⁴, {events} events", "MB", peak, runs=1)


def exact() -> Iterator[Row]:
    """Time and memory of the exact stationary law."""
    for K, n in ((2, 2_500), (2, 10_000), (3, 100)):
        code = EXACT.format(K=K, n=n)
        memory: list[float] = []

        def seconds(code: str = code, memory: list[float] = memory) -> float:
            figures = in_subprocess(code)
            memory.append(float(figures["MB"]))
            return float(figures["seconds"])

        yield Row("exact law", f"K = {K}, n = {n}", "s", seconds, runs=1)
        yield Row("exact law", f"K = {K}, n = {n}, peak memory", "MB", memory.pop, runs=1)
