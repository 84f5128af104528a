"""Part IV, adaptive modelling: one module for each mechanism, and here the names of them all.

>>> from tfviz.adaptive import hoeffding
>>> round(float(hoeffding(0.1, 100, 0.2)), 4)
0.1353
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.adaptive.adaptive_span import *
    from tfviz.adaptive.calm_confidence import *
    from tfviz.adaptive.depth_adaptive_training import *
    from tfviz.adaptive.depth_classifiers import *
    from tfviz.adaptive.dynamic_span import *
    from tfviz.adaptive.ltt_calibration import *
    from tfviz.adaptive.multi_scale_transformer import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
