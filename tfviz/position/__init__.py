"""Part II, positions: one module for each mechanism. Those inside attention are cores.

>>> from tfviz.position import positions
>>> i, j = positions(2, 3)
>>> (i - j).tolist()
[[1, 0, -1], [2, 1, 0]]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.cores import Bias, positions
    from tfviz.position.learned_pe import *
    from tfviz.position.rope import *
    from tfviz.position.rope_scaling import *
    from tfviz.position.shaw_relative import *
    from tfviz.position.sinusoidal_pe import *
    from tfviz.position.t5_relative_bias import *
    from tfviz.position.xl_relative import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
