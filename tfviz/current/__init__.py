"""What today's models are made of: one module for each mechanism, and here the names of them all.

>>> from tfviz.current import gated_delta_net
>>> sorted(gated_delta_net())
['core', 'join', 'project']
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.current.attention_sink import *
    from tfviz.current.bounded_scores import *
    from tfviz.current.gated_delta_rule import *
    from tfviz.current.hyper_connections import *
    from tfviz.current.latent_attention import *
    from tfviz.current.nope_layers import *
    from tfviz.current.output_gate import *
    from tfviz.current.partial_rope import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
