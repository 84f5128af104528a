"""Part I, Transformer basics: one module for each mechanism, and here the names of them all.

>>> import torch
>>> from tfviz.basics import layer_norm
>>> layer_norm(torch.tensor([1.0, 3.0]), eps=0.0).tolist()
[-1.0, 1.0]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.basics.additive_attention import *
    from tfviz.basics.alrfou_auxiliary_losses import *
    from tfviz.basics.cache_cost import *
    from tfviz.basics.causal_masking import *
    from tfviz.basics.decoding_strategies import *
    from tfviz.basics.encoder_decoder import *
    from tfviz.basics.flash_attention import *
    from tfviz.basics.kv_cache import *
    from tfviz.basics.layer_norm_pre_post import *
    from tfviz.basics.lm_objectives import *
    from tfviz.basics.mixture_of_experts import *
    from tfviz.basics.multi_head_attention import *
    from tfviz.basics.pointwise_mlp import *
    from tfviz.basics.public_models import *
    from tfviz.basics.residual_connection import *
    from tfviz.basics.scaled_dot_product_attention import *
    from tfviz.basics.soft_dictionary import *
    from tfviz.basics.token_embedding import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
