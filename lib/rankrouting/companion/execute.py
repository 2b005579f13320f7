"""One chapter executed by papermill, and what came of it."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_core.paths import jupyter_runtime_dir
from jupyter_core.utils import ensure_event_loop
from nbclient.exceptions import DeadKernelError
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

# What goes wrong comes back as an exception; what these say besides is not for whoever runs a chapter: papermill's
# own reader of parameters (`chapters` has read them before) and a kernel that was ended on purpose.
for _name in ("papermill", "nbclient", "traitlets"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

_STARTS = 2
# Seconds in which a kernel starts, and passes on what it shows, on a machine that is busy with others' work. That it
# has died is noticed at once all the same.
_START, _OUTPUT = 600, 60
_LONGEST_PLACE = 100  # of a socket, with a number after it: systems allow from 103 bytes on
# How objects without a picture of their own are shown: Text(0.5, 1.0, 'x'), [<matplotlib.lines.Line2D at 0x7f>].
_OBJECT = re.compile(r"\s*[\[({]*\s*(Text\(|<[\w.]+[^>]*>)")


@dataclass(frozen=True)
class Failure:
    """Where and why a chapter failed.

    Attributes
    ----------
    cell : int or None
        Number of the code cell.
    line : str
        Its first line.
    error : str
        What went wrong.
    """

    cell: int | None
    line: str
    error: str


class _SavesAtTheEnd(NBClientEngine):  # type: ignore[misc]
    """papermill's engine, which saves the notebook with all its figures twice a cell otherwise: a tenth of the time.

    What a notebook has when it ends, however it ends, is saved all the same.
    """

    NAME = "saves-at-the-end"

    @classmethod
    def execute_managed_notebook(cls, nb_man: NotebookExecutionManager, kernel_name: str, **options: Any) -> None:
        """Execute; `nb_man` saves nothing meanwhile."""
        output, nb_man.output_path = nb_man.output_path, None
        try:
            super().execute_managed_notebook(nb_man, kernel_name, **options)
        finally:
            nb_man.output_path = output


papermill_engines.register(_SavesAtTheEnd.NAME, _SavesAtTheEnd)


def execute(source: Path, output: Path, parameters: Mapping[str, Any], folder: Path) -> Failure | None:
    """Execute once, and once more if the kernel died before the first cell was done; in a thread of its own.

    Parameters
    ----------
    source, output : Path
        The notebook, and where the executed one goes, also if a cell fails.
    parameters : mapping
        What is injected.
    folder : Path
        Where the kernel runs.

    Returns
    -------
    Failure or None
        None if every cell ran and showed nothing that does not belong on a page.
    """
    with contextlib.closing(ensure_event_loop()):
        return _execute(source, output, parameters, folder)


def _execute(source: Path, output: Path, parameters: Mapping[str, Any], folder: Path) -> Failure | None:
    for start in range(1, _STARTS + 1):
        try:
            papermill.execute_notebook(
                str(source),
                str(output),
                parameters=dict(parameters),
                engine_name=_SavesAtTheEnd.NAME,
                kernel_name="python3",
                progress_bar=False,
                start_timeout=_START,
                iopub_timeout=_OUTPUT,
                config=Config(KernelManager=_transport()),
                # Not papermill's own cwd, which would be that of all threads.
                resources={"metadata": {"path": str(folder)}},
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
            return _stray_output(output)
    raise AssertionError("unreachable")


def _transport() -> dict[str, str]:
    """Return how to speak with a kernel: by sockets in a private folder, if there can be.

    A port that is free when it is chosen may be another kernel's when it is used.
    """
    place = str(Path(jupyter_runtime_dir()) / uuid.uuid4().hex[:8])
    if len(os.fsencode(place)) > _LONGEST_PLACE:
        return {}
    Path(place).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {"transport": "ipc", "ip": place}


def _is_dead_kernel(error: Exception) -> bool:
    return isinstance(error, DeadKernelError) or "kernel" in str(error).lower()


def _failure(number: int | None, source: str, error: str) -> Failure:
    lines = [line for line in source.splitlines() if line.strip()]
    return Failure(number, lines[0].strip() if lines else "", error)


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


def _stray_output(path: Path) -> Failure | None:
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
