"""What a stranger writes into a parameter, a file or a name is a value or is refused, and never does anything."""

from __future__ import annotations

import ast
import json
import math
import re
import time
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rankrouting import cli
from rankrouting.companion import chapters, repository
from rankrouting.companion.results import Results
from rankrouting.parameters import Parameter, ParameterError, _StrictLoader
from typer.testing import CliRunner

from hostile import hostile, is_finite  # isort: skip
from minibook import ROOT, add_chapter, make_book, notebook, outputs  # isort: skip

BOOK = chapters.all_chapters(ROOT)
PARAMETERS = [(chapter.name, parameter) for chapter in BOOK for parameter in chapter.parameters]
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = make_book(tmp_path / "book")
    parameters = "n: int = 1  # x [>= 1]\ncs: list[float] = [1.0]  # x\nword: str = 'a'  # x\n"
    add_chapter(root, "alpha", notebook("alpha", ["print((n, cs, word))"], parameters=parameters))
    monkeypatch.setenv(repository.ROOT_VARIABLE, str(root))
    monkeypatch.delenv(repository.RESULTS_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    return root


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# Parameters of the chapters.


@pytest.mark.parametrize(("chapter", "parameter"), PARAMETERS, ids=lambda one: getattr(one, "name", one))
def test_a_parameter_takes_its_type_and_range_and_nothing_else(chapter: str, parameter: Parameter) -> None:
    values = hostile | st.lists(hostile, max_size=3) | st.text(max_size=20)

    @settings(max_examples=30, deadline=None, derandomize=True, database=None, phases=[Phase.generate, Phase.shrink])
    @given(values, st.booleans())
    def check(value: Any, words: bool) -> None:
        try:
            converted = parameter.convert(value, words=words)
        except ParameterError as error:
            said = str(error)
            assert said.startswith(f"{parameter.name} = ") and ": must be " in said
            assert len(said.splitlines()) == 1 and len(said) < 300
        else:
            types = {"int": int, "float": float, "bool": bool, "str": str}
            listed = converted if parameter.type.startswith("list[") else [converted]
            wanted = types[re.sub(r"list\[(.*)\]", r"\1", parameter.type)]
            assert listed and all(type(one) is wanted for one in listed) and is_finite(listed)
            assert parameter.convert(converted) == converted

    check()


@pytest.mark.parametrize("chapter", BOOK, ids=lambda one: one.name)
def test_the_notebook_checks_what_it_was_given(chapter: chapters.Chapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(repository.ROOT_VARIABLE, str(ROOT))
    good = {one.name: one.default for one in chapter.parameters}
    for name in good:
        for value in (None, object(), math.nan, 1j, {}, [[]], np.zeros(3), lambda: 1, b"x"):
            with pytest.raises(ParameterError, match=f"^{name} = .*must be"):
                chapters.check_parameters(chapter.name, good | {name: value})
    chapters.check_parameters(chapter.name, dict(good))


CHANGES = {
    "seed": st.integers(0, 10**9),
    "upsilon": st.sampled_from([0.5, 0.8, 1.3, 2.0]),
    "c": st.sampled_from([0.5, 1.0, 3.0, 6.0]),
    "K": st.integers(2, 6),
    "n": st.sampled_from([2_500, 10_000, 40_000]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model", "overloaded"])
def test_a_chapter_is_true_or_refuses_with_any_parameters(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At small sizes, in this process: no claim fails, nothing warns, and a refusal is one sentence."""
    monkeypatch.setenv(repository.ROOT_VARIABLE, str(ROOT))
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path))
    chapter = chapters.find(name, ROOT)
    small = chapters.load_profile("smoke", ROOT)[name]
    source = [cell.source for cell in nbformat.read(chapter.path, as_version=4).cells if cell.cell_type == "code"]
    changes = {one: CHANGES[one] for one in small if one in CHANGES}

    @settings(max_examples=2, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.fixed_dictionaries(changes))
    def check(values: dict[str, Any]) -> None:
        namespace: dict[str, Any] = {"display": lambda *_: None}
        exec(compile(source[0], "parameters", "exec"), namespace)
        namespace |= small | values
        try:
            for number, cell in enumerate(source[1:], 2):
                exec(compile(cell, f"{name}, cell {number}", "exec"), namespace)
        except ValueError as error:
            said = str(error)
            assert len(said.splitlines()) == 1 and any(re.search(rf"\b{one}\b", said) for one in small), said

    check()


# Files of parameters.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n: !!python/object/apply:os.system [touch pwned]\n", "not YAML"),
        ("n: !!python/name:os.system\n", "not YAML"),
        ("n: !!python/object/new:subprocess.Popen [[touch, pwned]]\n", "not YAML"),
        ("!!python/object/apply:os.system [touch pwned]\n", "not YAML"),
        (LAUGHS + "n: *i\n", "has aliases"),
        ("n: &a [*a]\n", "has aliases"),
        ("<<: {n: 2}\nn: 1\n", "<< is not allowed"),
        ("cs: [[1]]\n", "cs = [1]: must be"),
        ("cs: " + "[" * 2000 + "]" * 2000 + "\n", "lists in lists"),
        ("n: " + "9" * 90_000 + "\n", "cannot be read"),
        ("n: 1e999999999\n", "n = '1e999999999'"),
        ("n: 0x" + "f" * 90_000 + "\n", "n = about 10^"),
        ("n: 1\n" + "# xyz\n" * 30_000, "is longer than"),
        ("n: __import__('os').system('touch pwned')\n", "n = "),
        ("n: \"1; import os; os.system('touch pwned')\"\n", "n = "),
        ("n: '%system touch pwned'\n", "n = "),
        ("n: '!touch pwned'\n", "n = "),
        ("n: 2026-01-01\n", "n = "),
        ("n: .inf\n", "n = inf"),
        ("n: yes\n", "n = True"),
        ("? [n]\n: 1\n", "not YAML"),
        ("? {n: 1}\n: 1\n", "not YAML"),
        ("n; import os: 1\n", "no parameter 'n; import os'"),
        ("'n\\n%system touch pwned': 1\n", "no parameter"),
        ("__class__: 1\n", "no parameter '__class__'"),
        ("In: [1]\n", "no parameter 'In'"),
        ("output: ../../pwned.ipynb\n", "no parameter 'output'"),
        ("\x00n: 1\n", "not YAML"),
        ("n: 1\n---\nn: 2\n", "not YAML"),
        ("n: 010\n", "010 must be written as a decimal number"),
        ("n: 1:30\n", "1:30 must be written as a decimal number"),
        ("cs: [1:30.5]\n", "1:30.5 must be written as a decimal number"),
    ],
    ids=range(32),
)
def test_a_hostile_file_is_refused_in_one_sentence_and_does_nothing(book: Path, text: str, said: str) -> None:
    mine = book.parent / "mine.yml"
    mine.write_text(text, "utf-8")
    before = files(book.parent)
    began = time.monotonic()
    shown = CliRunner().invoke(cli.app, ["run", "alpha", "-f", "mine.yml"])
    assert shown.exit_code == 2 and said in shown.stderr, shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1 and len(shown.stderr) < 600, shown.stderr
    assert files(book.parent) == before and time.monotonic() - began < 120


def test_a_hostile_profile_is_refused(book: Path) -> None:
    for text, said in ((LAUGHS, "has aliases"), ("alpha:\n  n: !!python/name:os.system\n", "not YAML")):
        (book / "book" / "profiles" / "default.yml").write_text(text, "utf-8")
        shown = CliRunner().invoke(cli.app, ["book"])
        assert shown.exit_code == 2 and said in shown.stderr and len(shown.stderr.strip().splitlines()) == 1
    assert not (book / "_build").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["run", "../alpha"],
        ["run", "/etc/passwd"],
        ["run", "alpha; touch pwned"],
        ["run", "alpha\n"],
        ["list", "../../alpha"],
        ["book", "--profile", "../profiles/default"],
        ["claims", "--profile", "../../x"],
        ["run", "alpha", "-o", "pwned.ipynb/../book/book/alpha.ipynb"],
        ["run", "alpha", "-o", "book/book/alpha.ipynb"],
        ["run", "alpha", "-o", "pwned.py"],
        ["run", "alpha", "-p", "cs", "[&a [1], *a]"],
        ["run", "alpha", "-p", "cs", "!!python/object/apply:os.system [touch pwned]"],
        ["run", "alpha", "-p", "cs", "[" * 5000],
        ["run", "alpha", "-p", "n", "__import__('os').system('touch pwned')"],
        ["run", "alpha", "-p", "n\n%system touch pwned", "1"],
    ],
    ids=range(15),
)
def test_hostile_words_are_refused_in_one_sentence_and_do_nothing(book: Path, words: list[str]) -> None:
    before = files(book.parent)
    shown = CliRunner().invoke(cli.app, words)
    assert shown.exit_code == 2 and len(shown.stderr.strip().splitlines()) == 1, shown.stderr
    assert files(book.parent) == before


HOSTILE_WORDS = [
    "%system touch pwned",
    "!touch pwned",
    "'; import os; os.system('touch pwned'); '",
    '"""\nimport os; os.system("touch pwned")\n"""',
    "\\",
    "{n}",
    "{{n}}",
    "$(touch pwned)",
    "a\n%%bash\ntouch pwned",
    "<script>alert(1)</script>",
    "\N{RIGHT-TO-LEFT OVERRIDE}e\N{COMBINING ACUTE ACCENT}\x07",
]


@pytest.mark.slow
def test_text_is_only_ever_text(book: Path) -> None:
    """All hostile words at once arrive in the kernel as they are, and none is run or replaced."""
    names = [f"w{i}" for i in range(len(HOSTILE_WORDS))]
    parameters = "".join(f"{name}: str = 'a'  # x\n" for name in names)
    cell = f"import json\nprint(json.dumps([{', '.join(names)}]))"
    add_chapter(book, "alpha", notebook("alpha", [cell], parameters=parameters))
    mine = book.parent / "mine.yml"
    mine.write_text(json.dumps(dict(zip(names, HOSTILE_WORDS, strict=True))), "utf-8")
    shown = CliRunner().invoke(cli.app, ["run", "alpha", "-f", "mine.yml", "-o", "out.ipynb"])
    assert shown.exit_code == 0, shown.output
    printed = [
        output["text"]
        for cell in json.loads((book.parent / "out.ipynb").read_text("utf-8"))["cells"]
        for output in cell.get("outputs", [])
    ]
    assert json.loads("".join("".join(text) for text in printed)) == HOSTILE_WORDS
    assert not [path for path in files(book.parent) if "pwned" in path]
    assert outputs(book.parent / "out.ipynb")


@pytest.mark.parametrize("name", ["../x", "/x", "x/y", "", ".x", "x.y", "X", "x\n", "x\x00", None, 1, "con .csv", "é"])
def test_a_name_of_a_result_stays_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Any) -> None:
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path / "results"))
    with pytest.raises(ValueError, match="must be of lower-case letters"):
        Results(name)
    with pytest.raises(ValueError, match="must be of lower-case letters"):
        Results("alpha").save_csv(name, {"n": [1]})
    if isinstance(name, str):
        with pytest.raises(ValueError, match="must be of lower-case letters"), Results("alpha").writing(f"{name}.png"):
            pass
    assert list(tmp_path.iterdir()) == []


# The sources.


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    tree = ast.parse(path.read_text("utf-8"))
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_nothing_evaluates_what_it_was_given() -> None:
    sources = [*(ROOT / "lib").rglob("*.py"), *(ROOT / "book").rglob("*.py"), *(ROOT / "tools").glob("*.py")]
    assert len(sources) > 40
    for path in sources:
        for name, node in calls(path):
            keywords = {one.arg: ast.unparse(one.value) for one in node.keywords}
            where = f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
            assert name not in {"eval", "exec", "os.system", "os.popen", "subprocess.getoutput"}, where
            assert name not in {"compile", "__import__", "pickle.load", "pickle.loads", "yaml.unsafe_load"}, where
            assert keywords.get("shell", "False") == "False", where
            assert keywords.get("allow_pickle", "False") == "False", where
            if name in {"yaml.load", "yaml.parse"}:
                loader = keywords.get("Loader") or ast.unparse(node.args[1])
                assert loader in {"yaml.SafeLoader", "_StrictLoader"}, where
    assert issubclass(_StrictLoader, yaml.SafeLoader)


def test_every_installation_is_locked_by_hash() -> None:
    script = (ROOT / "tools" / "venv.sh").read_text("utf-8").replace("\\\n", " ")
    commands = [line for line in script.splitlines() if re.search(r"\bpip (install|sync|download)\b", line)]
    assert len(commands) == 4
    for command in commands:
        # From the lock with hashes, or this project itself, for which nothing may be fetched.
        assert "--require-hashes" in command or ("--no-index" in command and "--no-deps" in command), command
    assert "-m pip install" not in (ROOT / "Makefile").read_text("utf-8")
    for leak in ("PYTHONPATH", "PIP_TARGET", "UV_NO_BINARY", "UV_OVERRIDE"):
        assert leak in script
