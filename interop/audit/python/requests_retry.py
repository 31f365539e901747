"""requests with urllib3's Retry. With "any", every method is retried."""

import sys

import requests
from request import BODY, HEADERS, METHOD, URL
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

methods = None if "any" in sys.argv else Retry.DEFAULT_ALLOWED_METHODS
retry = Retry(total=3, backoff_factor=0.5, status_forcelist=[429, 500, 502, 503, 504], allowed_methods=methods)
session = requests.Session()
session.mount("http://", HTTPAdapter(max_retries=retry))
session.request(METHOD, URL, data=BODY, headers=HEADERS, timeout=2).raise_for_status()
