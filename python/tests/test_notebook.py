"""The notebooks run from top to bottom, and what they show is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

NOTEBOOKS = sorted((ROOT / "examples/notebook").glob("*.ipynb"))

SHOWN = {"profile-to-decision.ipynb": (3, 3), "plan-70b.ipynb": (3, 0)}
"""Answers that each shows, and of which have a plot."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
@pytest.mark.parametrize("torch", [True, False], ids=["with-torch", "without-torch"])
def test_notebook(path: Path, torch: bool, tmp_path: Path) -> None:
    if torch:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    book = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "notebooks are kept without what they print"
    if not torch:
        book.cells.insert(0, nbformat.v4.new_code_cell("import sys; sys.modules['torch'] = None"))
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    drawings = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
    answers, plots = SHOWN[path.name]
    assert len(drawings) == answers and all("<table>" in drawing for drawing in drawings)
    assert sum("<svg" in drawing for drawing in drawings) == plots
    for number, drawing in enumerate(drawings):
        (tmp_path / f"{number}.html").write_text(drawing)
