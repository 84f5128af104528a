"""Exhibits: what each mechanism shows in the atlas and in the race of the family, by its id.

They stand outside of the rooms, so that a picture never puts a stored result in doubt; and they do
not ask the catalogue, so that no word of a card does.

>>> EXHIBITS["rope"].picture().shape
torch.Size([24, 24])
"""

from importlib import import_module

from tfviz.exhibits.exhibit import Exhibit, Gpt

__all__ = ["EXHIBITS", "Exhibit", "Gpt"]

_PARTS = (
    "basics",
    "position",
    "longer_context",
    "adaptive",
    "sparse",
    "compressed",
    "priors",
    "heads",
    "beyond_text",
)
EXHIBITS: dict[str, Exhibit] = {
    name: exhibit
    for part in _PARTS
    for name, exhibit in import_module(f"{__name__}.{part}").EXHIBITS.items()
}
"""In the order of the course."""
