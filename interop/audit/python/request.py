"""The request that the audit asks for."""

import os

METHOD = os.environ["AUDIT_METHOD"]
URL = os.environ["AUDIT_URL"]
HEADERS = {"Idempotency-Key": os.environ["AUDIT_KEY"]} if os.environ["AUDIT_KEY"] else {}
BODY = None
if METHOD != "GET":
    with open(os.environ["AUDIT_FILE"], "rb") as file:
        BODY = file.read()
