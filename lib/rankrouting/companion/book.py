"""Building the book: execute what has changed, in parallel, then make the pages, or leave the old ones.

Everything that a build writes is below ``_build`` of the repository: ``_build/<profile>/html`` are the
pages, ``results`` the numbers, ``executed`` the notebooks, ``broken`` those with an error, and
``_build/staged/<profile>`` is what Jupyter Book reads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout
from tqdm import tqdm

from . import chapters, claims, forked, repository, runner, state
from .chapters import Chapter
from .results import replacing
from .runner import ExecutionFailed


class BuildFailed(RuntimeError):  # noqa: N818 - not a programming error
    """The book was not built; each line of the message is one reason."""


@dataclass(frozen=True)
class Places:
    """Where the build of a profile is.

    Attributes
    ----------
    root : Path
        The book's folder.
    profile : str
        Name of the profile.
    """

    root: Path
    profile: str

    @property
    def folder(self) -> Path:
        """All of this profile but what Jupyter Book reads."""
        return self.root / "_build" / self.profile

    @property
    def staged(self) -> Path:
        """What Jupyter Book reads: the repository's book with executed notebooks."""
        return self.root / "_build" / "staged" / self.profile

    @property
    def html(self) -> Path:
        """The pages."""
        return self.folder / "html"

    @property
    def results(self) -> Path:
        """One folder of numbers for each chapter."""
        return self.folder / "results"

    def executed(self, name: str) -> Path:
        """The executed notebook of a chapter."""
        return self.folder / "executed" / f"{name}.ipynb"

    def record(self, name: str) -> Path:
        """The hashes that say what the executed notebook of a chapter was made from."""
        return self.folder / "executed" / f"{name}.json"

    def broken(self, name: str) -> Path:
        """The notebook of a chapter in which a cell failed."""
        return self.folder / "broken" / f"{name}.ipynb"


def build(profile: str, jobs: int | None = None, *, root: Path | None = None, progress: bool = True) -> Path:
    """Build the book with a profile's parameters and return the path of its first page.

    Parameters
    ----------
    profile : str
        Name of a file in ``book/profiles``.
    jobs : int, optional
        Number of chapters executed at the same time; default: one for each processor.
    root : Path, optional
        The book's folder; default: this repository.
    progress : bool, default True
        Whether to show a bar and messages on standard error.

    Returns
    -------
    Path
        The first page.

    Raises
    ------
    ChapterError, ParameterError
        Before anything runs: a chapter or profile is not as it must be.
    BuildFailed
        If a chapter, a claim or a page fails. The pages of the last good build are untouched.
    """
    root = repository.root() if root is None else root
    book = chapters.all_chapters(root)
    parameters = chapters.load_profile(profile, root)
    places = Places(root, profile)
    places.folder.mkdir(parents=True, exist_ok=True)
    with _only_build(places, progress):
        _remove_strangers(places, book)
        _execute_all(places, book, parameters, jobs or os.cpu_count() or 1, progress)
        _check_claims(places, book)
        _stage(places, book)
        _make_pages(places, progress)
    first = chapters.documents(root)[0]
    page = places.html / f"{first}.html"
    return page if page.is_file() else places.html / "index.html"


