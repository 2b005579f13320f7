"""The pages of a build: the site, the whole book on one page and as a PDF, and what the site offers for download.

`book` executes chapters into `Places`; from there on it is this module's. A site is put in place only when Jupyter Book
had nothing to complain of.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from . import repository, state
from .results import write_json

# Names of what the site offers, in its folder `downloads`.
ARCHIVE, PDF, SINGLE = "notebooks-and-numbers.zip", "book.pdf", "single"
OFFERED = {
    PDF: "The whole book, to print (PDF)",
    SINGLE: "The whole book on one page",
    ARCHIVE: "The executed notebooks and the numbers behind every figure (zip)",
}
DOWNLOADS_VARIABLE = "RANKROUTING_DOWNLOADS"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


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


def make(places: Places, sources: Iterable[Path], *, pdf: bool = False, progress: bool = True) -> None:
    """Make the site from the executed notebooks, unless it is already what they give.

    Parameters
    ----------
    places : Places
        Of the build.
    sources : iterable of Path
        The notebooks in the repository whose executed versions are shown.
    pdf : bool, default False
        Whether to print the book as well.
    progress : bool, default True
        Whether to say on standard error what is made.

    Raises
    ------
    BuildFailed
        If Jupyter Book complains, or there is no browser that prints. The old site is untouched.
    """
    browser = _browser() if pdf else None
    _stage(places, sources)
    stamp = places.folder / "pages.json"
    made = {
        "from": state.folder_hash(places.staged) + state.folder_hash(places.results),
        "environment": state.environment_hash(),
        "pdf": pdf,
    }
    if places.html.is_dir() and stamp.is_file() and json.loads(stamp.read_text("utf-8")) == made:
        return
    if progress:
        print("making the pages", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=".pages-", dir=places.folder) as name:
        downloads = Path(name) / "downloads"
        downloads.mkdir()
        _archive(places, downloads / ARCHIVE)
        if browser is not None:
            _jupyter_book(places, Path(name), "singlehtml", downloads)
            _single_page(Path(name) / "_build" / "singlehtml", downloads / SINGLE)
            _print(browser, downloads / SINGLE / "index.html", downloads / PDF)
        _jupyter_book(places, Path(name), "html", downloads)
        html = Path(name) / "_build" / "html"
        downloads.rename(html / "downloads")
        stamp.unlink(missing_ok=True)
        _replace_folder(html, places.html)
    write_json(stamp, made)


def _stage(places: Places, sources: Iterable[Path]) -> None:
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
    for source in sources:
        target = places.staged / source.relative_to(places.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(places.executed(source.stem), target)


def _jupyter_book(places: Places, output: Path, builder: str, downloads: Path) -> None:
    """Run Jupyter Book; raise with what it complained of."""
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    command += [str(places.staged), "--path-output", str(output), "--builder", builder]
    command += ["-W", "-n", "--keep-going", "--all"]
    environment = os.environ | {
        repository.ROOT_VARIABLE: str(places.root),
        repository.RESULTS_VARIABLE: str(places.results),
        DOWNLOADS_VARIABLE: str(downloads),
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", errors="replace")
    log = places.folder / "pages.log"
    log.write_text(done.stdout + done.stderr, "utf-8")
    if done.returncode != 0:
        raise BuildFailed(_complaints(done.stdout + done.stderr, places, log))


def _archive(places: Places, target: Path) -> None:
    """Write the executed notebooks and the numbers behind the figures into one file, always the same bytes."""
    files = [*places.folder.glob("executed/*.ipynb"), *places.results.rglob("*")]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in files if path.is_file() and not path.name.startswith(".")):
            info = zipfile.ZipInfo(path.relative_to(places.folder).as_posix())
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())


def _single_page(made: Path, target: Path) -> None:
    """Take the one page out of its folder, to where its links lead from."""
    page = next(path for path in made.glob("*/*.html") if not path.parent.name.startswith("_"))
    text = page.read_text("utf-8")
    text = re.sub(r'(href|src)="\.\./results/', r'\1="../../results/', text)
    text = re.sub(r'(href|src)="\.\./_static/', r'\1="_static/', text)
    made.rename(target)
    (target / "index.html").write_text(text, "utf-8")
    shutil.rmtree(target / page.parent.name)


def _browser() -> str:
    """Return the path of Chromium or Chrome, as `make browser` finds it."""
    found = [os.environ.get("RANKROUTING_BROWSER"), *map(shutil.which, _BROWSERS)]
    path = next((one for one in found if one), None)
    if path is None:
        raise BuildFailed("no browser to print with: install chromium or set RANKROUTING_BROWSER")
    return path


def _print(browser: str, page: Path, target: Path) -> None:
    """Print a page, its formulas set, with an outline and numbers of pages."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise BuildFailed("printing needs playwright, of the extra dev") from None
    number = '<div style="width: 100%; text-align: center; font-size: 8px"><span class="pageNumber"></span></div>'
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        opened = chromium.new_page(color_scheme="light")
        opened.set_default_timeout(300_000)
        opened.goto(page.as_uri())
        opened.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
        opened.evaluate("MathJax.startup.promise.then(() => true)")
        opened.evaluate("document.querySelectorAll('details.sd-dropdown').forEach((one) => { one.open = true; })")
        opened.pdf(
            path=str(target),
            format="A4",
            scale=0.8,
            outline=True,
            tagged=True,
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=number,
            margin={"top": "16mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
        )
        chromium.close()


def _complaints(log: str, places: Places, where: Path) -> str:
    """Return the warnings and errors of Jupyter Book, with paths of the book."""
    log = re.sub(r"\x1b\[[0-9;]*m", "", log)  # colours
    lines = [line.strip() for line in log.splitlines() if "WARNING:" in line or "ERROR:" in line]
    lines = [line.replace(f"{places.staged}{os.sep}", "") for line in dict.fromkeys(lines)]
    shown = lines[:20] or log.strip().splitlines()[-5:]
    return "\n".join(["the pages have errors:", *shown, f"all that Jupyter Book said is in {where}"])


def aside_of(folder: Path) -> Path:
    """Return where a folder is for the moment in which another takes its place."""
    return folder.with_name(f".{folder.name}-old")


def _replace_folder(new: Path, old: Path) -> None:
    """Put a folder in the place of another, which is there until the new one is."""
    aside = aside_of(old)
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
