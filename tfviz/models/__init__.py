"""A GPT, a BERT and an encoder–decoder, made from the same blocks.

>>> import torch
>>> from tfviz.models import GPT, generate
>>> generate(GPT(vocab=11, d=8, h=2, N=1), torch.tensor([[3, 1, 4]]), steps=2).shape
torch.Size([1, 5])
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfviz.models.bert import *
    from tfviz.models.blocks import *
    from tfviz.models.encoder_decoder import *
    from tfviz.models.gpt import *
    from tfviz.models.use import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
