"""The example units: systemd finds nothing wrong with them, and the server lives within the sandbox."""
import configparser
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import harness

DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy")
FILTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "in_filter.py")
SERVICE = os.path.join(DEPLOY, "svcd.service")
UNITS = ["svcd.service", "svcd.socket", "svcd-backup.service", "svcd-backup.timer"]
MOST_EXPOSURE = 2.0  # of 10


def analyze(*arguments):
    """What systemd-analyze says; a machine without it fails the test: tools/test installs it."""
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=harness.DEADLINE_S,
                          check=False)


def settings(name):
    """The values of a setting of the service, in their order."""
    with open(SERVICE, encoding="utf-8") as file:
        return re.findall(rf"^{name}=(.*)$", file.read(), re.M)


def system_calls(group):
    """The names in a group of the filter, groups within it resolved."""
    names = set()
    for line in analyze("syscall-filter", group).stdout.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            names |= system_calls(word)
        elif word and not word.startswith("#"):
            names.add(word)
    return names


def allowed_system_calls():
    allowed = set()
    for value in settings("SystemCallFilter"):
        names = set()
        for word in value.lstrip("~").split():
            names |= system_calls(word) if word.startswith("@") else {word}
        allowed = allowed - names if value.startswith("~") else allowed | names
    return allowed


class Units(unittest.TestCase):
    def test_exposure(self):
        for unit in (SERVICE, os.path.join(DEPLOY, "svcd-backup.service")):
            result = analyze("security", "--offline=true", "--no-pager", unit)
            found = re.search(r"Overall exposure level for [\w-]+.service: ([\d.]+)", result.stdout)
            self.assertIsNotNone(found, result.stdout + result.stderr)
            self.assertLess(float(found.group(1)), MOST_EXPOSURE, unit)

    def test_every_setting_is_one_that_systemd_knows(self):
        with tempfile.TemporaryDirectory(prefix="svcd-test-") as directory:
            for name in UNITS:
                with open(os.path.join(DEPLOY, name), encoding="utf-8") as file:
                    text = file.read()
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    # The server need not be installed, nor its manual.
                    file.write(re.sub(r"^(ExecStart)=svc[\w-]* ", r"\1=/bin/true ",
                                      re.sub(r"^Documentation=.*\n", "", text, flags=re.M), flags=re.M))
            paths = [os.path.join(directory, name) for name in UNITS]
            result = analyze("verify", "--man=no", *paths)
        self.assertNotRegex(result.stderr, r"svcd[\w-]*\.(service|socket|timer):", result.stderr)

    def test_its_commands_are_on_every_machine(self):
        """In a bare image too: the package's own, and those of packages that are essential."""
        for name in UNITS:
            with open(os.path.join(DEPLOY, name), encoding="utf-8") as file:
                commands = re.findall(r"^Exec\w+=(\S+)", file.read(), re.M)
            for command in commands:
                self.assertIn(command, ("svcd", "svc-journal", "/bin/sh", "/bin/rm"), name)

    def test_it_has_time_to_drain(self):
        config = harness.load_config(harness.SHOP)
        default = config.get("Limits", {}).get("ShutdownSeconds", 20)
        self.assertGreater(int(settings("TimeoutStopSec")[0]), default)

    def test_the_socket_has_the_default_address(self):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read(os.path.join(DEPLOY, "svcd.socket"))
        self.assertEqual(parser["Socket"]["ListenStream"], "127.0.0.1:8080")


