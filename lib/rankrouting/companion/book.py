"""Building the book: execute what has changed, in parallel, then make the pages, or leave the old ones.

Everything that a build writes is below ``_build`` of the repository: ``_build/<profile>/html`` are the
pages, ``results`` the numbers, ``executed`` the notebooks, ``broken`` those with an error, and
``_build/staged/<profile>`` is what Jupyter Book reads.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from tqdm import tqdm

from . import chapters, claims, forked, pages, repository, runner, state
from .chapters import Chapter
from .pages import BuildFailed, Places
from .results import write_json
from .runner import ExecutionFailed


def build(
    profile: str, jobs: int | None = None, *, root: Path | None = None, pdf: bool = False, progress: bool = True
) -> Path:
    """Build the book with a profile's parameters and return the path of its first page.

    Parameters
    ----------
    profile : str
        Name of a file in ``book/profiles``.
    jobs : int, optional
        Number of chapters executed at the same time; default: one for each processor.
    root : Path, optional
        The book's folder; default: this repository.
    pdf : bool, default False
        Whether to print the whole book as well; needs Chromium.
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
        pages.make(places, [one.path for one in book], pdf=pdf, progress=progress)
    first = chapters.documents(root)[0]
    page = places.html / f"{first}.html"
    return page if page.is_file() else places.html / "index.html"


def _only_build(places: Places, progress: bool) -> FileLock:
    """Return the lock of the profile, to be entered; another build of it is waited for first, which is said."""
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
    """Remove what a build that was killed left, and chapters that are no longer in the book."""
    aside = pages.aside_of(places.html)
    if aside.is_dir() and not places.html.exists():
        aside.rename(places.html)  # killed between taking the old pages away and putting the new ones there
    for path in [aside, *places.folder.glob(".pages-*"), *places.folder.glob(".pages.json.*")]:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
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
    write_json(results / "run.json", facts)
    made = {
        "hash": key,
        "results": state.folder_hash(results),
        "notebook": state.files_hash([places.executed(name)], places.executed(name).parent),
        "seconds": run.seconds,
    }
    write_json(places.record(name), made)


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


def _check_claims(places: Places, book: Iterable[Chapter]) -> None:
    """Raise if a claim of the build is false, also when its chapter forgot to ask."""
    names = [one.name for one in book if one.states_claims]
    try:
        if names:
            claims.assert_claims(claims.load_claims(names, places.results))
    except (claims.ClaimFailed, FileNotFoundError, ValueError) as error:
        raise BuildFailed(str(error)) from None
