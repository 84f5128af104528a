"""Part VI, smaller matrices: one module for each mechanism, and here the names of them all.

>>> from tfviz.compressed import matrices
>>> matrices("layerwise", N=12, h=12)
1
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.compressed.clustered_attention import *
    from tfviz.compressed.csalr import *
    from tfviz.compressed.delta_rule import *
    from tfviz.compressed.informer import *
    from tfviz.compressed.linear_transformer import *
    from tfviz.compressed.linformer import *
    from tfviz.compressed.lowrank_plus_band import *
    from tfviz.compressed.luna import *
    from tfviz.compressed.memory_compressed_attention import *
    from tfviz.compressed.nystromformer import *
    from tfviz.compressed.performer import *
    from tfviz.compressed.poolingformer import *
    from tfviz.compressed.rfa import *
    from tfviz.compressed.rfa_causal import *
    from tfviz.compressed.set_transformer import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
