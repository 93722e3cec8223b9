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


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_committed_outputs(name):
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < LARGEST
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code) and any(cell.outputs for cell in code)
    kinds = {output.output_type for cell in code for output in cell.outputs}
    assert "error" not in kinds
    assert "/tmp" not in path.read_text(encoding="utf-8")
