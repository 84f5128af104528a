"""What somebody brings, explained: a mask_mod, a score_mod, a mask or a bias becomes a pattern with
all its faces, or an error that says which operation is no formula of the two positions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.explained.bring import *
    from tfviz.explained.recognise import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
