"""Part III, longer context: one module for each mechanism, and here the names of them all.

>>> from tfviz.longer_context import slopes
>>> slopes(8)[:3].tolist()
[0.5, 0.25, 0.125]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.longer_context.act import ACT, halting, ponder
    from tfviz.longer_context.alibi import Alibi, key_bias, slopes
    from tfviz.longer_context.compressive_transformer import (
        Compressive,
        Conv,
        attention_reconstruction,
        auto_encoding,
        compressive_gpt,
        max_pool,
        mean_pool,
        most_used,
        newest,
        temporal_range,
    )
    from tfviz.longer_context.da_transformer import DA, da_attention, da_scores, rescale
    from tfviz.longer_context.knn_lm import KnnLM, Store, mixed, open_store, p_knn, write_store
    from tfviz.longer_context.memorizing_transformer import (
        Memorizing,
        best_of_buckets,
        memorizing_gpt,
        nearest_pairs,
    )
    from tfviz.longer_context.spalm import Spalm, gated
    from tfviz.longer_context.transformer_xl_recurrence import (
        Recurrent,
        next_token_in_segments,
        transformer_xl,
    )
    from tfviz.longer_context.universal_transformer import Universal, universal
    from tfviz.longer_context.ut_act import Halting, halting_universal
    from tfviz.longer_context.ut_time_position_signal import (
        LearnedSteps,
        TimePosition,
        time_position,
    )
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
