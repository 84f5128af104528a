"""Part IX, beyond text: one module for each mechanism, and here all their names.

>>> from tfviz.beyond_text import passed
>>> round(passed(b=2.0), 2)
0.88
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.beyond_text.conformer_block import *
    from tfviz.beyond_text.decision_transformer import *
    from tfviz.beyond_text.efficiency_tradeoffs import *
    from tfviz.beyond_text.gtrxl import *
    from tfviz.beyond_text.tokenise_anything import *
    from tfviz.beyond_text.vit_patches import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
