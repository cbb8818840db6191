"""AWS's binary event-stream framing, which botocore decodes and has no encoder for.

A message is: total length, headers' length, CRC-32 of both, headers, payload, CRC-32 of all before it; big-endian.
Source: Smithy's specification of ``application/vnd.amazon.eventstream``.
"""

import json
import struct
from binascii import crc32
from collections.abc import Mapping

MEDIA_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One framed message."""
    encoded = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    framed = prelude + struct.pack("!I", crc32(prelude)) + encoded + payload
    return framed + struct.pack("!I", crc32(framed))


def payload_part(payload: bytes) -> bytes:
    """A ``PayloadPart``: some bytes of the model's answer."""
    return message({":message-type": "event", ":event-type": "PayloadPart", ":content-type": "application/octet-stream"}, payload)


def model_stream_error(text: str, code: str = "StreamBroken") -> bytes:
    """A ``ModelStreamError``: the answer broke off."""
    headers = {":message-type": "exception", ":exception-type": "ModelStreamError", ":content-type": "application/json"}
    return message(headers, json.dumps({"Message": text, "ErrorCode": code}).encode())
