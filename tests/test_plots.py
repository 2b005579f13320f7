"""Figures: what a page shows of them, and the animation."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rankrouting import System, analytic, diffusion, mjsq, plots
from rankrouting.companion import repository
from rankrouting.companion.results import Results, Table

K, PART = 4, 2.0
SYSTEMS = [System(10_000, K, 4.0, mjsq(c)) for c in (0.0, 40.0)]


def path_of_parts() -> tuple[np.ndarray, np.ndarray]:
    """Return times and one path of the limits, one after the other."""
    times, state, parts = np.linspace(0, PART, 101)[1:], 0.25, []
    for seed, system in enumerate(SYSTEMS):
        parts.append(diffusion.simulate_paths(system.limit(), times, state, 1, 0.01, seed, progress=False)[0])
        state = parts[-1][-1]
    return np.concatenate([times, times + PART]), np.concatenate(parts)


def test_ranked_animation() -> None:
    drawing, ax = plots.figure(height=3.0)
    ax.set(xlabel="time", ylabel="length")
    times, lengths = path_of_parts()
    gif = plots.ranked_animation(ax, times, lengths, SYSTEMS, [0.0, PART], frames=20)
    assert len(gif) < 1_000_000
    with Image.open(io.BytesIO(gif)) as moving:
        assert moving.n_frames == 20
        frames = []
        for i in range(moving.n_frames):
            moving.seek(i)
            frames.append(np.asarray(moving.convert("L"), dtype=np.int64))
    assert all(frame[0, 0] == 255 for frame in frames), "on white"
    changed = [np.abs(b - a) > 20 for a, b in pairwise(frames)]
    assert min(one.sum() for one in changed) > 20, "each frame adds to the path"
    third = frames[0].shape[1] // 3
    assert not np.any(changed[-5:], axis=0)[:, :third].any(), "what is drawn stays"

    # What is left on the axes is the whole path, sorted, before bands as high as the mean spreads.
    drawn = np.transpose([line.get_ydata() for line in ax.lines])
    np.testing.assert_array_equal(drawn, np.sort(lengths, axis=1))
    for band, system in zip(ax.collections, SYSTEMS, strict=True):
        box = band.get_paths()[0].get_extents()
        means = analytic.mean_ranked(system)
        assert (box.y0, box.y1) == pytest.approx((means[0], means[-1]))
    assert all(artist.get_visible() for artist in [*ax.lines, *ax.collections, *ax.texts])
    assert drawing.dpi == plots.figure()[0].dpi


def test_an_animation_of_what_does_not_fit_is_refused() -> None:
    _, ax = plots.figure()
    times, lengths = path_of_parts()
    with pytest.raises(ValueError, match=r"lengths of shape \(200, 3\): must be \(T, K\)"):
        plots.ranked_animation(ax, times, lengths[:, 1:], SYSTEMS, [0.0, PART])
    with pytest.raises(ValueError, match="starts = "):
        plots.ranked_animation(ax, times, lengths, SYSTEMS, [0.0])
    with pytest.raises(ValueError, match="starts = "):
        plots.ranked_animation(ax, times, lengths, SYSTEMS, [1.0, PART])
    with pytest.raises(ValueError, match="frames = 1: must be at least 2"):
        plots.ranked_animation(ax, times, lengths, SYSTEMS, [0.0, PART], frames=1)
    assert not ax.lines


def test_files_of_a_figure_are_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path))
    drawing, ax = plots.figure()
    ax.set(xlabel="x", ylabel="y")
    shown = plots.show(drawing, caption="c", alt='a "b"', results=Results("model"), name="one", moving=b"GIF89a")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["one.gif", "one.png", "one.svg"]
    page = shown._repr_html_()
    for kind in ("png", "svg", "gif"):
        assert f'<a href="../results/model/one.{kind}" download>{kind.upper()}</a>' in page
    assert page.count("<details>") == 1 and 'alt="Animation: a &quot;b&quot;"' in page
    alone = plots.show(drawing, caption="c", alt="a")._repr_html_()
    assert "<details>" not in alone and "download" not in alone


def test_a_heading_without_words_is_no_heading() -> None:
    page = Table([" ", "mean"], [["K", "1"]])._repr_html_()
    assert page.count("<th ") == 1 and "<td></td>" in page
