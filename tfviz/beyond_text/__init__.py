"""Part IX, beyond text: one module for each mechanism, and here all their names.

>>> from tfviz.beyond_text import passed
>>> round(passed(b=2.0), 2)
0.88
"""

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
    from tfviz.beyond_text.decision_transformer import (
        DecisionTransformer,
        Walk,
        act,
        action_loss,
        graph_walker,
        interleaved,
        returns_to_go,
    )
    from tfviz.beyond_text.efficiency_tradeoffs import (
        block_flops,
        crossing,
        front,
        length_for,
        objection,
        speedup,
        streamed,
    )
    from tfviz.beyond_text.gtrxl import (
        GATES,
        Gate,
        Kind,
        gated,
        gated_transformer_xl,
        gru_gate,
        highway_gate,
        input_gate,
        output_gate,
        passed,
        reordered,
        sigtanh_gate,
    )
    from tfviz.beyond_text.tokenise_anything import (
        Joint,
        apart,
        frames,
        same_kind,
    )
    from tfviz.beyond_text.vit_patches import (
        ViT,
        images_of,
        patches,
        rearranged,
        resized,
        seen_by_class,
    )
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
