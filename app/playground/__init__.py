"""The playground: a page at ``/``, plain HTML, CSS and JavaScript modules, served as they are."""

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from app.endpoint import EndpointError

FOLDER = Path(__file__).parent
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Nothing is loaded from elsewhere, and no text of a model can become a script.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}

router = APIRouter(include_in_schema=False)


def is_page(method: str, path: str) -> bool:
    """Whether a request is for the page itself, which holds nothing that a key protects."""
    return method in ("GET", "HEAD") and (path == "/" or path.startswith("/playground/"))


@router.get("/")
async def page() -> Response:
    """The page."""
    return await file("index.html")


@router.get("/playground/{name}")
async def file(name: str) -> Response:
    """One of the page's files."""
    path = FOLDER / name
    if path.parent != FOLDER or path.suffix not in TYPES or not path.is_file():
        raise EndpointError("not_found", f"the playground has no file {name!r}")
    return FileResponse(path, media_type=TYPES[path.suffix], headers=HEADERS)
