"""Draw book/_static/trade.png, the picture of the README: the figure of the book's first page.

Run it from the repository: ``.venv/bin/python tools/trade.py [FILE]``. It takes about a minute.
"""

import sys
from pathlib import Path

from rankrouting import System, analytic, jsq, mjsq, plots, queues, random_routing

N, K, UPSILON, CS = 10_000, 10, 2.0, (2.0, 8.0, 32.0)


def main() -> None:
    """Simulate each policy and save the figure."""
    default = Path(__file__).resolve().parents[1] / "book" / "_static" / "trade.png"
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    systems = [System(N, K, UPSILON, policy) for policy in (random_routing(), *map(mjsq, CS), jsq())]
    totals = []
    for seed, system in enumerate(systems):
        horizon = 16 * analytic.relaxation_time(system)
        run = queues.simulate_stationary(system, replications=48, horizon=horizon, seed=seed)
        totals.append(run.estimate("mean_total"))
    drawing, ax = plots.figure(height=4.2)
    plots.trade(ax, systems, totals)
    shown = plots.show(drawing, caption="The picture of the README.", alt="The picture of the README.")
    target.write_bytes(shown.png)


if __name__ == "__main__":
    main()
