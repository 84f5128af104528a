"""`python -m tfviz_lab`: see `runner`."""

import sys

from tfviz_lab.runner import main

if __name__ == "__main__":
    sys.exit(main())
