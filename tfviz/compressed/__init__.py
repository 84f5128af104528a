"""Part VI, smaller matrices: one module for each mechanism, and here the names of them all.

>>> from tfviz.compressed import matrices
>>> matrices("layerwise", N=12, h=12)
1
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.compressed.clustered_attention import (
        Clustered,
        attention_by_cluster,
        clustered_definition,
        lloyd,
    )
    from tfviz.compressed.csalr import Csalr, csalr_attention, csalr_definition
    from tfviz.compressed.informer import (
        Informer,
        informer_attention,
        informer_definition,
    )
    from tfviz.compressed.linear_transformer import (
        LinearAttention,
        linear_attention,
        linear_definition,
        positive,
    )
    from tfviz.compressed.linformer import (
        Linformer,
        layerwise,
        linformer_attention,
        linformer_definition,
        matrices,
        mean_pooling,
        strided_convolution,
    )
    from tfviz.compressed.lowrank_plus_band import (
        LowRankPlusBand,
        low_rank_and_band,
        lowrank_band_definition,
    )
    from tfviz.compressed.luna import (
        CausalLuna,
        Luna,
        causal_luna_attention,
        causal_luna_definition,
        luna_attention,
        luna_definition,
        nested,
        nested_causal,
        softplus,
    )
    from tfviz.compressed.memory_compressed_attention import (
        MemoryCompressed,
        mca,
        mca_definition,
        mean_kernel,
        mean_shares,
        squeezed,
        staircase,
    )
    from tfviz.compressed.nystromformer import (
        Nystrom,
        iterated_inverse,
        landmarks,
        nystrom_attention,
        nystrom_definition,
    )
    from tfviz.compressed.performer import (
        Performer,
        performer_attention,
        performer_definition,
        softmax_features,
    )
    from tfviz.compressed.poolingformer import (
        PooledWindow,
        Poolingformer,
        max_pool,
        mean_pool,
        pooled_window_attention,
        pooled_window_definition,
        slots,
        two_levels,
    )
    from tfviz.compressed.rfa import (
        RFA,
        directions,
        fourier_features,
        rfa_attention,
        rfa_definition,
    )
    from tfviz.compressed.rfa_causal import GatedRFA, fading, gated_attention, gated_definition
    from tfviz.compressed.set_transformer import ISAB, MAB, PMA, SAB, mab_definition, row_network
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
