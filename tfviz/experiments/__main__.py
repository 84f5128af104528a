"""`python -m tfviz.experiments`: see `runner`."""

import sys

from tfviz.experiments.runner import main

if __name__ == "__main__":
    sys.exit(main())