class Installation(unittest.TestCase):
    def test_what_is_installed(self):
        build = os.path.dirname(os.path.abspath(harness.SVCD))
        with tempfile.TemporaryDirectory(prefix="svcd-test-") as directory:
            subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", directory],
                           check=True, capture_output=True, timeout=harness.DEADLINE_S)
            names = [os.path.relpath(os.path.join(where, file), directory + "/usr/local")
                     for where, _, files in os.walk(directory) for file in files]
            version = subprocess.run([directory + "/usr/local/bin/svcd", "--version"], check=True,
                                     capture_output=True, timeout=harness.DEADLINE_S).stdout
        self.assertRegex(version, rb"^svcd \d")
        wanted = {"bin/svcd", "bin/svc", "bin/svc-journal", "share/man/man1/svcd.1", "share/man/man1/svc.1",
                  "share/man/man1/svc-journal.1", "lib/systemd/system/svcd-backup.service",
                  "lib/systemd/system/svcd-backup.timer",
                  "share/bash-completion/completions/svc",
                  "share/doc/svcd/reference/configuration.md", "lib/systemd/system/svcd.service",
                  "lib/systemd/system/svcd.socket", "lib/sysusers.d/svcd.conf"}
        self.assertEqual(wanted - set(names), set())
        self.assertFalse([name for name in names if name.startswith("..")])

    def test_the_manual_has_every_option(self):
        usage = subprocess.run([harness.SVCD, "--help"], capture_output=True, text=True, timeout=harness.DEADLINE_S,
                               check=True).stdout
        with open(os.path.join(DEPLOY, "..", "docs", "svcd.1"), encoding="utf-8") as file:
            manual = file.read().replace("\\-", "-")
        options = set(re.findall(r"--[\w-]+", usage)) | {"hash-key"}
        self.assertGreater(len(options), 4)
        self.assertEqual({option for option in options if option not in manual}, set())

    def test_the_manual_of_the_journal_has_every_command(self):
        tool = os.path.join(os.path.dirname(harness.SVCD), "svc-journal")
        usage = subprocess.run([tool], capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False).stderr
        with open(os.path.join(DEPLOY, "..", "docs", "svc-journal.1"), encoding="utf-8") as file:
            manual = file.read().replace("\\-", "-")
        words = set(re.findall(r"--[\w-]+", usage)) | set(re.findall(r"svc-journal (\w+)", usage))
        self.assertGreater(len(words), 6)
        self.assertEqual({word for word in words if word not in manual}, set())


class Sandbox(unittest.TestCase):
    """What a server's life needs is allowed; tools/test runs all other tests within the filter."""

    # The search for leaks traces.
    environment = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}

    def used(self, *injections):
        """The system calls of a server's life: a delivery to a name, a reload, the end."""
        server = harness.Server(env=self.environment)
        self.addCleanup(server.remove)
        trace = os.path.join(server.directory, "trace")
        server.wrapper = ["strace", "-D", "-f", "-q", "-o", trace, *injections]
        server.start()
        receiver = harness.Receiver()
        self.addCleanup(receiver.close)
        server.request("POST", "/Svc.Admin.Webhook", {
            "Destination": f"http://localhost:{receiver.port}/", "EventSelector": "/PersonCreated"})
        self.assertEqual(server.request("POST", "/Shop.Person", {"Name": "Ada"}).status, 201)
        receiver.take()
        server.process.send_signal(signal.SIGHUP)
        harness.wait_until(lambda: any("read anew" in line for line in server.log), "a reload")
        self.assertEqual(server.request("GET", "/Svc.Metrics").status, 200)
        self.assertEqual(server.stop(), 0)

        def names():
            with open(trace, encoding="utf-8", errors="replace") as file:
                text = file.read()
            return "exited with 0" in text and set(re.findall(r"^\d+ +(\w+)\(", text, re.M))
        return harness.wait_until(names, "the trace is written")

    def test_kernel_aio(self):
        used = self.used()
        self.assertIn("io_submit", used)
        self.assertEqual(used - allowed_system_calls(), set())

    def test_the_disk_helper(self):
        used = self.used("-e", "inject=io_setup:error=ENOSYS")
        self.assertIn("memfd_create", used)
        self.assertEqual(used - allowed_system_calls(), set())

    def test_within_the_filter(self):
        """The filter is in force: what it does not allow, for root to become another user, is refused."""
        server = harness.Server(dict(harness.load_config(harness.SHOP), User="nobody"), self.environment)
        self.addCleanup(server.remove)
        os.chmod(server.directory, 0o777)
        server.wrapper = [sys.executable, FILTER]
        if os.getuid() == 0:
            with self.assertRaisesRegex(AssertionError, "Operation not permitted"):
                server.start()
        server.config.pop("User")
        server.start()
        self.assertEqual(server.request("POST", "/Shop.Message", {"No": 1}).status, 201)
        self.assertEqual(server.stop(), 0)

    def test_the_filter_is_understood(self):
        allowed = allowed_system_calls()
        self.assertTrue({"io_setup", "io_submit", "accept4", "prlimit64"} <= allowed)
        self.assertFalse({"setuid", "mount", "ptrace", "setrlimit"} & allowed)


if __name__ == "__main__":
    unittest.main()
