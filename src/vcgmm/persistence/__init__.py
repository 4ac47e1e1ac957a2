"""Model, coreset and checkpoint files: safetensors with a JSON header. Reading one never runs anything in it."""

from .checkpoint import Checkpoint, load_checkpoint, make_origin
from .checkpointing import Checkpointing, check_checkpoint
from .container import FORMAT_VERSION, kind_of, read_header
from .coreset import Given, StoredCoreset, read_coreset, write_coreset
from .model import load_model, save_model, training_facts

__all__ = [
    "FORMAT_VERSION",
    "Checkpoint",
    "Checkpointing",
    "Given",
    "StoredCoreset",
    "check_checkpoint",
    "kind_of",
    "load_checkpoint",
    "load_model",
    "make_origin",
    "read_coreset",
    "read_header",
    "save_model",
    "training_facts",
    "write_coreset",
]
