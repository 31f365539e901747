"""requests, with tenacity around it."""

import requests
from request import BODY, HEADERS, METHOD, URL
from tenacity import retry, stop_after_attempt, wait_random_exponential


@retry(stop=stop_after_attempt(4), wait=wait_random_exponential(multiplier=0.5, max=4))
def send():
    requests.request(METHOD, URL, data=BODY, headers=HEADERS, timeout=2).raise_for_status()


send()
