"""Model and coreset files: safetensors with a JSON header. Reading one never runs anything that is in it."""

from .container import FORMAT_VERSION, kind_of, read_header
from .coreset import load_coreset, save_coreset
from .model import load_model, save_model, training_facts

__all__ = [
    "FORMAT_VERSION",
    "kind_of",
    "load_coreset",
    "load_model",
    "read_header",
    "save_coreset",
    "save_model",
    "training_facts",
]
