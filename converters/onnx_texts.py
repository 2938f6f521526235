"""Names and texts of an ONNX file that are no text: bytes that are not UTF-8, which no later step could write again."""

from __future__ import annotations

from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor  # type: ignore[import-untyped]  # no types shipped
from google.protobuf.message import Message  # type: ignore[import-untyped]


def unreadable_text(message: Message) -> bytes | None:
    """The first text anywhere in `message` that is not UTF-8; None where every one is."""
    waiting = [message]
    while waiting:
        current = waiting.pop()
        texts, inner = _fields(current.DESCRIPTOR)
        for name in texts:
            value = getattr(current, name)
            for text in (value,) if isinstance(value, (str, bytes)) else value:
                if isinstance(text, bytes):  # protobuf's Python gives these where it cannot decode them
                    return text
        for name in inner:
            value = getattr(current, name)
            if not isinstance(value, Message):  # a list
                waiting.extend(value)
            elif current.HasField(name):
                waiting.append(value)
    return None


@cache
def _fields(kind: Descriptor) -> tuple[list[str], list[str]]:
    """Names of the fields of a message that hold texts, and of those that hold messages."""
    texts = [field.name for field in kind.fields if field.type == FieldDescriptor.TYPE_STRING]
    inner = [field.name for field in kind.fields if field.type == FieldDescriptor.TYPE_MESSAGE]
    return texts, inner
