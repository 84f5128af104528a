"""Part IX, beyond text: one module for each mechanism, and here all their names."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.beyond_text.decision_transformer import (
        DecisionTransformer,
        Walk,
        act,
        action_loss,
        graph_walker,
        interleaved,
        returns_to_go,
    )
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
