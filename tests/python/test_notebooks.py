"""The notebooks run, and their committed outputs are small and without errors."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("mercer._mercer", reason="the extension module is not built")
pytest.importorskip("sklearn")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = ["attribution", "eigenfunctions", "label-audit", "uncertainty"]

#: Larger outputs do not belong into a repository.
LARGEST = 60_000


def test_all_notebooks_are_here():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name, tmp_path, monkeypatch):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    if any("import torch" in cell.source for cell in notebook.cells) and importlib.util.find_spec("torch") is None:
        pytest.skip("this notebook needs PyTorch")
    # The kernel is this interpreter, wherever others are installed.
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in code)


def test_progress_in_a_cell(tmp_path, monkeypatch):
    """A bar in the output of the cell, which is gone when the work is done."""
    source = """
import numpy as np, mercer as mc
from mercer import _resources
_resources.PATIENCE = -1.0
shown, update = [], _resources._Notebook.update
def told(self, done, total, message):
    shown.append((done, total, message))
    update(self, done, total, message)
_resources._Notebook.update = told
mc.kernel("rbf()", np.zeros((3000, 4)))
print(len(shown) > 0)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    bars = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, cell, index):
            content = message.get("content", {})
            bars.append(content.get("data", {}).get("text/html", ""))
            return super().process_message(message, cell, index)

    Client(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = notebook.cells[0].outputs
    assert any(output.get("text") == "True\n" for output in outputs), outputs
    assert any("<progress" in bar for bar in bars)
    assert not any("<progress" in output.get("data", {}).get("text/html", "") for output in outputs)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_committed_outputs(name):
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < LARGEST
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code) and any(cell.outputs for cell in code)
    kinds = {output.output_type for cell in code for output in cell.outputs}
    assert "error" not in kinds
    assert "/tmp" not in path.read_text(encoding="utf-8")
