"""Part IV, adaptive modelling: one module for each mechanism, and here the names of them all.

>>> from tfviz.adaptive import hoeffding
>>> round(float(hoeffding(0.1, 100, 0.2)), 4)
0.1353
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.adaptive.adaptive_span import AdaptiveSpan, Span, span_attention, span_definition
    from tfviz.adaptive.calm_confidence import (
        Confidence,
        agreement_loss,
        classified,
        falling,
        read_early,
        saturation,
        softmax_response,
        write_early,
    )
    from tfviz.adaptive.depth_adaptive_training import aligned_loss, exit_losses, mixed_loss
    from tfviz.adaptive.depth_classifiers import (
        GeometricExit,
        SequenceExit,
        TokenExit,
        exit_loss,
        geometric,
        sequence_oracle,
        token_oracle,
    )
    from tfviz.adaptive.dynamic_span import DynamicSpan, dynamic_spans
    from tfviz.adaptive.ltt_calibration import (
        binomial,
        fixed_sequence,
        hoeffding,
        hoeffding_bentkus,
        learn_then_test,
    )
    from tfviz.adaptive.multi_scale_transformer import allocation, multi_scale
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
