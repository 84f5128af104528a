"""Part V, sparse attention: one module for each mechanism, and here the names of them all.

>>> from tfviz.sparse import best_stride
>>> best_stride(64)
8
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.sparse.bigbird import *
    from tfviz.sparse.blockwise_attention import *
    from tfviz.sparse.bp_transformer import *
    from tfviz.sparse.chunked_feedforward import *
    from tfviz.sparse.etc import *
    from tfviz.sparse.image_transformer_1d import *
    from tfviz.sparse.image_transformer_2d import *
    from tfviz.sparse.longformer import *
    from tfviz.sparse.native_sparse import *
    from tfviz.sparse.reformer_lsh import *
    from tfviz.sparse.reversible_residual import *
    from tfviz.sparse.routing_transformer import *
    from tfviz.sparse.sac import *
    from tfviz.sparse.sparse_sinkhorn import *
    from tfviz.sparse.sparse_transformer_fixed import *
    from tfviz.sparse.sparse_transformer_strided import *
    from tfviz.sparse.sparse_transformer_usage import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
