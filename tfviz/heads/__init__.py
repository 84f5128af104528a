"""Part VIII, the multi-head mechanism: one module for each mechanism, and here all their names.

>>> from tfviz.heads import reads
>>> reads(8, 2)
[0, 0, 0, 0, 1, 1, 1, 1]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.heads.collaborative_heads import (
        Factors,
        SharedKeys,
        collaborative,
        collaborative_definition,
        parafac,
    )
    from tfviz.heads.decoupled_head_size import (
        FreeHeads,
        drawn_by,
        rank_needed,
        weights_for,
    )
    from tfviz.heads.disagreement_regularization import (
        agreement,
        between,
        cosines,
        disagreement,
        overlaps,
        pairs_of,
        values,
    )
    from tfviz.heads.grouped_query_attention import (
        Grouped,
        convert,
        first_of_group,
        fresh,
        grouped_definition,
        mean_of_group,
        reads,
        tiled_order,
    )
    from tfviz.heads.guided_attention import (
        floors,
        guidance,
        guided_loss,
        strength,
        targets,
    )
    from tfviz.heads.multi_query_attention import (
        matched_d_ff,
        multi_query_definition,
        parameters_saved,
    )
    from tfviz.heads.routing_heads_dynamic import (
        DynamicRouting,
        HeadVotes,
        dynamic_definition,
        routing_rounds,
        squash,
    )
    from tfviz.heads.routing_heads_em import EMRouting, em_definition, em_rounds
    from tfviz.heads.talking_heads import Talking, residual, talking, talking_definition
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
