"""One chapter executed by papermill, in a process of its own: ``python -m rankrouting.companion.execute``.

Reads a job as JSON from standard input and writes what came of it to the file that the job names.
A process, because papermill changes the current folder, and so that it can be ended with its kernel.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
import papermill
import psutil
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

_STARTS = 2
# How objects without a picture of their own are shown: Text(0.5, 1.0, 'x'), [<matplotlib.lines.Line2D at 0x7f>].
_OBJECT = re.compile(r"\s*[\[({]*\s*(Text\(|<[\w.]+[^>]*>)")


def main() -> None:
    """Execute the job on standard input."""
    job = json.load(sys.stdin)
    signal.signal(signal.SIGTERM, lambda *_: _end())
    signal.signal(signal.SIGINT, lambda *_: _end())
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    began = time.monotonic()
    outcome = _execute(job)
    outcome["seconds"] = time.monotonic() - began
    # The largest child is the kernel. Linux counts in KiB, macOS in bytes.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    outcome["peak_memory_bytes"] = peak if sys.platform == "darwin" else peak * 1024
    Path(job["outcome"]).write_text(json.dumps(outcome), "utf-8")


def _execute(job: dict[str, Any]) -> dict[str, Any]:
    """Execute once, and once more if the kernel died before the first cell was done."""
    output = Path(job["output"])
    for start in range(1, _STARTS + 1):
        try:
            papermill.execute_notebook(
                job["input"],
                str(output),
                parameters=job["parameters"],
                kernel_name="python3",
                cwd=job["cwd"],
                progress_bar=False,
                start_timeout=120,
            )
        except PapermillExecutionError as error:
            # The message of an exception may be long; its first lines say what is wrong.
            text = f"{error.ename}: {error.evalue}".strip().rstrip(":")
            return _failure(error.exec_count, error.source, text)
        except (DeadKernelError, RuntimeError) as error:
            cell = _last_begun(output)
            begun = cell is not None and cell["number"] > 1
            if start == _STARTS or begun or not _is_dead_kernel(error):
                cell = cell or {"number": 1, "source": ""}
                return _failure(cell["number"], cell["source"], f"{error or type(error).__name__}")
        else:
            return _stray_output(output) or {"ok": True}
    raise AssertionError("unreachable")


def _is_dead_kernel(error: Exception) -> bool:
    return isinstance(error, DeadKernelError) or "kernel" in str(error).lower()


def _failure(number: int | None, source: str, error: str) -> dict[str, Any]:
    lines = [line for line in source.splitlines() if line.strip()]
    return {"ok": False, "cell": number, "line": lines[0].strip() if lines else "", "error": error}


def _last_begun(path: Path) -> dict[str, Any] | None:
    """Return number and source of the code cell that was begun last, from the notebook that was kept.

    A cell in which the kernel died may be marked as completed; those after it are still pending.
    """
    if not path.is_file():
        return None
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    for number, cell in reversed(list(enumerate(code, 1))):
        if cell.metadata.get("papermill", {}).get("status", "pending") != "pending":
            return {"number": number, "source": cell.source}
    return None


def _stray_output(path: Path) -> dict[str, Any] | None:
    """Return a failure if a cell shows what does not belong on a page: a warning, or an object's address."""
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr" and output.text.strip():
                first = output.text.strip().splitlines()[0]
                return _failure(cell.execution_count, cell.source, f"wrote to standard error: {first}")
            shown = output.get("data", {})
            if set(shown) == {"text/plain"} and _OBJECT.match(shown["text/plain"]):
                first = shown["text/plain"].splitlines()[0]
                return _failure(
                    cell.execution_count, cell.source, f"shows an object, end its last line with ;: {first}"
                )
    return None


def _end() -> None:
    """End this process and its kernel at once."""
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            pass
    os._exit(130)


def _end_with_parent(parent: int) -> None:
    """End when the process that started this one is gone, however it ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    _end()


if __name__ == "__main__":
    main()
