"""Part VI, smaller matrices: one module for each mechanism, and here the names of them all.

>>> from tfviz.compressed import LinearAttention
>>> LinearAttention().eps
0.0
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.compressed.linear_transformer import (
        LinearAttention,
        linear_attention,
        linear_definition,
        positive,
    )
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
