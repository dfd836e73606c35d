"""An authority of the tests' own, made by the openssl command, receivers that show its certificates, and the
receiver's end of TLS with each of its steps in a script's hand."""
import atexit
import ctypes
import functools
import os
import shutil
import ssl
import subprocess
import tempfile
import threading

import harness

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
RSA_KEY = ["-newkey", "rsa:2048", "-nodes"]
# In the certificate that cases over TLS share.
NAMES = ["good.test", "moving.test", *(f"n{number}.test" for number in range(30))]
UNREADABLE = b"\x17\x03\x03\x00\x20" + bytes(32)  # a record


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=harness.DEADLINE_S)


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


@functools.cache
def make_ours():
    directory = tempfile.mkdtemp(prefix="svcd-test-")
    atexit.register(shutil.rmtree, directory, True)
    authority = Authority(directory, "ours")
    return authority.file, authority.sign("127.0.0.1", "127.0.0.2", *NAMES)


making = threading.Lock()


def ours():
    """The file of the authority that cases over TLS share, and a certificate of it for 127.0.0.1, 127.0.0.2 and NAMES."""
    with making:
        return make_ours()


def make_context(certificate, latest=None):
    """Of a receiver that speaks up to this version."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.maximum_version = latest or ssl.TLSVersion.MAXIMUM_SUPPORTED
    return context


class OverTls:
    """Mixed into a case: its receivers speak TLS, and the server believes them."""

    latest = None  # version

    @functools.cached_property
    def context(self):
        return make_context(ours()[1], self.latest)

    def make_config(self):
        authority, _ = ours()
        config = super().make_config() or harness.load_config(harness.SHOP)
        return dict(config, Delivery=dict(config.get("Delivery", {}), CaFile=authority))

    def receiver(self, script=None, address="127.0.0.1"):
        receiver = TlsReceiver(ours()[1], script, address)
        self.addCleanup(receiver.close)
        return receiver


class Secured:
    """The receiver's end of TLS on a socket: as that socket, as long as a script does not care; else what
    is sealed is the script's to send, in what pieces it likes."""

    def __init__(self, sock, context):
        self.socket = sock
        self.lock = threading.Lock()  # one may read while another writes
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.piece = 1 << 20  # bytes sent at a time
        self.holds_back = False

    def first_flight(self):
        """What answers the hello that is read from the socket."""
        self._more()
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return self.outgoing.read()

    def is_agreed(self):
        """One step of the handshake; when it was the last, what is left to be sent is not yet."""
        try:
            self.tls.do_handshake()
            return True
        except ssl.SSLWantReadError:
            self.flush()
            self._more()
            return False
        except ssl.SSLError:
            self.flush()  # an alert that says why
            raise

    def shake_hands(self):
        """The session tickets of TLS 1.3 are sent with what is sent next."""
        while not self.is_agreed():
            pass
        self.holds_back = self.tls.version() == "TLSv1.3"
        if not self.holds_back:
            self.flush()

    def _more(self):
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionError("the server has closed")
        self.incoming.write(received)

    def flush(self):
        self.send_sealed(self.outgoing.read())

    def send_sealed(self, data):
        for at in range(0, len(data), self.piece):
            self.socket.sendall(data[at:at + self.piece])

    def recv(self, count):
        while True:
            try:
                with self.lock:
                    return self.tls.read(count)
            except ssl.SSLWantReadError:
                if not self.holds_back:
                    self.flush()
                self._more()

    def seal(self, data, most=16384):
        """The records that say this, each of so many bytes at most; in front of them what is to be sent by now."""
        with self.lock:
            for at in range(0, len(data), most):
                self.tls.write(data[at:at + most])
            return self.outgoing.read()

    def sendall(self, data):
        self.send_sealed(self.seal(data))

    def notify(self):
        """A close_notify."""
        with self.lock:
            try:
                self.tls.unwrap()
            except ssl.SSLError:
                pass  # the server's has not come
            return self.outgoing.read()

    def shutdown(self, how):
        self.socket.sendall(self.notify())
        self.socket.shutdown(how)

    def alert(self):
        """A fatal one, which is the answer to a record that cannot be read."""
        self.incoming.write(UNREADABLE)
        try:
            while True:
                self.tls.read(65536)
        except ssl.SSLError:
            return self.outgoing.read()

    def call(self, function, *arguments):
        """Calls one of OpenSSL's with the connection, for Python lacks what a receiver may begin by itself.
        Returns the records that come of it."""
        with self.lock:
            getattr(library(), function)(handle_of(self.tls), *arguments)
            library().SSL_do_handshake(handle_of(self.tls))
            return self.outgoing.read()


@functools.cache
def library():
    """That of Python's own module, hence the same."""
    return ctypes.CDLL(ssl._ssl.__file__)  # pylint: disable=protected-access


def handle_of(tls):
    """CPython's object has behind its head a reference to a socket, of which here is none, then OpenSSL's
    pointer."""
    address = id(tls._sslobj) + object.__basicsize__  # pylint: disable=protected-access
    head = (ctypes.c_void_p * 2).from_address(address)
    assert head[0] is None and head[1], "another Python than is known"
    return ctypes.c_void_p(head[1])


class TlsReceiver(harness.Receiver):
    """A receiver behind TLS; says of each connection whether it took up an earlier session, and what protocol
    was agreed upon."""

    def __init__(self, certificate, script=None, address="127.0.0.1"):
        self.context = make_context(certificate)
        self.resumed = []
        self.protocols = []
        super().__init__(script, address)

    def url(self, path="/hook", host=None):
        return f"https://{host or self.address}:{self.port}{path}"

    def _serve(self, connection):
        try:
            secured = self.context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        self.resumed.append(secured.session_reused)
        self.protocols.append(secured.selected_alpn_protocol())
        super()._serve(secured)
