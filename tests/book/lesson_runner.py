"""Every variant of every exercise of one lesson, tried without a kernel.

    python lesson_runner.py chapters/part/lesson.md

Prints JSON: {label: [{"variant", "tests", "outcome", "message"}, …]} (`tfviz_lessons.variants`).
"""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from tfviz_lessons.execute import told
from tfviz_lessons.lesson import Block, Exercise, code_line, read
from tfviz_lessons.variants import Line

Outcomes = dict[str, list[dict[str, str]]]


def outcomes(path: Path) -> Outcomes:
    """Executes the lesson here: for a process that does nothing else, or for a copy of one."""
    lesson = read(path)
    os.chdir(path.parent)
    line = Line(InteractiveShell.instance())
    line.space["display"] = lambda *things, **options: None
    found: Outcomes = {}
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        for block in lesson.blocks:
            if isinstance(block, Exercise):
                found[block.label] = line.variants(told(block))
                line.run(block.solved, block.label)
            elif isinstance(block, Block) and block.kind == "code":
                line.run(block.source, lesson.path, code_line(block, 0))
    return found


if __name__ == "__main__":
    print(json.dumps(outcomes(Path(sys.argv[1]).resolve())))
