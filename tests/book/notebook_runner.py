"""Runs a notebook in another Python's kernel, and writes it down with its outputs.

    python notebook_runner.py PYTHON IN.ipynb OUT.ipynb FOLDER

FOLDER is where the kernel works. Cells that fail do not stop it, the reader of OUT decides.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

SECONDS = 600  # for one cell; a bound, not a measurement


class Manager(AsyncKernelManager):
    """Starts ipykernel with a given Python."""

    python = ""

    @property
    def kernel_spec(self) -> KernelSpec:
        launch = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=launch, display_name="Python 3", language="python")


def main(python: str, source: str, target: str, folder: str) -> None:
    notebook = nbformat.read(source, as_version=4)
    Manager.python = python
    with tempfile.TemporaryDirectory() as place:
        manager = Manager(connection_file=str(Path(place, "kernel.json")))
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=SECONDS,
            allow_errors=True,
            store_widget_state=False,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    nbformat.write(notebook, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
