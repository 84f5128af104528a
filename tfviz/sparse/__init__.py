"""Part V, sparse attention: one module for each mechanism, and here the names of them all.

>>> from tfviz.sparse import best_stride
>>> best_stride(64)
8
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.sparse.bigbird import bigbird_attention, bigbird_definition
    from tfviz.sparse.blockwise_attention import blockwise_definition, blockwise_self_attention
    from tfviz.sparse.bp_transformer import Tree, tree_attention, tree_definition
    from tfviz.sparse.chunked_feedforward import chunked
    from tfviz.sparse.etc import etc_attention, etc_definition
    from tfviz.sparse.image_transformer_1d import image_attention_1d
    from tfviz.sparse.image_transformer_2d import image_attention_2d
    from tfviz.sparse.longformer import longformer_attention, longformer_definition
    from tfviz.sparse.reformer_lsh import LSH, directions, lsh_attention, lsh_definition
    from tfviz.sparse.reversible_residual import Reversible
    from tfviz.sparse.routing_transformer import Routing, routing_attention, routing_definition
    from tfviz.sparse.sac import EdgePredictor, Edges, edge_attention, edge_mask
    from tfviz.sparse.sparse_sinkhorn import (
        Sinkhorn,
        sinkhorn,
        sinkhorn_attention,
        sinkhorn_definition,
    )
    from tfviz.sparse.sparse_transformer_fixed import fixed_attention
    from tfviz.sparse.sparse_transformer_strided import best_stride, strided_attention
    from tfviz.sparse.sparse_transformer_usage import by_head, interleaved, merged
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
