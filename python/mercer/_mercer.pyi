"""The compiled part of the package."""

import os
from typing import Any, final

from mercer._resources import Resources

VERSION: str

def call(
    line: list[str],
    arrays: list[tuple[str, Any]],
    resources: Resources,
    folders: list[tuple[str, bytes]] = ...,
) -> str: ...
def describe() -> list[dict[str, Any]]: ...
def instructions() -> str: ...
def main(line: list[str]) -> int: ...
def pack(path: str | os.PathLike[str]) -> bytes: ...
def size(text: str) -> int: ...

@final
class Numbers:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class Kernel:
    def __new__(cls, text: str, network: Network | None = None) -> Kernel: ...
    @property
    def text(self) -> str: ...
    def gram(
        self,
        rows: list[tuple[str, Any]],
        columns: list[tuple[str, Any]] | None,
        double: bool,
        resources: Resources,
    ) -> Numbers: ...
    def features(self, rows: list[tuple[str, Any]], double: bool, resources: Resources) -> Numbers: ...

@final
class Network:
    def __new__(cls, path: str | os.PathLike[str], parameters: str, resources: Resources) -> Network: ...
    @staticmethod
    def build(description: str, seed: int) -> bytes: ...
    @property
    def inputs(self) -> list[tuple[str, bool]]: ...
    @property
    def outputs(self) -> list[str]: ...
    @property
    def parameters(self) -> list[tuple[str, list[int]]]: ...
    @property
    def remarks(self) -> list[str]: ...
    def to_bytes(self) -> bytes: ...
    def values(
        self,
        inputs: list[tuple[str, Any]],
        nodes: list[str | None],
        double: bool,
        resources: Resources,
    ) -> list[Numbers]: ...
    def train(
        self,
        inputs: list[tuple[str, Any]],
        labels: Any,
        settings: str,
        double: bool,
        resources: Resources,
    ) -> tuple[bytes, str]: ...
