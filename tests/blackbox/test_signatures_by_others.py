"""Our signatures, verified by code that is not ours: the packages standardwebhooks and svix, and Node's
crypto, in a receiver that Node runs. The packages are installed beside the server under test, once."""
import base64
import fcntl
import json
import os
import queue
import shutil
import subprocess
import threading
import unittest

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = {"standardwebhooks": "1.0.0", "svix": "1.24.0"}
# Of RFC 8032, section 7.1: a seed and its public key.
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
OTHER_SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
OTHER_PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")


def base64_of(data):
    return base64.b64encode(data).decode()


def installed_version(directory, name):
    try:
        with open(os.path.join(directory, "node_modules", name, "package.json"), encoding="utf-8") as file:
            return json.load(file)["version"]
    except FileNotFoundError:
        return None


def install_packages():
    """Returns the directory that holds them."""
    directory = os.path.join(os.path.dirname(os.path.abspath(harness.SVCD)), "npm")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if all(installed_version(directory, name) == version for name, version in PACKAGES.items()):
            return directory
        for command in ("node", "npm"):
            if shutil.which(command) is None:
                raise AssertionError(f"{command} is not installed: apt-get install nodejs npm")
        result = subprocess.run(
            ["npm", "install", "--prefix", directory, "--no-audit", "--no-fund", "--no-package-lock",
             "--ignore-scripts", "--loglevel=error", "--fetch-retry-mintimeout=1000",
             "--fetch-retry-maxtimeout=5000", "--fetch-timeout=60000",
             *(f"{name}@{version}" for name, version in PACKAGES.items())],
            capture_output=True, text=True, timeout=300, check=False)
        if result.returncode != 0:
            told = ("npm cannot install what is to verify our signatures; can its registry be reached, and is its "
                    f"certificate known (NODE_EXTRA_CA_CERTS)?\n{result.stderr[-2000:]}")
            raise AssertionError(told) if os.environ.get("CI") else unittest.SkipTest(told)
    return directory


class SignaturesByOthers(harness.ServerCase):
    shares_server = True

    def verifier(self, secrets, public_keys=()):
        """A receiver in Node; returns (port, function that reads what it made of the next request)."""
        process = subprocess.Popen(["node", os.path.join(HERE, "verify.js"), install_packages()],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.wait, harness.DEADLINE_S)
        self.addCleanup(process.stdin.close)
        given = {"secrets": secrets, "publicKeys": [base64_of(key) for key in public_keys]}
        process.stdin.write(json.dumps(given).encode() + b"\n")
        process.stdin.flush()
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in process.stdout], daemon=True).start()

        def read():
            return json.loads(lines.get(timeout=harness.DEADLINE_S))
        return read()["port"], read

    def deliver(self, port, secrets, payload=b'{"No":1}', **members):
        webhook = self.webhook(Destination=f"http://127.0.0.1:{port}/hook", EventSelector="/Shop.OrderPlaced",
                               Signing={"Secrets": secrets}, Delivery={"RetrySchedule": []}, **members)
        self.created("/Svc.Event/Resource=Shop.OrderPlaced", payload)
        return webhook

    def expect_refused(self, report):
        """Of what was changed behind the signature nothing verifies."""
        for changed in ("ofChangedBody", "ofChangedId"):
            results = [result for results in report[changed].values() for result in results]
            self.assertTrue(results)
            self.assertNotIn("ok", results)

    def test_one_secret(self):
        """Of each length that is allowed, and bodies of each kind of character."""
        for length in (24, 32, 64):
            secret = "whsec_" + base64_of(bytes(range(100, 100 + length)))
            port, report = self.verifier([secret])
            payload = '{"No":1.10,"Text":"æ ☃ 𝄞 \\u0000 \\n","More":[{},[]]}'.encode()
            webhook = self.deliver(port, [secret], payload)
            got = report()
            self.assertEqual(got["body"].encode(), b"[" + payload + b"]")
            self.assertEqual(got["results"], {"standardwebhooks": ["ok"], "svix": ["ok"], "ed25519": []})
            self.expect_refused(got)
            self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")

    def test_rotation(self):
        """With several secrets each receiver verifies with that which it has, until it is taken away."""
        old, new, never = ("whsec_" + base64_of(bytes([n] * 32)) for n in (1, 2, 3))
        port, report = self.verifier([old, new, never])
        webhook = self.deliver(port, [old, new])
        got = report()
        for library in ("standardwebhooks", "svix"):
            self.assertEqual(got["results"][library][:2], ["ok", "ok"])
            self.assertRegex(got["results"][library][2], "No matching signature")
        self.expect_refused(got)
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"Signing": {"Secrets": [new]}})
        self.created("/Svc.Event/Resource=Shop.OrderPlaced", b'{"No":2}')
        got = report()
        for library in ("standardwebhooks", "svix"):
            self.assertEqual([result == "ok" for result in got["results"][library]], [False, True, False])

    def test_secrets_that_the_server_makes(self):
        """The first one, and the next, are verified each by its receiver; an ed25519 key by its public half."""
        webhook = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced", IsPaused=True,
                               Signing={"Secrets": ["whsk_" + base64_of(SEED)]})
        target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
        rotated = self.server.request("PATCH", target, {"Signing": {"Rotate": True}}).json()[0]
        pair = base64.b64decode(rotated["Signing"]["Secrets"][1].removeprefix("whsk_"))
        self.server.request("PATCH", target, {"Signing": None})
        secrets = []
        for body in ({"Signing": {}}, {"Signing": {"Rotate": True}}):
            secrets.append(self.server.request("PATCH", target, body).json()[0]["Signing"]["Secrets"][-1])
        port, report = self.verifier(secrets, [pair[32:]])
        self.server.request("PATCH", target, {"IsPaused": False, "Destination": f"http://127.0.0.1:{port}/hook",
                                              "Format": "StandardWebhooks"})
        self.created("/Svc.Event/Resource=Shop.OrderPlaced", b'{"No":1}')
        got = report()
        self.assertEqual(json.loads(got["body"])["data"], {"No": 1})
        for library in ("standardwebhooks", "svix"):
            self.assertEqual(got["results"][library], ["ok", "ok"])
        self.expect_refused(got)
        self.server.request("DELETE", target)
        self.deliver(port, ["whsk_" + base64_of(pair)])
        self.assertEqual(report()["results"]["ed25519"], ["ok"])

    def test_ed25519(self):
        """A seed alone and a whole key; beside a v1 signature both kinds verify."""
        secret = "whsec_" + base64_of(bytes(32))
        port, report = self.verifier([secret], [PUBLIC, OTHER_PUBLIC])
        self.deliver(port, ["whsk_" + base64_of(SEED), secret])
        got = report()
        self.assertEqual(got["results"], {"standardwebhooks": ["ok"], "svix": ["ok"],
                                          "ed25519": ["ok", "does not verify"]})
        self.expect_refused(got)
        self.server.request("DELETE", "/Svc.Admin.Webhook/_/unsafe=true")
        self.deliver(port, ["whsk_" + base64_of(OTHER_SEED + OTHER_PUBLIC), "whsk_" + base64_of(SEED)])
        got = report()
        self.assertEqual(got["results"]["ed25519"], ["ok", "ok"])
        self.assertEqual([part[:4] for part in got["signature"].split()], ["v1a,", "v1a,"])
        self.expect_refused(got)


if __name__ == "__main__":
    unittest.main()
