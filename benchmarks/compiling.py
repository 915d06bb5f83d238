"""CPU time of a first calibration, while numba compiles and keeps the result, and of the same one in a later process.

    python benchmarks/compiling.py

Every case runs twice in a process of its own, with a folder for compiled code that is empty before the first run. The
difference is what compiling costs once per installation, or in every process where no folder can be written to.
"""

import os
import subprocess
import sys
import tempfile

CASES = {
    "propagation, 5 states": "pf.LeakagePropagation(chain(5), 1000).calibrate(pf.Histogram(), 1.0)",
    "propagation, 2 states, every initial law": (
        'pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], "any"), 1000).calibrate(pf.Count(1), 1.0)'
    ),
    "propagation, BinaryChainInterval": (
        "pf.LeakagePropagation(pf.BinaryChainInterval(0.2, 0.8), 100).calibrate(pf.Count('1'), 1.0)"
    ),
    "propagation, tree of 1,000 nodes": "pf.LeakagePropagation(tree(1000)).calibrate(pf.Count('a'), 1.0)",
    "ExactLaplace, 2 states": "pf.ExactLaplace(chain(2), 1000).calibrate(pf.Count('1'), 1.0)",
}

PROGRAM = """
import time
import numpy as np
import pufferfish as pf

def chain(k):
    return pf.MarkovChain(np.random.default_rng(0).dirichlet(np.ones(k), k))

def tree(n):
    step = [[0.9, 0.1], [0.2, 0.8]]
    first = {"v0": pf.CPT(["a", "b"], [0.5, 0.5])}
    return pf.BayesianNetwork(first | {f"v{i}": pf.CPT(["a", "b"], step, [f"v{(i - 1) // 2}"]) for i in range(1, n)})

start = time.process_time()
"""


def seconds(case: str, folder: str) -> float:
    """CPU seconds of one case in a process of its own."""
    program = f"{PROGRAM}{case}\nprint(time.process_time() - start)"
    environment = os.environ | {"NUMBA_CACHE_DIR": folder}
    return float(
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True).stdout
    )


if __name__ == "__main__":
    print("# What compiling costs, once on each machine\n\n| CPU seconds | first | later |\n|---|---:|---:|")
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            first, later = (seconds(case, folder) for _ in range(2))
        print(f"| {name} | {first:.1f} | {later:.1f} |", flush=True)
