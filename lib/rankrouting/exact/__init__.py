"""Laws of the n-th system at finite n without Monte Carlo. Everything here is in **jobs**.

The sorted queue lengths are a Markov chain: an arrival joins rank k at rate λ_k, every nonempty queue
loses a job at rate n. `stationary` and `transient` compute its law for any policy; `overload_gap_law` and
`pauses_law` are closed forms, `stale_pair` is for two queues with a ranking that is out of date. Divide by √n for
limit units. Chapters: most.
"""

from ._multigrid import NotConvergedError
from .closed import OverloadGapLaw, PausesLaw, overload_gap_law, pauses_law
from .laws import StationaryLaw, TooManyStatesError, TransientLaw, stationary, transient
from .stale import StaleMeans, stale_pair
from .two_places import TwoPlacesLaw, two_places

__all__ = [
    "NotConvergedError",
    "OverloadGapLaw",
    "PausesLaw",
    "StaleMeans",
    "StationaryLaw",
    "TooManyStatesError",
    "TransientLaw",
    "TwoPlacesLaw",
    "overload_gap_law",
    "pauses_law",
    "stale_pair",
    "stationary",
    "transient",
    "two_places",
]
