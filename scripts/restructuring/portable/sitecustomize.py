"""On the path of every process that golden.py starts: torch then takes the processor for one without bfloat16."""

import importlib.abc
import importlib.machinery
import sys


class _WithoutBfloat16(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads torch.cpu as ever, and has its query of the processor answer no: "auto" is float32 on every machine."""

    def find_spec(self, name, path, target=None):
        if name != "torch.cpu":
            return None
        sys.meta_path.remove(self)
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        self._loader, found.loader = found.loader, self
        return found

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        module._is_avx512_bf16_supported = lambda: False


sys.meta_path.insert(0, _WithoutBfloat16())
