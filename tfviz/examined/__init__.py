"""Somebody's attention, examined: the laws that all of ours obey, for any attention."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.examined.laws import *
    from tfviz.examined.report import *
    from tfviz.examined.subjects import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
