"""httpx with the retries of its transport."""

import httpx
from request import BODY, HEADERS, METHOD, URL

with httpx.Client(transport=httpx.HTTPTransport(retries=3), timeout=2) as client:
    client.request(METHOD, URL, content=BODY, headers=HEADERS).raise_for_status()
