"""Part VIII, the multi-head mechanism: one module for each mechanism, and here all their names.

>>> from tfviz.heads import reads
>>> reads(8, 2)
[0, 0, 0, 0, 1, 1, 1, 1]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.heads.collaborative_heads import *
    from tfviz.heads.decoupled_head_size import *
    from tfviz.heads.differential_attention import *
    from tfviz.heads.disagreement_regularization import *
    from tfviz.heads.grouped_query_attention import *
    from tfviz.heads.guided_attention import *
    from tfviz.heads.multi_query_attention import *
    from tfviz.heads.routing_heads_dynamic import *
    from tfviz.heads.routing_heads_em import *
    from tfviz.heads.talking_heads import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
