"""Part III, longer context: one module for each mechanism, and here the names of them all.

>>> from tfviz.longer_context import slopes
>>> slopes(8)[:3].tolist()
[0.5, 0.25, 0.125]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.longer_context.act import *
    from tfviz.longer_context.alibi import *
    from tfviz.longer_context.compressive_transformer import *
    from tfviz.longer_context.da_transformer import *
    from tfviz.longer_context.knn_lm import *
    from tfviz.longer_context.memorizing_transformer import *
    from tfviz.longer_context.spalm import *
    from tfviz.longer_context.transformer_xl_recurrence import *
    from tfviz.longer_context.universal_transformer import *
    from tfviz.longer_context.ut_act import *
    from tfviz.longer_context.ut_time_position_signal import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
