"""Part VII, attention with prior: one module for each mechanism, and here the names of them all.

>>> from tfviz.priors import running_mean
>>> import torch
>>> running_mean(torch.tensor([[6.0], [0.0], [3.0]])).flatten().tolist()
[6.0, 3.0, 3.0]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.priors.average_attention import (
        AverageAttention,
        Averages,
        averages_definition,
        running_mean,
        share,
    )
    from tfviz.priors.camtl_prior import TaskPrior, camtl_definition, task_prior
    from tfviz.priors.gaussian_transformer import (
        Gaussian,
        beside,
        best_distance,
        gaussian_definition,
    )
    from tfviz.priors.hard_coded_gaussian import HardCoded, bell, hard_coded_definition
    from tfviz.priors.lazyformer import (
        LazyAttention,
        Sharing,
        lazy_blocks,
        lazyformer_definition,
        saved_flops,
    )
    from tfviz.priors.localness_gaussian import (
        Localness,
        bell_around,
        localness_definition,
    )
    from tfviz.priors.predictive_attention import (
        Evolving,
        Predictive,
        convolved,
        predictive_definition,
    )
    from tfviz.priors.realformer import RealFormer, realformer_definition, scores_from_below
    from tfviz.priors.synthesizer import Synthesizer, dense_scores, outer_scores
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
