"""A sweep on a cluster under SLURM, one job a worker.

    pip install 'rankrouting[cluster]' dask-jobqueue
    python examples/slurm.py examples/sweep.yml trade.parquet

Run it where jobs are submitted and for as long as the sweep takes, in tmux or as a job of its own. Workers that
SLURM ends are replaced, and their cells computed elsewhere; when this program itself ends, start it again: finished
cells are found beside the table. The workers need the same environment as this program, and no common disk but for it.
"""

import sys

from dask_jobqueue import SLURMCluster
from distributed import Client
from rankrouting import sweep
from rankrouting.sweep.file import read_sweep


def main(file: str, output: str) -> None:
    """Compute the sweep of a file with up to 50 jobs of one processor each."""
    cells, level = read_sweep(file)
    with (
        SLURMCluster(cores=1, processes=1, memory="2GB", walltime="02:00:00") as cluster,
        Client(cluster) as client,
    ):
        cluster.adapt(minimum_jobs=1, maximum_jobs=50)
        print(f"dashboard: {client.dashboard_link}")
        table = sweep.sweep(cells, output, executor=client.get_executor(pure=False), level=level)
    print(table[["n", "K", "policy", "c", "quantity", "rank", "value", "low", "high"]].to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
