"""A bare Debian 12 in a directory: mmdebstrap makes it once from the sources of packages that this machine has, for
all checkouts. Over it are laid machines in which packages are installed and the server runs. Each command runs
in name spaces of its own, for processes and mounts: when it ends, so has everything that it began."""
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
import harness  # noqa: E402

PLACE = os.path.join(harness.FETCHED, "machine")
SUITE = "bookworm"
OLDEST_S = 5 * 86400  # then its lists of packages are too old
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive",
               **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}}


class Unavailable(Exception):
    pass


def run(command, **options):
    """Its output and errors together; fails with them."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=harness.DEADLINE_S, check=False, **options)
    if result.returncode:
        raise AssertionError(f"{command}: exit status {result.returncode}\n{result.stdout[-4000:]}")
    return result.stdout


def sources():
    """(address, suite, component) of the lists of packages that belong to Debian 12; fetched when there are none."""
    found = listed()
    if not found:
        run(["apt-get", "update", "-qq"])
        found = listed()
    return found


def listed():
    lines = run(["apt-get", "indextargets", "--format", "$(CREATED_BY) $(REPO_URI) $(CODENAME) $(COMPONENT)"])
    found = sorted({tuple(line.split()[1:]) for line in lines.splitlines() if line.startswith("Packages ")})
    return [row for row in found if len(row) == 3 and row[1].startswith(SUITE) and row[2] == "main"]


def make_base(path):
    rows = sources()
    if not any(suite == SUITE for _, suite, _ in rows):
        raise Unavailable(f"this machine has no source of packages for {SUITE}")
    shutil.rmtree(path, ignore_errors=True)
    run(["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--skip=cleanup/apt/lists",
         '--aptopt=Acquire::Languages "none"', SUITE, path, *(f"deb {' '.join(row)}" for row in rows)])
    for name in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(name, path + name)
    with open(path + ".made", "w", encoding="utf-8"):
        pass


def is_good(path):
    try:
        return time.time() - os.path.getmtime(path + ".made") < OLDEST_S
    except FileNotFoundError:
        return False


def base():
    """The directory of the bare machine, made when there is none."""
    if os.getuid() != 0:
        raise Unavailable("only root may use chroot")
    os.makedirs(PLACE, exist_ok=True)
    path = os.path.join(PLACE, "base")
    # Shared until this program ends: nobody makes it anew while it is in use.
    lock = os.open(os.path.join(PLACE, "lock"), os.O_CREAT | os.O_RDWR, 0o644)
    fcntl.flock(lock, fcntl.LOCK_SH)
    if not is_good(path):
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_good(path):
            for name in glob.glob(path + ".made"):
                os.remove(name)
            make_base(path)
        fcntl.flock(lock, fcntl.LOCK_SH)
    return path


def bare():
    """The bare machine, to be left as it is; skips where there cannot be one, but in CI."""
    try:
        return Machine(base())
    except Unavailable as reason:
        if os.environ.get("CI"):
            raise
        raise unittest.SkipTest(str(reason)) from reason


def keep_mounts():
    """This program once more, where what it mounts is gone with it."""
    if os.getuid() == 0 and "SVCD_OWN_MOUNTS" not in os.environ:
        os.environ["SVCD_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])


class Machine:
    def __init__(self, path, top=None):
        self.path = path
        self.top = top

    def layer(self):
        """A machine that begins as this one is, which is left as it is meanwhile: what changes there is in memory."""
        top = tempfile.mkdtemp(prefix="machine-", dir=PLACE)
        run(["mount", "-t", "tmpfs", "-o", "mode=0755", "machine", top])
        for name in ("changed", "work", "root"):
            os.mkdir(os.path.join(top, name))
        root = os.path.join(top, "root")
        run(["mount", "-t", "overlay", "-o", f"lowerdir={self.path},upperdir={top}/changed,workdir={top}/work",
             "machine", root])
        return Machine(root, top)

    def command(self, *words, user=None, environment=None):
        if user:
            words = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--inh-caps=-all", "--",
                     *words)
        variables = {**ENVIRONMENT, **(environment or {})}
        return ["unshare", "--fork", "--pid", "--kill-child", "--mount", f"--mount-proc={self.path}/proc",
                "chroot", self.path, "env", "-i", *[f"{name}={value}" for name, value in variables.items()], *words]

    def run(self, *words, **options):
        return run(self.command(*words, **options))

    def status(self, *words, **options):
        """Its exit status and what it printed."""
        result = subprocess.run(self.command(*words, **options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=harness.DEADLINE_S, check=False)
        return result.returncode, result.stdout

    def copy_in(self, file, to="/tmp"):
        shutil.copy(file, self.path + to)
        return os.path.join(to, os.path.basename(file))

    def read(self, name):
        with open(self.path + name, encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        """What is there keeps owner and mode."""
        with open(self.path + name, "w", encoding="utf-8") as file:
            file.write(text)

    def exists(self, name):
        return os.path.lexists(self.path + name)

    def owner(self, name):
        """`root:svcd 0640`, by the names that it has there."""
        return self.run("stat", "-c", "%U:%G 0%a", name).strip()

    def remove(self):
        """Of a layer."""
        for path in (self.path, self.top):
            run(["umount", path])
        os.rmdir(self.top)


def unit_lines(text, name):
    """The values of a setting of a unit."""
    return re.findall(rf"^{name}=(.*)$", text, re.M)


class Service(harness.Server):
    """svcd in the machine, begun as the unit says, as its user."""

    def __init__(self, machine):
        super().__init__()
        self.machine = machine

    def start(self):
        command = unit_lines(self.machine.read("/lib/systemd/system/svcd.service"), "ExecStart")[0].split()
        return self.begin(self.machine.command(*command, user="svcd"))

    def begin(self, command):
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        # unshare stands between.
        self.process.send_signal = lambda number: os.kill(self.pid(), number)
        self.port = None
        self.reader = threading.Thread(target=self._read_log, args=(self.process,), daemon=True)
        self.reader.start()
        harness.wait_until(lambda: self.port or self.process.poll() is not None, "the server listens")
        if self.port is None:
            self.read_rest()
            raise AssertionError("the server ended:\n" + "\n".join(self.log))
        return self

    def pid(self):
        """unshare's child, which has become the server."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            return int(file.read().split()[0])
