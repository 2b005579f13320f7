"""Where the numbers of a chapter go, and how a page offers them.

Every chapter makes one `Results` and saves the numbers behind each figure through it. Files are
written whole or not at all. Chapters: all.
"""

from __future__ import annotations

import contextlib
import errno
import html
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._files import replacing
from ..checks import shown
from . import repository

_NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")


def write_json(path: Path, value: Any) -> None:
    """Write a value, all of it or nothing."""
    with replacing(path) as beside:
        beside.write_text(json.dumps(value, indent=1) + "\n", "utf-8")


# What this process has saved: the files of each chapter, by the place where they are published.
_saved_here: dict[Path, dict[str, bytes]] = {}


def _publish(files: Mapping[str, bytes], place: Path) -> None:
    """Put a folder of these files in the place of another, so that what is there is always of one run."""
    place.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        for name, content in files.items():
            (new / name).write_bytes(content)
        umask = os.umask(0)
        os.umask(umask)
        new.chmod(0o777 & ~umask)
        while True:
            try:
                new.rename(place)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            # Another run may put its folder there in between: then this one tries again.
            aside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
            with contextlib.suppress(FileNotFoundError):
                place.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        error.filename = error.filename or str(place)  # a full disk does not say where
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _check_writable(folder: Path) -> None:
    """Raise if nothing can be written in a folder, or it cannot be made."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{there}: results cannot be written there; set {repository.RESULTS_VARIABLE} to a folder where they can"
        )


_NOT_WORDS = re.compile(r"(\$[^$]*\$|``[^`]+``|`[^`]*`|\]\([^)]*\))")  # mathematics, code, addresses
_POWER = re.compile(r"(?<![\w.,/-])(\d+(?:\.\d+)?)e([+-]?)0*(\d+)(?!\w)")
_THOUSANDS = re.compile(r"(?<![\w.,/])(?<!\w-)\d{5,}(?![\w/-])")


def typeset(text: str) -> str:
    r"""Return text in which the numbers of f-strings are written as in print, in words and in mathematics.

    ``5%`` has a no-break space, ``-1`` a minus, ``2e-05`` a power of ten, ``10000`` a comma. Code is left as it is.

    Examples
    --------
    >>> typeset("95% of 46 %, `10000`")
    '95\xa0% of 46 %, `10000`'
    >>> typeset("from -20000")
    'from −20,000'
    >>> typeset("-1.5 at 2e-05 and $n = 10000$")
    '−1.5 at $2 \\times 10^{-5}$ and $n = 10{,}000$'
    """
    pieces = _NOT_WORDS.split(text)
    pieces[::2] = map(_in_words, pieces[::2])
    pieces[1::2] = (_in_mathematics(one) if one.startswith("$") else one for one in pieces[1::2])
    return "".join(pieces)


def _in_words(text: str) -> str:
    text = re.sub(r"(?<=\d)%", "\N{NO-BREAK SPACE}%", text)
    text = _THOUSANDS.sub(lambda found: f"{int(found[0]):,}", text)
    text = re.sub(r"(?<![^\s(\[])-(?=\d)", "\N{MINUS SIGN}", text)
    return _POWER.sub(lambda found: f"${_power_of_ten(found)}$", text)


def _in_mathematics(text: str) -> str:
    text = _THOUSANDS.sub(lambda found: f"{int(found[0]):,}".replace(",", "{,}"), text)
    return _POWER.sub(_power_of_ten, text)


def _power_of_ten(found: re.Match[str]) -> str:
    factor = "" if found[1] == "1" else rf"{found[1]} \times "
    return f"{factor}10^{{{found[2].strip('+')}{found[3]}}}"


def mathematics(text: str) -> str:
    r"""Return text as HTML in which ``$…$`` is set as mathematics, \`…\` as code and ``**…**`` in bold.

    Examples
    --------
    >>> mathematics("`make book` of **all** $n > 1$")
    '<code>make book</code> of <strong>all</strong> <span class="math tex2jax_process">\\(n &gt; 1\\)</span>'
    """
    pieces = typeset(text).split("$")
    if len(pieces) % 2 == 0:
        raise ValueError(f"{text!r}: a $ is not closed")
    for i in range(1, len(pieces), 2):
        pieces[i] = rf"\({pieces[i]}\)"
    spans = ("{}", '<span class="math tex2jax_process">{}</span>')
    escaped = map(html.escape, pieces)
    return "".join(spans[i % 2].format(piece if i % 2 else _marked(piece)) for i, piece in enumerate(escaped))


def _plain(text: str) -> str:
    """Return text without the marks of mathematics, for an attribute."""
    return re.sub(r"[$\\]", "", typeset(text).replace("{,}", ","))


def _marked(text: str) -> str:
    """Return escaped text with the marks of code and bold as elements."""
    text = re.sub(r"(`+)(.+?)\1", r"<code>\2</code>", text)
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)


