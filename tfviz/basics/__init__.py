"""Part I, Transformer basics: one module for each mechanism, and here the names of them all.

>>> import torch
>>> from tfviz.basics import layer_norm
>>> layer_norm(torch.tensor([1.0, 3.0]), eps=0.0).tolist()
[-1.0, 1.0]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.basics.additive_attention import (
        Additive,
        AdditiveAttention,
        additive_scores,
        bahdanau_attention,
    )
    from tfviz.basics.alrfou_auxiliary_losses import DeepCharacterModel, auxiliary_loss
    from tfviz.basics.cache_cost import cache_bytes, kept_bytes, token_flops
    from tfviz.basics.causal_masking import causal_bias, leaks, shift_right, token_losses
    from tfviz.basics.decoding_strategies import (
        Hypothesis,
        beam_search,
        length_penalty,
        nucleus,
        sample,
        temperature,
        top_k,
    )
    from tfviz.basics.encoder_decoder import (
        cross_attention,
        decoder_block,
        encoder_block,
        parameter_counts,
    )
    from tfviz.basics.kv_cache import attend_next
    from tfviz.basics.layer_norm_pre_post import layer_norm, layer_norm_jacobian, rms_norm, signals
    from tfviz.basics.lm_objectives import (
        drop_spans,
        hide,
        prefix_lm,
        put_back,
        random_spans,
        scored_loss,
    )
    from tfviz.basics.multi_head_attention import (
        head_matrices,
        multi_head_definition,
        pruned,
        without_heads,
    )
    from tfviz.basics.pointwise_mlp import (
        block_flops,
        block_weights,
        feed_forward,
        gelu,
        memory_lookup,
    )
    from tfviz.basics.public_models import MODELS, Shape
    from tfviz.basics.residual_connection import Residual, skip
    from tfviz.basics.scaled_dot_product_attention import (
        SelfAttention,
        row_entropy,
        self_attention,
        softmax_slope,
    )
    from tfviz.basics.soft_dictionary import hard_lookup, lookup, noisy_recall
    from tfviz.basics.token_embedding import (
        decode,
        embed,
        encode,
        learn,
        one_hot_embedding,
        read_out,
        vocabulary,
    )
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