def _only_build(places: Places, progress: bool) -> FileLock:
    """Lock the profile, waiting for another build of it."""
    lock = FileLock(places.folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if progress:
            print(f"waiting for another build of the profile {places.profile}", file=sys.stderr)
        lock.acquire()
    lock.release()
    return lock


def _remove_strangers(places: Places, book: Iterable[Chapter]) -> None:
    """Remove what chapters left that are no longer in the book."""
    names = {one.name for one in book}
    for folder in (places.results, places.folder / "executed", places.folder / "broken"):
        for path in folder.glob("*") if folder.is_dir() else ():
            if path.stem not in names:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _execute_all(
    places: Places,
    book: list[Chapter],
    parameters: Mapping[str, dict[str, Any]],
    jobs: int,
    progress: bool,
) -> None:
    """Execute the chapters that have changed: first those that stand alone, then those that collect."""
    alone = [one for one in book if not one.collects]
    collecting = [one for one in book if one.collects]
    with runner.private_jupyter(places.root, places.results):
        hashes = {
            one.name: state.chapter_hash(
                one.path, parameters[one.name], [state.folder_hash(places.root / folder) for folder in one.reads]
            )
            for one in alone
        }
        todo = [one for one in alone if not _is_made(places, one.name, hashes[one.name])]
        with tqdm(
            total=len(book), initial=len(alone) - len(todo), unit="chapter", disable=not progress, leave=False
        ) as bar:

            def run(chapter: Chapter) -> None:
                _execute(places, chapter, parameters[chapter.name], hashes[chapter.name])

            # The longest first, so that the last to end is not one that started last.
            todo.sort(key=lambda one: -_last_seconds(places, one.name))
            _in_parallel(run, todo, jobs, bar)
            done = [state.folder_hash(places.results / one.name) for one in alone]
            done.append(_sources_hash(places.root))
            for chapter in collecting:
                name = chapter.name
                hashes[name] = state.chapter_hash(chapter.path, parameters[name], done)
                if not _is_made(places, name, hashes[name]):
                    _in_parallel(run, [chapter], 1, bar)
                else:
                    bar.update()
                done.append(state.folder_hash(places.results / name))


def _sources_hash(root: Path) -> str:
    """Return a hash of what chapters that collect may read besides results: the book and its tests."""
    read = [*root.glob("book/*.ipynb"), *root.glob("book/profiles/*.yml"), *root.glob("tests/*.py")]
    return state.files_hash(read, root)


def _in_parallel(run: Callable[[Chapter], None], todo: list[Chapter], jobs: int, bar: Any) -> None:
    """Run chapters on threads that each wait for a process; collect every failure."""
    failures: dict[str, str] = {}
    running: list[str] = []
    lock = threading.Lock()

    def tracked(chapter: Chapter) -> None:
        with lock:
            running.append(chapter.name)
            bar.set_postfix_str(", ".join(running))
        try:
            run(chapter)
        finally:
            with lock:
                running.remove(chapter.name)
                bar.set_postfix_str(", ".join(running))
                bar.update()

    pool = ThreadPoolExecutor(max_workers=max(1, jobs))
    futures: dict[Future[None], str] = {pool.submit(tracked, one): one.name for one in todo}
    try:
        for future in as_completed(futures):
            error = future.exception()
            if isinstance(error, ExecutionFailed):
                failures[futures[future]] = str(error)
            elif error is not None:
                raise error
    except BaseException:
        forked.end_kernels()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if failures:
        raise BuildFailed("\n".join(failures[one.name] for one in todo if one.name in failures))


def _execute(places: Places, chapter: Chapter, parameters: Mapping[str, Any], key: str) -> None:
    """Execute one chapter into fresh folders, and record what it was made from."""
    name = chapter.name
    results = places.results / name
    for path in (places.record(name), places.executed(name), places.broken(name)):
        path.unlink(missing_ok=True)
    shutil.rmtree(results, ignore_errors=True)
    run = runner.run_chapter(
        chapter,
        parameters,
        places.executed(name),
        root=places.root,
        broken=places.broken(name),
    )
    facts = {
        "chapter": name,
        "profile": places.profile,
        "parameters": dict(parameters),
        "seconds": run.seconds,
        "peak_memory_bytes": run.peak_memory_bytes,
    }
    _write(results / "run.json", facts)
    made = {
        "hash": key,
        "results": state.folder_hash(results),
        "notebook": state.files_hash([places.executed(name)], places.executed(name).parent),
        "seconds": run.seconds,
    }
    _write(places.record(name), made)


def _is_made(places: Places, name: str, key: str) -> bool:
    """Whether a chapter need not be executed: nothing it depends on nor what it left has changed."""
    record, executed = _record(places, name), places.executed(name)
    return (
        record.get("hash") == key
        and executed.is_file()
        and record.get("notebook") == state.files_hash([executed], executed.parent)
        and record.get("results") == state.folder_hash(places.results / name)
    )


def _last_seconds(places: Places, name: str) -> float:
    return float(_record(places, name).get("seconds", 0.0))


def _record(places: Places, name: str) -> dict[str, Any]:
    try:
        record = json.loads(places.record(name).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write(path: Path, value: Any) -> None:
    with replacing(path) as beside:
        beside.write_text(json.dumps(value, indent=1) + "\n", "utf-8")


def _check_claims(places: Places, book: Iterable[Chapter]) -> None:
    """Raise if a claim of the build is false, also when its chapter forgot to ask."""
    names = [one.name for one in book if one.states_claims]
    try:
        if names:
            claims.assert_claims(claims.load_claims(names, places.results))
    except (claims.ClaimFailed, FileNotFoundError, ValueError) as error:
        raise BuildFailed(str(error)) from None


def _stage(places: Places, book: Iterable[Chapter]) -> None:
    """Lay out what Jupyter Book reads: this book with executed notebooks and execution off."""
    shutil.rmtree(places.staged, ignore_errors=True)
    places.staged.mkdir(parents=True)
    shutil.copyfile(places.root / "_toc.yml", places.staged / "_toc.yml")
    config = yaml.safe_load((places.root / "_config.yml").read_text("utf-8"))
    config.setdefault("execute", {})["execute_notebooks"] = "off"
    text = yaml.safe_dump(config, allow_unicode=True, sort_keys=False)
    (places.staged / "_config.yml").write_text(text, "utf-8")
    ignored = shutil.ignore_patterns("*.ipynb", ".*", "__pycache__")
    shutil.copytree(places.root / "book", places.staged / "book", ignore=ignored)
    for chapter in book:
        target = places.staged / chapter.path.relative_to(places.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(places.executed(chapter.name), target)


def _make_pages(places: Places, progress: bool) -> None:
    """Run Jupyter Book in a folder of its own, and put the pages in place if there was no warning."""
    wanted = state.folder_hash(places.staged) + state.folder_hash(places.results)
    stamp = places.folder / "pages.json"
    made = {"from": wanted, "environment": state.environment_hash()}
    if places.html.is_dir() and stamp.is_file() and json.loads(stamp.read_text("utf-8")) == made:
        return
    if progress:
        print("making the pages", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=".pages-", dir=places.folder) as name:
        command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
        command += [str(places.staged), "--path-output", name]
        command += ["-W", "-n", "--keep-going", "--all"]
        environment = os.environ | {
            repository.ROOT_VARIABLE: str(places.root),
            repository.RESULTS_VARIABLE: str(places.results),
            "PYTHONUTF8": "1",
        }
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, encoding="utf-8", errors="replace"
        )
        log = places.folder / "pages.log"
        log.write_text(done.stdout + done.stderr, "utf-8")
        if done.returncode != 0:
            raise BuildFailed(_complaints(done.stdout + done.stderr, places, log))
        stamp.unlink(missing_ok=True)
        _replace_folder(Path(name) / "_build" / "html", places.html)
    _write(stamp, made)


def _complaints(log: str, places: Places, where: Path) -> str:
    """Return the warnings and errors of Jupyter Book, with paths of the book."""
    log = re.sub(r"\x1b\[[0-9;]*m", "", log)  # colours
    lines = [line.strip() for line in log.splitlines() if "WARNING:" in line or "ERROR:" in line]
    lines = [line.replace(f"{places.staged}{os.sep}", "") for line in dict.fromkeys(lines)]
    shown = lines[:20] or log.strip().splitlines()[-5:]
    return "\n".join(["the pages have errors:", *shown, f"all that Jupyter Book said is in {where}"])


def _replace_folder(new: Path, old: Path) -> None:
    """Put a folder in the place of another, which is there until the new one is."""
    aside = old.with_name(f".{old.name}-old")
    shutil.rmtree(aside, ignore_errors=True)
    if old.exists():
        old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        if aside.exists():
            aside.rename(old)
        raise
    shutil.rmtree(aside, ignore_errors=True)
