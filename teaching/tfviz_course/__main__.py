"""``python -m tfviz_course`` is ``tfviz-course``."""

import sys

from tfviz_course.command import main

sys.exit(main())
