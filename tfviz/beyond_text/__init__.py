"""Part IX, beyond text: one module for each mechanism, and here all their names."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.beyond_text.conformer_block import (
        Conformer,
        Convolution,
        conformer,
        depthwise,
        half_step,
        offsets,
        reach,
    )
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
