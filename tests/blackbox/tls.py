"""An authority of the tests' own, made by the openssl command, and receivers that show its certificates."""
import os
import ssl
import subprocess

import harness

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
RSA_KEY = ["-newkey", "rsa:2048", "-nodes"]


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


class Authority:
    """Signs certificates; `file` is its own, for CaFile."""

    def __init__(self, directory, name):
        self.base = os.path.join(directory, name)
        self.file = self.base + ".pem"
        openssl("req", "-x509", *KEY, "-subj", f"/CN={name}", "-days", "2",
                "-keyout", self.base + ".key", "-out", self.file)

    def sign(self, *names, days=2, key=KEY):
        """(certificate, key) for names and addresses. Zero days: it has expired when it is there."""
        base = f"{self.base}-{names[0]}-{days}"
        kinds = {name: "IP" if name[0].isdigit() or ":" in name else "DNS" for name in names}
        with open(base + ".ext", "w", encoding="ascii") as file:
            file.write("subjectAltName=" + ",".join(f"{kind}:{name}" for name, kind in kinds.items()))
        openssl("req", "-new", *key, "-subj", f"/CN={names[0]}", "-keyout", base + ".key", "-out", base + ".csr")
        openssl("x509", "-req", "-in", base + ".csr", "-CA", self.file, "-CAkey", self.base + ".key",
                "-set_serial", str(abs(hash(base))), "-days", str(days), "-extfile", base + ".ext",
                "-out", base + ".pem")
        return base + ".pem", base + ".key"


class TlsReceiver(harness.Receiver):
    """A receiver behind TLS; says of each connection whether it took up an earlier session."""

    def __init__(self, certificate, script=None):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*certificate)
        self.resumed = []
        self.handshake_errors = []
        self.speaker = None
        super().__init__(script)

    def speak(self, script):
        """Gives each connection, when its handshake is done, to a script instead: a function of a socket."""
        self.speaker = script

    def url(self, path="/hook", host="127.0.0.1"):
        return f"https://{host}:{self.port}{path}"

    def _serve(self, connection):
        try:
            secured = self.context.wrap_socket(connection, server_side=True)
        except OSError as error:
            self.handshake_errors.append(error)
            connection.close()
            return
        self.resumed.append(secured.session_reused)
        if self.speaker is None:
            super()._serve(secured)
            return
        try:
            self.speaker(secured)
        except OSError:
            pass
        finally:
            secured.close()
