"""The command line: ``rankrouting list``, ``run``, ``book``, ``claims``, ``verify`` and ``sweep``.

Whatever can be refused is refused before any kernel starts, in one sentence and with exit code 2.
Exit code 1: a chapter, a claim, a page or a cell of a sweep failed, or a number came out differently.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
from typer.core import TyperGroup

from .companion import chapters, repository
from .parameters import ParameterError, read_values

P = ParamSpec("P")


class _Commands(TyperGroup):
    """The group of commands; joins the two words of ``-p NAME VALUE``, which typer cannot repeat."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        return super().parse_args(ctx, _joined(args))


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,
    help="Run and check the chapters of the book on rank-based load balancing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _one_sentence(command: Callable[P, None]) -> Callable[P, None]:
    """Turn expected errors into one sentence on standard error and an exit code."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        from .companion.claims import ClaimFailed
        from .companion.pages import BuildFailed
        from .companion.runner import ExecutionFailed

        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, _interrupt)
        try:
            command(*args, **kwargs)
        except (chapters.ChapterError, ParameterError, FileNotFoundError, PermissionError) as error:
            _stop(str(error), 2)
        except (BuildFailed, ClaimFailed, ExecutionFailed) as error:
            _stop(str(error), 1)
        except BrokenPipeError:
            # Whoever reads has enough, as `head` has; nothing more is to be written, at the end either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except OSError as error:
            # A disk that is full or read-only, too many open files: nothing that a traceback would explain.
            _stop(_reason(error), 2 if error.errno == errno.EROFS else 1)
        except KeyboardInterrupt:
            _stop("interrupted", 130)

    return wrapped


def _reason(error: OSError) -> str:
    """Return which file could not be read or written and why; of files that were copied, where to."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        _, target, text = error.args[0][0]  # of a folder's files, the first
        found = re.search(r"Errno \d+\] ([^:]*)", str(text))
        return f"{target}: {found[1] if found else text}"
    place = error.filename2 or error.filename
    return f"{place}: {error.strerror}" if place else str(error.strerror or error)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _stop(message: str, code: int) -> None:
    print(f"rankrouting: {message}", file=sys.stderr)
    raise typer.Exit(code)


@app.command("list")
@_one_sentence
def list_chapters(
    chapter: Annotated[str | None, typer.Argument(help="Only this chapter.")] = None,
) -> None:
    """List chapters with their parameters: type, default, allowed values, meaning and unit."""
    shown = chapters.all_chapters() if chapter is None else [chapters.find(chapter)]
    for one in shown:
        print(f"{one.name}: {one.title}")
        rows = [(p.name, p.type, _literal(p.default), p.range or "any", p.meaning) for p in one.parameters]
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            print("  " + "  ".join([*cells, row[4]]))
    if chapter is None:
        print(f"profiles: {', '.join(chapters.profiles())}")


@app.command()
@_one_sentence
def run(
    chapter: Annotated[str, typer.Argument(help="Name of a chapter, as in `rankrouting list`.")],
    parameters: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", metavar="NAME VALUE", help="A parameter; may be repeated."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Sizes of a profile of the book; the chapter's defaults otherwise.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="A YAML file of lines NAME: VALUE; -p comes on top.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The executed notebook; default: CHAPTER.ipynb here.")
    ] = None,
) -> None:
    """Execute one chapter with parameters of your own."""
    from .companion import results, runner

    found = chapters.find(chapter)
    values = chapters.load_profile(profile)[found.name] if profile is not None else {}
    if file is not None:
        values |= found.convert(_of_a_chapter(file))
    values |= found.convert(dict(_pairs(parameters or [])), words=True)
    target = _writable(output or Path(f"{found.name}.ipynb"), found.path)
    results.Results(found.name)  # raises if the numbers cannot be written
    with runner.private_jupyter(repository.root(), repository.results_folder()):
        taken = runner.run_chapter(
            found,
            found.parameter_values(values),
            target,
            root=repository.root(),
            broken=target.with_name(f"{target.stem}.broken.ipynb"),
        )
    megabytes = taken.peak_memory_bytes / 1e6
    print(f"{target} ({taken.seconds:.1f} s, {megabytes:.0f} MB)")
    print(f"numbers: {repository.results_folder() / found.name}")


@app.command()
@_one_sentence
def book(
    profile: Annotated[str, typer.Option(help="A file in book/profiles, without .yml.")] = "default",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Chapters at the same time; default: one a processor.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Print the whole book as well; needs Chromium.")] = False,
) -> None:
    """Execute what has changed and make the pages; the old pages stay if anything fails."""
    from .companion.book import build

    page = build(profile, jobs, pdf=pdf)
    print(page)


@app.command()
@_one_sentence
def claims(
    profile: Annotated[str, typer.Option(help="The build whose claims to show.")] = "default",
) -> None:
    """Show every claim of a build with its numbers; exit code 1 if one fails."""
    from .companion.claims import assert_claims, load_claims

    if profile not in chapters.profiles():
        chapters.load_profile(profile)
    folder = repository.root() / "_build" / profile / "results"
    if not folder.is_dir():
        built = [one for one in chapters.profiles() if (repository.root() / "_build" / one / "results").is_dir()]
        others = f", or add --profile {built[0]}, which is" if built else ""
        raise FileNotFoundError(
            f"the profile {profile} has not been built: run `rankrouting book --profile {profile}`{others}"
        )
    found = load_claims(folder=folder)
    rows: list[tuple[str, ...]] = [
        ("claim", "predicted", "measured", "s.e.", "allowance", "z", "resolution", "verdict")
    ]
    for one in found:
        numbers = [one.predicted, one.measured, one.standard_error, one.allowance, one.z, one.resolution]
        rows.append((one.id, *(_short(number) for number in numbers), one.verdict))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip())
    red = sum(not one.holds for one in found)
    print(f"{len(found)} claims, {red} fail")
    assert_claims(found)


