"""Part VII, attention with prior: one module for each mechanism, and here the names of them all.

>>> from tfviz.priors import running_mean
>>> import torch
>>> running_mean(torch.tensor([[6.0], [0.0], [3.0]])).flatten().tolist()
[6.0, 3.0, 3.0]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.priors.average_attention import *
    from tfviz.priors.camtl_prior import *
    from tfviz.priors.gaussian_transformer import *
    from tfviz.priors.hard_coded_gaussian import *
    from tfviz.priors.lazyformer import *
    from tfviz.priors.localness_gaussian import *
    from tfviz.priors.predictive_attention import *
    from tfviz.priors.realformer import *
    from tfviz.priors.synthesizer import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
