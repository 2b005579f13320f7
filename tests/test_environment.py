"""The lists of dependencies agree: pyproject.toml, requirements.lock and environment.yml."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# The names that differ on conda-forge.
CONDA_NAMES = {"matplotlib": "matplotlib-base", "playwright": "playwright-python"}

PYTHONS = ["3.11", "3.12", "3.13"]
PLATFORMS = ["linux", "darwin"]


def bounds(requirements: list[str]) -> dict[str, SpecifierSet]:
    """Return the bounds by name."""
    parsed = [Requirement(line) for line in requirements]
    assert len({canonicalize_name(one.name) for one in parsed}) == len(parsed), "a name occurs twice"
    return {canonicalize_name(one.name): one.specifier for one in parsed}


def direct_dependencies(*extras: str) -> dict[str, SpecifierSet]:
    return bounds(sum((PROJECT["optional-dependencies"][extra] for extra in extras), PROJECT["dependencies"]))


def locked() -> list[tuple[str, str, Marker | None, list[str]]]:
    """Return the name, version, marker and hashes of each pin of the lock."""
    text = (ROOT / "requirements.lock").read_text("utf-8").replace("\\\n", " ")
    pins = []
    for line in text.splitlines():
        pin, *hashes = re.split(r"\s+--hash=", line)
        matched = re.fullmatch(r"([a-z0-9-]+)==([^ ;]+)(?: ; (.+))?", pin.strip())
        assert matched, f"not a name and a version: {pin}"
        name, version, marker = matched.groups()
        pins.append((name, version, Marker(marker) if marker else None, [one.strip() for one in hashes]))
    return pins


def test_every_direct_dependency_has_a_lower_bound() -> None:
    for name, specifiers in direct_dependencies("cluster", "dev", "bench").items():
        assert any(one.operator == ">=" for one in specifiers), name


def conda_entries() -> tuple[list[str], list[str]]:
    """Return what conda installs, and what is said to pip."""
    *conda, pip = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    assert all(isinstance(one, str) for one in conda) and list(pip) == ["pip"]
    return conda, pip["pip"]


def test_conda_names_the_same_dependencies() -> None:
    conda, pip = conda_entries()
    named = bounds([one for one in conda if not one.startswith("python=")]) | bounds(pip[:-1])
    assert named.pop("pip") == SpecifierSet()
    assert named == {CONDA_NAMES.get(name, name): one for name, one in direct_dependencies("cluster", "dev").items()}


def test_conda_pins_one_python_and_installs_this_project() -> None:
    conda, pip = conda_entries()
    pythons = [one.removeprefix("python=") for one in conda if one.startswith("python=")]
    assert len(pythons) == 1 and pythons[0] in PYTHONS
    assert pip[-1] == "--editable ."


def test_the_supported_pythons_are_those_tested() -> None:
    supported = SpecifierSet(PROJECT["requires-python"])
    assert [f"3.{minor}" for minor in range(20) if f"3.{minor}" in supported] == PYTHONS
    prefix = "Programming Language :: Python :: "
    assert [one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)] == PYTHONS


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_pins_every_direct_dependency_once(python: str, platform: str) -> None:
    here = {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": platform,
        "platform_system": platform.capitalize(),
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    versions: dict[str, list[str]] = {}
    for name, version, marker, _ in locked():
        if marker is None or marker.evaluate(here):
            versions.setdefault(name, []).append(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
    for name, specifiers in direct_dependencies("cluster", "dev", "bench").items():
        assert name in versions, f"{name} is not locked"
        assert specifiers.contains(versions[name][0]), f"{name} {versions[name][0]} is not {specifiers}"


def test_the_lock_holds_names_versions_and_hashes_only() -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    assert not re.search(r"://|@|#|--(?!hash=)", text)
    for name, _, _, hashes in locked():
        assert hashes, f"no hash for {name}"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), name


def test_the_version_to_cite_is_this_one() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]


def with_uv(folder: Path, script: str, answers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of tools/ with a uv that only answers."""
    uv = folder / "uv"
    uv.write_text(f"#!/bin/sh\n{answers}\n", "utf-8")
    uv.chmod(0o755)
    command = [str(ROOT / "tools" / script), str(uv), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60)


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        ("echo No known vulnerabilities found", 0, "No known vulnerabilities found"),
        ("echo Found 2 known vulnerabilities in 1 package; exit 1", 1, "Found 2 known"),
        ("echo ' Connection refused' >&2; echo >&2; exit 1", 2, "needs a network, for pip-audit and for a list of"),
        ("echo ' Connection refused' >&2; echo >&2; exit 1", 2, "vulnerabilities: Connection refused"),
    ],
)
def test_an_audit_that_could_not_be_made_is_not_taken_for_a_good_one(
    tmp_path: Path, answers: str, code: int, said: str
) -> None:
    done = with_uv(tmp_path, "audit.sh", answers, "requirements.lock")
    assert done.returncode == code and said in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == (code == 2)


def test_the_pythons_that_are_missing_are_named(tmp_path: Path) -> None:
    done = with_uv(tmp_path, "test_all.sh", "exit 2", "uv")
    assert done.returncode == 1
    assert "passed: none; failed: none; not installed: 3.11 3.12 3.13" in done.stdout


def test_the_pythons_that_tests_run_on_are_those_supported() -> None:
    text = (ROOT / "tools" / "test_all.sh").read_text("utf-8")
    assert re.search(r"for version in (.+); do", text)[1].split() == PYTHONS  # type: ignore[index]