@dataclass(frozen=True)
class Download:
    """A file of this chapter's results; in a page, a line with a link to it."""

    chapter: str
    path: Path
    label: str

    @property
    def href(self) -> str:
        """The address seen from the chapter's page: a build copies results to ``results/``."""
        return f"../results/{self.chapter}/{self.path.name}"

    def link(self) -> str:
        """Return the link as HTML."""
        return f'<a href="{html.escape(self.href)}" download>{html.escape(self.label)}</a>'

    def __repr__(self) -> str:
        """Name the file, for a terminal."""
        return f"{self.label}: {self.chapter}/{self.path.name}"

    def _repr_html_(self) -> str:
        return f'<p class="rr-download">Download: {self.link()}</p>'


@dataclass(frozen=True)
class Sentence:
    """A sentence with numbers of this run, shown as Markdown."""

    text: str

    def __repr__(self) -> str:
        """Return the text, for a terminal."""
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


def say(text: str) -> Sentence:
    """Return a sentence for the page, in MyST Markdown: an f-string with numbers that this run computed.

    Examples
    --------
    >>> say(f"The factor is {2:.2f}.")
    The factor is 2.00.
    """
    return Sentence(typeset(text))


@dataclass(frozen=True)
class Table:
    """A table for the page that scrolls sideways on a phone.

    Attributes
    ----------
    columns : list of str
        Headings; ``$…$`` is mathematics.
    rows : list of lists of str
        Cells as HTML.
    caption : str
        What the table shows.
    """

    columns: list[str]
    rows: list[list[str]]
    caption: str = ""

    def __repr__(self) -> str:
        """Return a short description, for a terminal."""
        return f"table of {len(self.rows)} rows: {', '.join(self.columns)}"

    def _repr_html_(self) -> str:
        # A heading without words is no heading.
        named = (f'<th scope="col">{mathematics(one)}</th>' if one.strip() else "<td></td>" for one in self.columns)
        head = "".join(named)
        # On a phone the rows of some tables stand one below the other, each cell with its heading.
        labels = [html.escape(_plain(one), quote=True) for one in self.columns]
        cells = (zip(labels, row, strict=True) for row in self.rows)
        body = "".join(
            "<tr>" + "".join(f'<td data-label="{label}">{cell}</td>' for label, cell in row) + "</tr>" for row in cells
        )
        caption = f"<caption>{mathematics(self.caption)}</caption>" if self.caption else ""
        # A box that scrolls must be reachable by keyboard.
        label = html.escape(_plain(self.caption) or "table", quote=True)
        return (
            f'<div class="rr-table" tabindex="0" role="region" aria-label="{label}">'
            f'<table class="table">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )


class Results:
    """The folder of a chapter's numbers.

    Each time that a process saves a file, it puts a folder of all that it has saved in the chapter's place: of two
    runs at the same time the last has it, and their files never mix.

    Parameters
    ----------
    chapter : str
        Name of the chapter, as in ``book/<chapter>.ipynb``.

    Raises
    ------
    ValueError
        If the name is not of lower-case letters, digits, - and _.
    PermissionError
        If the folder cannot be written.
    """

    def __init__(self, chapter: str) -> None:
        self.chapter = _checked_name(chapter)
        _check_writable(self.folder)
        self._saved: dict[str, Download] = {}

    @property
    def folder(self) -> Path:
        """Where the files are, made when something is saved."""
        return repository.results_folder() / self.chapter

    def save_csv(self, name: str, table: pd.DataFrame | Mapping[str, Any]) -> Download:
        """Save the numbers behind a figure and return a line with a link to them.

        Parameters
        ----------
        name : str
            Name of the file without ``.csv``; lower-case letters, digits, - and _.
        table : DataFrame or mapping of column to values
            The numbers; columns of a mapping have one length or are single numbers. Units belong in
            the column names.
        """
        frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(_columns(table))
        with self.writing(f"{_checked_name(name)}.csv") as beside:
            # An index without a name is row numbers only.
            frame.to_csv(beside, index=any(n is not None for n in frame.index.names), encoding="utf-8")
        return self.offer(f"{name}.csv")

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Yield a path to write to, which becomes the file `name` of the folder unless an exception is raised."""
        _checked_name(name.rpartition(".")[0])
        with tempfile.TemporaryDirectory(prefix="rankrouting-") as folder:
            beside = Path(folder) / name
            yield beside
            files = _saved_here.setdefault(self.folder, {})
            files[name] = beside.read_bytes()
        _publish(files, self.folder)

    def offer(self, name: str) -> Download:
        """Return a link to a file that is already in the folder, and list it in `downloads`."""
        self._saved[name] = Download(self.chapter, self.folder / name, name)
        return self._saved[name]

    def table(self, name: str, frame: pd.DataFrame, *, caption: str, formats: Mapping[str, str] | None = None) -> Table:
        """Save a table as CSV and return it for the page.

        Parameters
        ----------
        name : str
            Name of the CSV file.
        frame : DataFrame
            What to show; its index is not shown.
        caption : str
            What the table shows, with parameters and replications; ``$…$`` is mathematics.
        formats : mapping, optional
            Format of each column, as in ``{"mean": ".3f"}``; else four significant digits.
        """
        self.save_csv(name, frame)
        formats = formats or {}
        columns = [str(column) for column in frame.columns]
        rows = [
            [_cell(value, formats.get(column)) for column, value in zip(columns, row, strict=True)]
            for row in frame.itertuples(index=False)
        ]
        return Table(columns, rows, caption)

    def downloads(self) -> Downloads:
        """Return links to all that was saved and to the executed notebook, for the end of a chapter."""
        return Downloads(self.chapter, tuple(self._saved.values()))


@dataclass(frozen=True)
class Downloads:
    """All files of a chapter; in a page, a list of links."""

    chapter: str
    files: tuple[Download, ...]

    def __repr__(self) -> str:
        """List the files, for a terminal."""
        return "\n".join(map(repr, self.files))

    def _repr_html_(self) -> str:
        # The source of a page of a built book is the executed notebook.
        source = f"../_sources/book/{self.chapter}.ipynb"
        notebook = f'<a href="{source}" download>this page as an executed notebook</a>'
        items = "".join(f"<li>{link}</li>" for link in [notebook, *(one.link() for one in self.files)])
        return f'<div class="rr-download"><p>Downloads:</p><ul>{items}</ul></div>'


def saved(chapter: str, name: str) -> pd.DataFrame:
    """Return the numbers that another chapter of this build saved as ``<name>.csv``.

    Only for chapters that collect: the others may not have run yet.

    Raises
    ------
    FileNotFoundError
        If there are none.
    """
    path = repository.results_folder() / _checked_name(chapter) / f"{_checked_name(name)}.csv"
    if not path.is_file():
        raise FileNotFoundError(f"chapter {chapter} has not saved {path}: build the book, or run that chapter first")
    return pd.read_csv(path, encoding="utf-8")


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name {shown(name)}: must be of lower-case letters, digits, - and _")
    return name


def _columns(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns as one-dimensional arrays of one length, single values repeated."""
    arrays = {str(name): np.asarray(values) for name, values in table.items()}
    lengths = {array.size for array in arrays.values() if array.ndim}
    if any(array.ndim > 1 for array in arrays.values()) or len(lengths) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"columns of shapes {shapes}: must be one-dimensional and of one length")
    length = lengths.pop() if lengths else 1
    return {name: array if array.ndim else np.repeat(array, length) for name, array in arrays.items()}


def _cell(value: Any, form: str | None) -> str:
    """Return a cell as HTML: a formatted number, or text with mathematics."""
    if isinstance(value, (float, np.floating)) and np.isnan(value):
        return "–"
    if form is not None:
        return mathematics(format(value, form).replace("-", "−"))
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}".replace("-", "−")
    shown = mathematics(str(value))
    # A long name may break at its joints; formulas have joints of their own.
    return shown if "$" in str(value) else re.sub(r"(::|_)(?=\w)", r"\1<wbr>", shown)
