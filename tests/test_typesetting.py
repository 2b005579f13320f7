"""Formulas and the punctuation around them stay on one line."""

from __future__ import annotations

import runpy

from docutils.core import publish_doctree

from minibook import ROOT  # isort: skip

typesetting = runpy.run_path(str(ROOT / "book" / "_ext" / "typesetting.py"))


def kept(text: str) -> list[str]:
    """Return what is kept together in a paragraph, its formulas as $x$, and check that no character is lost."""
    document = publish_doctree(text, settings_overrides={"report_level": 5})
    before = document.astext()
    typesetting["KeepPunctuation"](document).run()
    assert document.astext() == before
    return [
        one.astext() for one in document.findall() if "rr-together" in getattr(one, "attributes", {}).get("classes", ())
    ]


def test_punctuation_stays_with_its_formula() -> None:
    assert kept("So :math:`x`, and (:math:`y`); or “:math:`z`”. Then :math:`w`\\ th and *more* :math:`v`!") == [
        "x,", "(y);", "“z”.", "v!",
    ]  # fmt: skip


def test_a_text_that_is_there_twice_is_changed_in_its_place() -> None:
    assert kept("*a*, *b* of :math:`x`, *c*") == ["x,"]


def test_a_formula_on_its_own_and_neighbours_without_text_between_are_left_as_they_are() -> None:
    assert kept(":math:`x`") == []
    assert kept(":math:`x`, :math:`y`. *b*\\ :math:`z`\\ *c*") == ["x,", "y."]
