"""Exhibits: what each mechanism shows in the atlas and in the race of the family, by its id.

They stand outside of the rooms, so that a picture never puts a stored result in doubt.

>>> EXHIBITS["rope"].picture().shape
torch.Size([24, 24])
"""

from importlib import import_module
from importlib.util import find_spec

from tfviz import catalogue
from tfviz.exhibits.exhibit import Exhibit, Gpt

__all__ = ["EXHIBITS", "Exhibit", "Gpt"]

_HOMES = [f"{__name__}.{part.id}" for part in catalogue.PARTS]
_FOUND = {
    name: exhibit
    for home in _HOMES
    if find_spec(home)
    for name, exhibit in import_module(home).EXHIBITS.items()
}
EXHIBITS: dict[str, Exhibit] = {
    name: _FOUND[name] for name in [row.id for row in catalogue.MECHANISMS] if name in _FOUND
}
"""In the order of the course."""
