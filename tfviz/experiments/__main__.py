"""`python -m tfviz.experiments`: every stored result again, one after the other."""

import runpy
import sys

from tfviz.experiments import RESULTS

if __name__ == "__main__":
    for path in sorted(RESULTS.glob("*.json")):
        print(f"== {path.stem}", flush=True)
        sys.argv = [path.stem]
        runpy.run_module(f"tfviz.experiments.{path.stem}", run_name="__main__")