@app.command()
@_one_sentence
def verify(
    names: Annotated[list[str] | None, typer.Argument(metavar="[CHAPTER]...", help="Default: all.")] = None,
    profile: Annotated[str, typer.Option(help="The build whose numbers to compare with.")] = "default",
    against: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Another build, _build/PROFILE, or its pages; instead of --profile."),
    ] = None,
) -> None:
    """Execute published chapters again, with their own parameters, and compare every number that they saved.

    Exit code 0: all are the same. 1: some are not, and the report names them. Nothing published is written to.
    """
    from .companion.verify import Published, verify

    if against is None and profile not in chapters.profiles():
        chapters.load_profile(profile)
    published = Published(repository.root() / "_build" / profile if against is None else against.absolute())
    wanted = [chapters.find(name) for name in names] if names else chapters.all_chapters()
    for one in wanted:
        published.record(one)  # raises before anything runs
    different = 0
    for one in wanted:
        found = verify(one, published, repository.root())
        print(*found.lines(), sep="\n", flush=True)
        different += not found.same
    print(f"{len(wanted)} chapter{'s' if len(wanted) > 1 else ''}, {different} different")
    if different:
        raise typer.Exit(1)


@app.command()
@_one_sentence
def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.yml", help="The grid, as in examples/sweep.yml.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The table; default: FILE.parquet here.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Cells at the same time; default: one a processor.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the Dask cluster of this scheduler.")
    ] = None,
    local_cluster: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Run on a Dask cluster of N processes, started here.")
    ] = None,
) -> None:
    """Estimate over a grid of systems, into a Parquet table; finished cells are not computed again."""
    from . import sweep as sweeps
    from .sweep.file import read_sweep
    from .sweep.store import Store

    if [threads, scheduler, local_cluster].count(None) < 2:
        raise ParameterError("at most one of --threads, --scheduler and --local-cluster can be given")
    try:
        cells, level = read_sweep(file)
        target = output or Path(f"{file.stem}.parquet")
        Store(target)  # raises before a cluster is started
        if scheduler is None and local_cluster is None:
            table = sweeps.sweep(cells, target, threads=threads, level=level)
        else:
            with sweeps.connected(scheduler, workers=local_cluster) as client:
                print(f"dashboard: {client.dashboard_link}", flush=True)
                table = sweeps.sweep(cells, target, executor=client.get_executor(pure=False), level=level)
    except (ModuleNotFoundError, ValueError) as error:
        _stop(str(error), 2)
    except sweeps.SweepFailed as error:
        _stop(str(error), 1)
    except KeyboardInterrupt:
        print("rankrouting: interrupted; finished cells are kept", file=sys.stderr, flush=True)
        os._exit(130)  # the cells that are running would be waited for
    print(f"{target} ({len(cells)} cells, {len(table)} rows)")


def _of_a_chapter(file: Path) -> dict[str, Any]:
    """Return the parameters in a file; raise if it is a profile, which has sections."""
    values = read_values(file)
    if values and all(isinstance(value, dict) for value in values.values()):
        raise ParameterError(f"{file}: has sections, as a profile has; for a profile of the book use --profile")
    return values


def _pairs(parameters: list[str]) -> list[tuple[str, str]]:
    """Return names and values, which `_Commands` has joined with =."""
    return [(name, value) for name, _, value in (one.partition("=") for one in parameters)]


def _joined(arguments: list[str]) -> list[str]:
    """Return arguments with each ``-p NAME VALUE`` as ``-p NAME=VALUE``.

    Examples
    --------
    >>> _joined(["run", "workload", "-p", "upsilon", "-1", "-p", "K=20"])
    ['run', 'workload', '-p', 'upsilon=-1', '-p', 'K=20']
    """
    joined, rest = [], list(arguments)
    while rest:
        one = rest.pop(0)
        joined.append(one)
        if one in ("-p", "--parameter") and rest:
            name = rest.pop(0)
            if "=" not in name:
                if not rest:
                    _stop(f"-p {name}: needs a value", 2)
                name = f"{name}={rest.pop(0)}"
            joined.append(name)
    return joined


def _writable(path: Path, source: Path) -> Path:
    """Return an absolute path that can be written, or raise."""
    path = path.absolute()
    if path.suffix != ".ipynb":
        raise ParameterError(f"{path}: the output must end in .ipynb")
    if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
        raise PermissionError(f"{path}: cannot be written")
    if path.resolve().parent == source.resolve().parent:
        raise PermissionError(f"{path}: the chapters of the book are there")
    if path.is_symlink() and not path.exists():
        raise PermissionError(f"{path}: is a link to a file that does not exist")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        raise PermissionError(f"{path}: cannot be written: {error.strerror}") from None


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(number: float) -> str:
    return "–" if number != number else f"{number:.4g}"


if __name__ == "__main__":
    app()
