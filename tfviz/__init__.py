"""tfviz: the Transformer family, each mechanism as a formula, a picture and a live explorer.

What most people call stands at the door, and nothing is imported before it is used:

    attention, sparse_attention    attention by its definition, and at the cost of a pattern's pairs
    patterns                       who may attend to whom: strided(8) | global_tokens(2)
    GPT, BERT, EncoderDecoder      small models that take every mechanism: GPT(…, core=Rope)
    explain                        your own mask_mod, score_mod, mask or bias, with all its faces
    examine                        any attention, asked whether it obeys the laws that ours obey
    implied_map                    the L × L matrix that any core applies, also one that forms none
    plots, explorers               pictures of all of it, still and live
    anatomy                        a public model by its name or its config.json, taken apart

Behind it are the rooms. The parts hold the mechanisms of the surveys, one module each: `basics`,
`position`, `longer_context`, `adaptive`, `sparse`, `compressed`, `priors`, `heads`, `beyond_text`.
What they are made from: `formula` (formulas of indices, as code, LaTeX and JavaScript), `cores`
(what stands inside of an attention), `models`, `training`, `data`. `measure` counts what something
costs, `checks` is for exercises, `exhibits` has what a mechanism shows of itself, `catalogue` lists
all mechanisms, and `stored` reads the results of experiments. The experiments, and `compare`, are
another package: `tfviz_lab`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz import (
        adaptive,
        anatomy,
        basics,
        beyond_text,
        compressed,
        cores,
        explorers,
        heads,
        longer_context,
        models,
        patterns,
        plots,
        position,
        priors,
        sparse,
    )
    from tfviz.cores import implied_map
    from tfviz.dense_attention import attention
    from tfviz.examined.report import examine
    from tfviz.explained.bring import explain
    from tfviz.models.bert import BERT
    from tfviz.models.blocks import MultiHeadAttention
    from tfviz.models.encoder_decoder import EncoderDecoder
    from tfviz.models.gpt import GPT
    from tfviz.models.use import attention_weights, generate
    from tfviz.sub_quadratic import sparse_attention
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)

__version__ = "0.1.0"
