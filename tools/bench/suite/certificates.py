"""An authority of the run's own and a certificate for whatever receives deliveries, made by the
openssl command. A wildcard may not stand right before a top-level name: hosts have a second label."""
import os
import subprocess

HOSTS = "hooks.localhost"
NAMES = f"IP:127.0.0.1,DNS:localhost,DNS:*.{HOSTS}"
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def _openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


class Certificate:
    """Files: `authority` is what a client trusts, `chain` and `key` are the receiver's."""

    def __init__(self, directory):
        def path(name):
            return os.path.join(directory, name)
        self.authority, self.chain, self.key = map(path, ("ca.pem", "hooks.pem", "hooks.key"))
        _openssl("req", "-x509", *KEY, "-subj", "/CN=bench", "-days", "2", "-keyout",
                 path("ca.key"), "-out", self.authority)
        _openssl("req", "-new", *KEY, "-subj", "/CN=hooks", "-keyout", self.key, "-out",
                 path("hooks.csr"))
        with open(path("hooks.ext"), "w", encoding="ascii") as file:
            file.write("subjectAltName=" + NAMES)
        _openssl("x509", "-req", "-in", path("hooks.csr"), "-CA", self.authority, "-CAkey",
                 path("ca.key"), "-set_serial", "2", "-days", "2", "-extfile", path("hooks.ext"),
                 "-out", self.chain)
