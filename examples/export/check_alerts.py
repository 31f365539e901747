"""Runs the example with a real Prometheus, and checks every alert and every panel by its values.

    python3 examples/export/check_alerts.py

The alerts are those of deploy/prometheus-alerts.yml with shorter times, the panels those of
deploy/grafana-dashboard.json. An outage must fire its alert, and ordinary misses must not.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parent.parent / "deploy"
RANGE = "10s"
PATIENCE = 40

# Which faults make which alerts fire, as requests to the control endpoint. They are removed
# afterwards.
BUSY = {"opcode": "GET", "effect": "answer", "status": "ETMPFAIL"}
FAULTS = [
    (["SteadfastManyRetries"], "/faults", BUSY | {"probability": 0.2}),
    (["SteadfastUnknownOutcomes"], "/faults", {"opcode": "INCREMENT", "times": 5, "effect": "cut-after-applying"}),
    (["SteadfastOperationsFail"], "/faults", BUSY),
    (["SteadfastBreakerOpen", "SteadfastNodeSpared"], "/faults", {"opcode": "GET", "effect": "hold"}),
    (["SteadfastRetryBudgetLow"], "/faults", BUSY | {"opcode": "INCREMENT"}),
    (["SteadfastNodeWithoutConnection"], "/topology/crash", {"node": 1}),
]


class Failed(Exception):
    pass


def shortened(alerts: str) -> str:
    """The same rules, over seconds instead of minutes."""
    alerts = re.sub(r"\[\d+m\]", f"[{RANGE}]", alerts)
    alerts = re.sub(r"offset \d+m", f"offset {RANGE}", alerts)
    return re.sub(r"for: \d+m", "for: 2s", alerts)


class Prometheus:
    def __init__(self, address: str):
        self.address = address

    def get(self, path: str, **parameters: str):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{query}", timeout=5) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> dict:
        """The values by the labels of their series."""
        found = self.get("query", query=expression.replace("$__rate_interval", RANGE))["result"]
        return {json.dumps(series["metric"], sort_keys=True): float(series["value"][1]) for series in found}

    def one(self, expression: str) -> float:
        found = self.query(expression)
        if len(found) != 1:
            raise Failed(f"{expression}: {len(found)} values instead of one")
        return next(iter(found.values()))

    def firing(self) -> set:
        return {alert["labels"]["alertname"] for alert in self.get("alerts")["alerts"] if alert["state"] == "firing"}

    def wait_for(self, what: str, holds) -> float:
        started = time.monotonic()
        while time.monotonic() - started < PATIENCE:
            try:
                if holds():
                    return time.monotonic() - started
            except (OSError, Failed):
                pass
            time.sleep(0.3)
        raise Failed(f"not within {PATIENCE} s: {what}; firing: {sorted(self.firing())}")


class Control:
    def __init__(self, address: str):
        self.token, self.address = address.rsplit("@", 1)

    def send(self, method: str, path: str, body: dict | None = None):
        request = urllib.request.Request(f"http://{self.address}{path}", method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(request, data, timeout=30) as answer:
            return answer.read()


def near(what: str, found: float, expected: float, factor: float):
    print(f"  {what}: {found:.6g}, expected {expected:.6g}")
    if not expected / factor <= found <= expected * factor:
        raise Failed(f"{what} is {found}, and should be {expected} within a factor of {factor}")


def check_quiet(prometheus: Prometheus, panels: dict):
    """Nothing is wrong, and a quarter of the operations are misses."""
    answers = {title: prometheus.query(panel["targets"][0]["expr"]) for title, panel in panels.items()}
    for title, values in answers.items():
        print(f"  {title}: {values}"[:150])
        # An operation that is not used any more has no percentile.
        if not values or all(value != value for value in values.values()):
            raise Failed(f"the panel {title!r} has no data: {values}")
        if "noValue" not in panels[title]["fieldConfig"]["defaults"] and "vector(0)" not in panels[title]["targets"][0]["expr"]:
            raise Failed(f"the panel {title!r} would say 'No data' for a client without the feature")
    of = lambda title, **labels: answers[title].get(json.dumps(labels, sort_keys=True))
    get = {"db_operation_name": "get"}
    reads = prometheus.one(f"sum(rate(example_read_duration_count[{RANGE}]))")
    near("reads per second, with misses", of("Operations", **get), reads * 1.5, 1.2)
    near("misses per second", of("Answers by kind", couchbase_answer="DocumentNotFound"), reads / 2, 1.2)
    for title, quantile in (("Latency, p50", "0.5"), ("Latency, p99", "0.99")):
        factor = 1.7 if quantile == "0.5" else 6
        near(title, of(title, **get), prometheus.one(f'example_read_duration{{quantile="{quantile}"}}'), factor)
    for title in ("Failures by kind", "Open circuit breakers", "Shed operations"):
        if any(answers[title].values()):
            raise Failed(f"{title} is not 0: {answers[title]}")
    if list(answers["Connections by node"].values()) != [1.0] * 3:
        raise Failed(f"not three connections: {answers['Connections by node']}")
    near("retry budget", next(iter(answers["Retry budget"].values())), 1, 1.05)
    if prometheus.firing():
        raise Failed(f"misses fire {prometheus.firing()}")


def check(prometheus: Prometheus, control: Control, rules: str):
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    panels = {panel["title"]: panel for panel in dashboard["panels"]}
    misses = 'rate(db_client_operation_duration_count{couchbase_answer="DocumentNotFound"}[10s])'
    prometheus.wait_for("metrics", lambda: prometheus.query(misses) and prometheus.query("couchbase_client_connections"))
    time.sleep(11)
    print("quiet")
    check_quiet(prometheus, panels)
    names = set(re.findall(r"alert: (\w+)", rules))
    tested = {name for alerts, *_ in FAULTS for name in alerts}
    if names != tested:
        raise Failed(f"there are faults for {sorted(tested)}, and alerts {sorted(names)}")
    for alerts, path, body in FAULTS:
        print(f"{path} {body}")
        # What is only busy or slow for a moment is not an outage.
        if "SteadfastOperationsFail" in alerts and "SteadfastOperationsFail" in prometheus.firing():
            raise Failed("retries that succeed fire SteadfastOperationsFail")
        control.send("POST", path, body)
        for alert in alerts:
            took = prometheus.wait_for(f"{alert} fires", lambda: alert in prometheus.firing())
            print(f"  {alert} fires after {took:.1f} s")
        control.send("DELETE", "/faults")


def main() -> int:
    build = ["cargo", "build", "--quiet", "--locked", "--no-default-features"]
    subprocess.run(build, cwd=HERE, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target"))
    alerts = DEPLOY / "prometheus-alerts.yml"
    subprocess.run(["promtool", "check", "rules", alerts], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["promtool", "check", "config", HERE / "prometheus.yml"], check=True, stdout=subprocess.DEVNULL)
    processes = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        try:
            command = [target / "debug" / "export", "serve", "127.0.0.1:9464"]
            example = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            processes.append(example)
            lines = (line.split() for line in example.stdout)
            control = next(words[1] for words in lines if words and words[0] == "control")
            rules = shortened(alerts.read_text())
            (scratch / "alerts.yml").write_text(rules)
            config = (HERE / "prometheus.yml").read_text().replace("5s", "500ms")
            config = config.replace("../../deploy/prometheus-alerts.yml", "alerts.yml")
            (scratch / "prometheus.yml").write_text(config)
            address = "127.0.0.1:9465"
            log = (scratch / "log").open("w")
            processes.append(
                subprocess.Popen(
                    ["prometheus", f"--config.file={scratch}/prometheus.yml", f"--storage.tsdb.path={scratch}/data",
                     f"--web.listen-address={address}"],
                    stdout=log, stderr=log,
                )
            )
            check(Prometheus(address), Control(control), rules)
        except Failed as failure:
            print(f"FAILED: {failure}", file=sys.stderr)
            return 1
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGINT)
            for process in processes:
                process.wait(20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
