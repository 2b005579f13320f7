"""Threads that can be left: an interrupt does not wait for the machine code that they run. No chapter uses it directly.

Ctrl-C is heard by the main thread when it runs Python, which it does not while it runs a kernel, and a
`ThreadPoolExecutor` waits for its threads even at the end of the program. Here the work is on daemon threads, and
whoever waits for it can be interrupted. What was begun runs to its end, or to that of the program; nothing new begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Pool(Executor):
    """An executor on daemon threads, which start when something is submitted.

    Parameters
    ----------
    threads : int
        How many at most; the attribute of this name can be raised later.
    name : str
        What the names of the threads begin with.
    """

    def __init__(self, threads: int, name: str = "rankrouting") -> None:
        self.threads, self._name = threads, name
        self._threads: list[threading.Thread] = []
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Return the future of ``fn(*args, **kwargs)``."""
        future: Future[R] = Future()
        self._waiting.put((future, lambda: fn(*args, **kwargs)))
        if len(self._threads) < self.threads:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end when nothing is waiting; by default wait for them."""
        while cancel_futures and not self._waiting.empty():
            entry = self._waiting.get()
            if entry is not None:
                entry[0].cancel()
        for _ in self._threads:
            self._waiting.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _work(self) -> None:
        while (entry := self._waiting.get()) is not None:
            future, call = entry
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            del entry, future, call


def interruptible(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return ``function(*args, **kwargs)``; in the main thread Ctrl-C does not wait for its end.

    Examples
    --------
    >>> interruptible(divmod, 7, 2)
    (3, 1)
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)
    pool = Pool(1)
    try:
        return pool.submit(function, *args, **kwargs).result()
    finally:
        pool.shutdown(wait=False)
