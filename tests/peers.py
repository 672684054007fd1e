"""MosaicML Streaming without what it imports and we do not use.

It imports torchvision and transformers for their names alone; both are large, and torchvision's
wheels do not go with a CPU build of torch.
"""
import sys
import types

UNUSED = {
    "torchvision": {}, "torchvision.datasets": {"VisionDataset": object},
    "torchvision.transforms": {}, "torchvision.transforms.functional": {"to_tensor": None},
    "transformers": {}, "transformers.feature_extraction_utils": {"BatchFeature": dict},
    "transformers.tokenization_utils_base": {"BatchEncoding": dict},
    "transformers.models": {}, "transformers.models.auto": {},
    "transformers.models.auto.tokenization_auto": {"AutoTokenizer": None},
}


def streaming():
    """The module, imported."""
    if "streaming" not in sys.modules:
        added = [name for name in UNUSED if name not in sys.modules]
        for name in added:
            module = types.ModuleType(name)
            module.__dict__.update(UNUSED[name], __path__=[])
            sys.modules[name] = module
        try:
            import streaming  # noqa: F401
        finally:
            for name in added:
                del sys.modules[name]
    return sys.modules["streaming"]
