"""Kernels that start with everything imported.

To import what they use takes most chapters longer than what they compute. Kernels are therefore forked from one process
(`multiprocessing`'s fork server) that has imported it all, and that ends by itself when nobody is left who could ask
it for another. Where forking is not safe (macOS) or the server has no place for its socket each kernel
starts from nothing, more slowly.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.provisioning.local_provisioner import LocalProvisioner


def _start_method() -> str:
    """Return how processes are started: by a fork server where that is safe and its socket's path short enough."""
    try:
        longest = len(os.fsencode(tempfile.gettempdir())) + len("/pymp-12345678/listener-12345678")
    except FileNotFoundError:
        return "spawn"
    return "forkserver" if sys.platform == "linux" and longest <= _LONGEST_SOCKET else "spawn"


_LONGEST_SOCKET = 107  # bytes, on Linux
_CONTEXT: Any = multiprocessing.get_context(_start_method())
# What chapters import; matplotlib must not choose its backend before the fork.
_CONTEXT.set_forkserver_preload(
    [
        "rankrouting.companion.provenance",
        "rankrouting.diffusion",
        "rankrouting.estimate",
        "rankrouting.exact",
        "rankrouting.plots",
        "rankrouting.queues",
        "rankrouting.sweep",
        "ipykernel.kernelapp",
        "pandas",
        "scipy.optimize",
        "scipy.stats",
    ]
)
NAME = "rankrouting-forked"


_kernels: set[BaseProcess] = set()
_thread = threading.local()


def peak_memory_bytes() -> int:
    """Return the largest resident size of the last kernel that this thread started, 0 if it was killed."""
    peak = getattr(_thread, "peak", None)
    return 0 if peak is None else int(peak.value)


_ending = threading.Event()


def allow_kernels() -> None:
    """Let kernels start, also after `end_kernels`."""
    _ending.clear()


def end_kernels() -> None:
    """End all kernels of this process, and whatever they started, at once, and let none start."""
    _ending.set()
    for kernel in list(_kernels):
        try:
            process = psutil.Process(kernel.pid)
            for one in [*process.children(recursive=True), process]:
                one.kill()
        except psutil.NoSuchProcess:
            pass


class ForkedKernel(LocalProvisioner):
    """Starts kernels by forking. Jupyter finds it by the name `NAME` in a kernel's specification."""

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Fork a kernel; of the command only its arguments, from ``-f`` on, count."""
        if _ending.is_set():
            raise RuntimeError("interrupted")
        folder = str(kwargs.get("cwd") or Path.cwd())
        _thread.peak = _CONTEXT.Value("q", 0, lock=False)
        arguments = cmd[cmd.index("-f") :]
        process = _CONTEXT.Process(target=_kernel, args=(arguments, folder, dict(kwargs["env"]), _thread.peak))
        process.start()
        _kernels.add(process)
        if _ending.is_set():
            end_kernels()
        self.process = _LikePopen(process)
        self.pid = self.pgid = process.pid
        self.cwd = folder
        return self.connection_info


class _LikePopen:
    """A process with the methods of `subprocess.Popen` that `LocalProvisioner` calls."""

    stdin = stdout = stderr = None

    def __init__(self, process: BaseProcess) -> None:
        self._process, self.pid = process, process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        _kernels.discard(self._process)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(int(self.pid or 0), number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _kernel(arguments: list[str], folder: str, environment: dict[str, str], peak: Any) -> None:
    from ipykernel.kernelapp import IPKernelApp
    from tqdm.std import tqdm

    # The lock that it makes otherwise is a semaphore, which a kernel that is killed leaves behind.
    tqdm.set_lock(threading.RLock())
    os.setsid()  # an interrupt from the keyboard is for the process that executes the chapter to act on
    os.environ.clear()
    os.environ.update(environment)
    os.environ.pop("JPY_PARENT_PID", None)  # of no use: what forked this process is not what asked for it
    os.chdir(folder)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.argv = ["ipykernel_launcher", *arguments]
    try:
        IPKernelApp.launch_instance(arguments)
    finally:
        # Linux counts in KiB, macOS in bytes.
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak.value = largest if sys.platform == "darwin" else largest * 1024


def _end_with_parent() -> None:
    """End when the process that asked for this kernel is gone, however it ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        for child in psutil.Process().children(recursive=True):
            child.kill()
        os._exit(130)
