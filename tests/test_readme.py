"""The README: its example prints the numbers that it states."""

import re
from pathlib import Path

import pytest
import rankrouting

README = (Path(rankrouting.__file__).parents[2] / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_the_example_prints_what_its_comments_say(capsys):
    (source,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(source, "README.md", "exec"), {})
    printed = [[float(word) for word in line.split()] for line in capsys.readouterr().out.splitlines()]
    comments = [line.partition("#")[2] for line in source.splitlines() if line.startswith("print(")]
    stated = [[float(word) for word in re.findall(r"\d+(?:\.\d+)?", comment)] for comment in comments]
    assert len(printed) == len(stated) >= 3
    for numbers, words in zip(printed, stated, strict=True):
        assert words[-len(numbers) :] == pytest.approx(numbers, rel=0.03), words
