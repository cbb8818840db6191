"""Signature Version 4, checked by making it again with botocore's own signer.

Source: AWS's reference of signing AWS API requests. A signature is good for five minutes either way, as AWS's are.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from botocore.auth import SIGV4_TIMESTAMP, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from app.keys import Key, Keys
from app.sagemaker.api import ApiError

SKEW = timedelta(minutes=5)
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/,\s]+)/(?P<date>\d{8})/(?P<region>[^/,\s]+)/(?P<service>[^/,\s]+)/aws4_request, ?"
    r"SignedHeaders=(?P<headers>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
_SERVICES = ("sagemaker", "application-autoscaling")


def verify(keys: Keys, method: str, url: str, headers: Mapping[str, str], body: bytes, now: datetime) -> Key:
    """The access key that signed a request.

    Args:
        keys: those that may call.
        method: the HTTP method.
        url: the URL as the client wrote it.
        headers: the request's headers, names in lower case.
        body: the request's body.
        now: the time.

    Raises:
        ApiError: the signature is missing, old, or not that key's for this request.
    """
    authorization = headers.get("authorization", "")
    if not authorization:
        raise ApiError("MissingAuthenticationTokenException", "Missing Authentication Token")
    given = _AUTHORIZATION.fullmatch(authorization)
    if given is None or given["service"] not in _SERVICES:
        raise ApiError("IncompleteSignatureException", "The Authorization header is not a Signature Version 4 for sagemaker")
    key = keys.access_key(given["id"])
    if key is None:
        raise ApiError("UnrecognizedClientException", "The security token included in the request is invalid.")
    timestamp = headers.get("x-amz-date", "")
    try:
        at = datetime.strptime(timestamp, SIGV4_TIMESTAMP).replace(tzinfo=UTC)
    except ValueError:
        raise ApiError("IncompleteSignatureException", "X-Amz-Date: give the time of signing as YYYYMMDDThhmmssZ") from None
    if abs(now - at) > SKEW or not timestamp.startswith(given["date"]):
        shown = now.strftime(SIGV4_TIMESTAMP)
        raise ApiError("InvalidSignatureException", f"Signature expired: {timestamp} is more than 5 minutes from {shown}")
    signed = given["headers"].split(";")
    if "host" not in signed or "x-amz-date" not in signed or any(name not in headers for name in signed):
        raise ApiError("IncompleteSignatureException", "SignedHeaders: host and x-amz-date must be signed, and every signed header sent")
    digest = hashlib.sha256(body).hexdigest()
    if headers.get("x-amz-content-sha256", digest) != digest:
        raise ApiError("InvalidSignatureException", "X-Amz-Content-SHA256 is not the body's")
    request = AWSRequest(method, url, {name: headers[name] for name in signed}, body)
    request.context["timestamp"] = timestamp
    signer = SigV4Auth(Credentials(key.identifier, key.secret.get_secret_value()), given["service"], given["region"])
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    if not hmac.compare_digest(signature, given["signature"]):
        raise ApiError("InvalidSignatureException", "The request signature we calculated does not match the signature you provided.")
    return key
