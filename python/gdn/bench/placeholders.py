# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports of an engine from a folder with some of its files: its other modules are placeholders,
whose names do nothing."""

import importlib.abc
import importlib.machinery
import importlib.util
import shutil
import types
from collections.abc import Sequence
from pathlib import Path


class _Placeholders(type):
    """Classes for any name: a base, a decorator, a context, a function; false as a condition."""

    def __getattr__(cls, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return _placeholder(name)

    def __call__(cls, *arguments, **options):
        if not cls.__dict__.get("is_placeholder"):
            return super().__call__(*arguments, **options)
        if len(arguments) == 1 and isinstance(arguments[0], type | types.FunctionType):
            return arguments[0]
        return _placeholder(cls.__name__)

    def __getitem__(cls, key):
        return cls

    def __bool__(cls) -> bool:
        return not cls.__dict__.get("is_placeholder", False)

    def __enter__(cls):
        return cls

    def __exit__(cls, *error) -> None:
        return None


def _placeholder(name: str) -> type:
    return _Placeholders(name, (), {"is_placeholder": True})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of `package`: `files` of the folder, what `given` has, else placeholders. `others`
    are placeholders, too, and `called` are where they are not installed."""

    def __init__(
        self,
        folder: Path,
        given: dict[str, dict[str, object]],
        package: str,
        files: Sequence[str],
        *,
        others: Sequence[str] = (),
        called: Sequence[str] = (),
    ):
        self.folder, self.given, self.package = folder, given, package
        self.files, self.others, self.called = frozenset(files), others, called

    def find_spec(self, name: str, path=None, target=None):
        if name in self.called and importlib.machinery.PathFinder.find_spec(name) is not None:
            return None
        known = (*self.others, *self.called)
        if name.partition(".")[0] != self.package and name not in known:
            return None
        relative = name.replace(".", "/")
        for file in (f"{relative}.py", f"{relative}/__init__.py"):
            if file in self.files:
                folder = self.folder / relative
                inside = [str(folder)] if file.endswith("__init__.py") else None
                return importlib.util.spec_from_file_location(
                    name, self.folder / file, submodule_search_locations=inside
                )
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module).update(self.given.get(module.__name__, {}))

        def attribute(name: str):
            if name.startswith("__"):
                raise AttributeError(name)
            return _placeholder(name)

        module.__getattr__ = attribute


def copy_files(files: Sequence[str], tree: Path, folder: Path) -> None:
    """The same files in a new folder."""
    for file in files:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree / file, target)
    print(f"{len(files)} files")
