"""Executing one chapter: a private Jupyter, a kernel that can be ended, and what came of it.

Used by `book`, `verify` and `cli`. Whatever Jupyter, IPython and matplotlib settings a user has, the kernel is
the interpreter that runs this, with default settings.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat

from .._cache import cache_folder
from .._files import replacing
from . import execute, forked, provenance, repository
from .chapters import Chapter


class ExecutionFailed(RuntimeError):  # noqa: N818 - not a programming error
    """A chapter did not run to its end; the message names the cell, the error and what was kept."""


@dataclass(frozen=True)
class Run:
    """What an execution took.

    Attributes
    ----------
    seconds : float
        Wall time.
    peak_memory_bytes : int
        The largest resident size of its kernel.
    """

    seconds: float
    peak_memory_bytes: int


@contextlib.contextmanager
def private_jupyter(root: Path, results: Path, tables: Path | None = None) -> Iterator[None]:
    """Give kernels this interpreter and nobody's settings.

    Parameters
    ----------
    root, results : Path
        The book's folder, and the folder of folders of results.
    tables : Path, optional
        The folder of tables that were computed before; by default that of the repository.
    """
    with tempfile.TemporaryDirectory(prefix="rankrouting-") as name:
        folder = Path(name)
        kernel = folder / "share" / "kernels" / "python3"
        kernel.mkdir(parents=True)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {
            "argv": command,
            "display_name": "Python 3",
            "language": "python",
            "metadata": {"kernel_provisioner": {"provisioner_name": forked.NAME}},
        }
        (kernel / "kernel.json").write_text(json.dumps(spec), "utf-8")
        environment = {
            "JUPYTER_PATH": str(folder / "share"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "IPYTHONDIR": str(folder / "ipython"),
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PYTHONHASHSEED": "0",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        # Chapters use all processors by themselves; linear algebra on many threads rounds differently.
        for library in ("OMP", "OPENBLAS", "MKL", "VECLIB", "NUMBA"):
            environment[f"{library}_NUM_THREADS"] = "1"
        matplotlib = importlib.util.find_spec("matplotlib")
        if matplotlib is not None and matplotlib.origin:
            environment["MATPLOTLIBRC"] = str(Path(matplotlib.origin).parent / "mpl-data" / "matplotlibrc")
            environment["MPLCONFIGDIR"] = str(_font_cache(folder))
        environment |= {repository.ROOT_VARIABLE: str(root), repository.RESULTS_VARIABLE: str(results)}
        if tables is not None:
            environment[repository.TABLES_VARIABLE] = str(tables)
        forked.allow_kernels()
        with mock.patch.dict(os.environ, environment):
            yield


def _font_cache(otherwise: Path) -> Path:
    """Return a folder with matplotlib's list of fonts, which a kernel would say on standard error that it makes."""
    name = f"matplotlib-{metadata.version('matplotlib')}"
    folder = cache_folder(name) or otherwise / name
    if not any(folder.glob("fontlist-*.json")):
        command = [sys.executable, "-c", "import matplotlib.font_manager"]
        # Beside, since others that run at the same time must not see half a list.
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as beside:
            environment = os.environ | {"MPLCONFIGDIR": beside}
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            folder.mkdir(parents=True, exist_ok=True)
            for fonts in Path(beside).glob("fontlist-*.json"):
                fonts.replace(folder / fonts.name)
    return folder


def run_chapter(
    chapter: Chapter,
    parameters: Mapping[str, Any],
    output: Path,
    *,
    root: Path,
    broken: Path,
) -> Run:
    """Execute a chapter and write the executed notebook; call it within `private_jupyter`.

    Parameters
    ----------
    chapter : Chapter
        Which.
    parameters : mapping
        Checked values; those that differ from the defaults are shown in the notebook.
    output : Path
        Where the executed notebook goes, if there is no error.
    root : Path
        The book's folder.
    broken : Path
        Where the notebook goes if a cell fails.

    Raises
    ------
    ExecutionFailed
        If a cell fails, writes to standard error, or its kernel dies.
    """
    changed = {one.name: one.default for one in chapter.parameters}
    changed = {name: value for name, value in parameters.items() if value != changed[name]}
    with tempfile.TemporaryDirectory(prefix="rankrouting-") as name:
        # papermill replaces {…} in paths: its own are in a folder of our choice.
        source, executed = Path(name) / "source.ipynb", Path(name) / "executed.ipynb"
        shutil.copyfile(chapter.path, source)
        began = time.monotonic()
        failure, peak = _in_a_thread(source, executed, changed, chapter.path.parent)
        if failure is None:
            output.parent.mkdir(parents=True, exist_ok=True)
            write_scrubbed(executed, output, root, provenance.run_record(chapter, parameters))
            return Run(time.monotonic() - began, peak)
        where = ""
        if executed.is_file():
            broken.parent.mkdir(parents=True, exist_ok=True)
            with replacing(broken) as beside:
                shutil.copyfile(executed, beside)
            where = f"; the broken notebook is {broken}"
        raise ExecutionFailed(
            f"chapter {chapter.name}, cell In [{failure.cell}] ({failure.line!r}): {_two_lines(failure.error)}{where}"
        )


def _in_a_thread(*job: Any) -> tuple[execute.Failure | None, int]:
    """Execute in a thread, so that an interrupt from the keyboard does not wait for the kernel's next message."""

    def run() -> tuple[execute.Failure | None, int]:
        failure = execute.execute(*job)
        return failure, forked.peak_memory_bytes()

    with ThreadPoolExecutor(1) as alone:
        try:
            return alone.submit(run).result()
        except KeyboardInterrupt:
            forked.end_kernels()
            raise


def write_scrubbed(executed: Path, output: Path, root: Path, record: Mapping[str, Any]) -> None:
    """Write an executed notebook with the record of its run, without paths of this machine and without times.

    Raises
    ------
    ExecutionFailed
        If an output shows the path of the book's folder or of the interpreter.
    """
    notebook: Any = nbformat.read(executed, as_version=4)
    notebook.metadata.pop("papermill", None)
    notebook.metadata["rankrouting"] = dict(notebook.metadata.get("rankrouting", {})) | {"run": dict(record)}
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.source = cell.source.replace("# Parameters", "# In this run, in place of the values above:", 1)
    private = {str(root), sys.prefix, os.path.expanduser("~")} - {"/", "~"}
    for cell in notebook.cells:
        shown = json.dumps(cell.get("outputs", []), ensure_ascii=False)
        shown = re.sub(r"[A-Za-z0-9+/=\\n]{200,}", "", shown)  # pictures
        if any(f"{path}/" in shown for path in private):
            where = f"chapter {output.stem}, cell In [{cell.execution_count}]"
            raise ExecutionFailed(f"{where}: its output shows a path of this machine")
    try:
        with replacing(output) as beside:
            beside.write_text(nbformat.writes(notebook) + "\n", "utf-8")
    except OSError as error:
        raise ExecutionFailed(f"{output}: cannot be written: {error.strerror}") from None


def _two_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    shown = " ".join(lines[:2])
    return shown if len(shown) <= 1000 else shown[:999] + "…"
