"""Whose rights the server has: `User`, capabilities, the modes of files that hold keys."""
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

import harness

NOBODY = pwd.getpwnam("nobody")
needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root, from which to change the user")


def status_of(pid):
    """/proc/PID/status as a dictionary."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def free_low_port():
    """A port that only root may listen on (where the machine keeps to that)."""
    for port in range(1023, 600, -1):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            pass
    raise unittest.SkipTest("no port below 1024 is free")


@needs_root
class ServerOfNobody(harness.ServerCase):
    """Started as root, with User "nobody", over a directory that is nobody's."""

    def setUp(self):
        config = dict(harness.load_config(harness.SHOP), User="nobody")
        self.server = harness.Server(config)
        os.chown(self.server.directory, NOBODY.pw_uid, NOBODY.pw_gid)
        self.server.config_mode = 0o644
        self.server.start()
        self.addCleanup(self.server.remove)

    def test_it_works_and_has_no_way_back(self):
        self.created("/Shop.Person", {"Name": "Ada"})
        status = status_of(self.server.process.pid)
        self.assertEqual(status["Uid"].split(), [str(NOBODY.pw_uid)] * 4)
        self.assertEqual(status["Gid"].split(), [str(NOBODY.pw_gid)] * 4)
        self.assertEqual({int(group) for group in status["Groups"].split()},
                         set(os.getgrouplist("nobody", NOBODY.pw_gid)))
        for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(int(status[kind], 16), 0, kind)
        self.assertEqual(status["NoNewPrivs"], "1")
        for name in os.listdir(self.server.data):
            path = os.path.join(self.server.data, name)
            self.assertEqual(os.stat(path).st_uid, NOBODY.pw_uid, path)

    def test_sighup_reads_what_the_user_may_read(self):
        path = os.path.join(self.server.directory, "config.json")
        self.server.process.send_signal(signal.SIGHUP)
        self.server.wait_for_line("are read anew")
        os.chmod(path, 0o600)
        self.server.process.send_signal(signal.SIGHUP)
        self.server.wait_for_line(f"nothing has changed: {path}: Permission denied")
        os.chmod(path, 0o644)

    def test_it_starts_anew_as_that_user(self):
        path = os.path.join(self.server.directory, "config.json")
        self.created("/Shop.Person", {"Name": "Ada"})
        os.chmod(path, 0o600)
        self.server.process.send_signal(signal.SIGUSR2)
        self.server.wait_for_line("not started anew")
        os.chmod(path, 0o644)
        for _ in range(2):
            seen = len(self.server.log)
            self.server.process.send_signal(signal.SIGUSR2)
            harness.wait_until(lambda: any("listening on" in line for line in self.server.log[seen:]), "it listens")
            self.assertEqual(self.server.request("GET", "/Shop.Person").json()[0]["Name"], "Ada")
            status = status_of(self.server.process.pid)
            self.assertEqual(status["Uid"].split(), [str(NOBODY.pw_uid)] * 4)
            self.assertEqual(int(status["CapEff"], 16), 0)

    def test_a_file_that_the_user_cannot_read_is_warned_of(self):
        self.assertFalse([line for line in self.server.log if "SIGHUP will not" in line])
        self.assertEqual(self.server.stop(), 0)
        self.server.config_mode = 0o600
        self.server.start()
        self.assertTrue([line for line in self.server.log if "SIGHUP will not read it" in line])


class Starts(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="svcd-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.data = os.path.join(self.directory, "data")
        os.chmod(self.directory, 0o755)

    def write(self, config, mode=0o644):
        path = os.path.join(self.directory, "config.json")
        if os.path.exists(path):
            os.remove(path)  # it may be one that only root could write again
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict({"DataDirectory": self.data}, **config), file)
        os.chmod(path, mode)
        return path

    def command(self, config, *arguments, mode=0o644):
        return [harness.SVCD, "--config", self.write(config, mode), "--listen", "127.0.0.1:0",
                *arguments]

    def fails(self, command, *words, **options):
        result = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=harness.DEADLINE_S, check=False,
                                **options)
        self.assertEqual(result.returncode, 2, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def serves(self, command, **options):
        """Starts, waits until it listens, stops; returns what it has logged."""
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)
        lines = []
        try:
            while not lines or " listening on " not in lines[-1]:
                lines.append(process.stderr.readline())
                self.assertNotEqual(lines[-1], "", "".join(lines))
            process.terminate()
            lines += process.stderr.readlines()
            self.assertEqual(process.wait(timeout=harness.DEADLINE_S), 0, "".join(lines))
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        return "".join(lines)

    def as_nobody(self):
        """Options of subprocess to be an ordinary user: nobody, or who runs the tests."""
        if os.geteuid() != 0:
            return {}
        os.makedirs(self.data, exist_ok=True)
        os.chown(self.data, NOBODY.pw_uid, NOBODY.pw_gid)
        return {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}

    def reachable(self, command):
        """The same with a copy of the program, as the user may not reach the original. Were it this process that writes it,
        what another thread starts meanwhile would have it open for writing too, and nobody could run it."""
        subprocess.run(["cp", harness.SVCD, self.directory], check=True)
        return [os.path.join(self.directory, os.path.basename(harness.SVCD)), *command[1:]]


@needs_root
class FromRoot(Starts):
    def test_a_low_port_is_taken_first(self):
        os.mkdir(self.data)
        os.chown(self.data, NOBODY.pw_uid, NOBODY.pw_gid)
        command = self.command({"User": "nobody"}, "--listen", f"127.0.0.1:{free_low_port()}")
        self.assertIn("running as user 'nobody', uid 65534", self.serves(command))

    def test_a_unix_socket_is_the_users(self):
        os.mkdir(self.data)
        os.chown(self.data, NOBODY.pw_uid, NOBODY.pw_gid)
        path = os.path.join(self.data, "socket")
        process = subprocess.Popen([harness.SVCD, "--config", self.write({"User": "nobody"}),
                                    "--listen", f"unix:{path}"], stderr=subprocess.DEVNULL)
        try:
            with socket.socket(socket.AF_UNIX) as client:
                harness.wait_until(lambda: os.path.exists(path) and client.connect_ex(path) == 0,
                                   "the socket listens")
            self.assertEqual(os.stat(path).st_uid, NOBODY.pw_uid)
        finally:
            process.terminate()
            process.wait(timeout=harness.DEADLINE_S)
        self.assertFalse(os.path.exists(path))

    def test_a_directory_that_the_user_cannot_use(self):
        os.mkdir(self.data, 0o700)
        self.fails(self.command({"User": "nobody"}), "as user 'nobody': ", self.data,
                   "Permission denied")
        os.rmdir(self.data)  # which the user could not make either
        self.fails(self.command({"User": "nobody"}), "as user 'nobody': ", self.data,
                   "Permission denied")

    def test_a_journal_that_is_roots(self):
        self.serves(self.command({}))
        os.chown(self.data, NOBODY.pw_uid, NOBODY.pw_gid)
        self.fails(self.command({"User": "nobody"}), "as user 'nobody': ", self.data,
                   "Permission denied")

    def test_without_user_it_warns(self):
        self.assertIn(" warn privileges: running as root: ", self.serves(self.command({})))


class Users(Starts):
    def test_no_such_user(self):
        for arguments in ([], ["--check"]):
            self.fails(self.command({"User": "no-such-user"}, *arguments),
                       "config.json: User: 'no-such-user': there is no such user")

    def test_root_is_no_ordinary_user(self):
        for arguments in ([], ["--check"]):
            self.fails(self.command({"User": "root"}, *arguments), "'root' is root")

    def test_an_ordinary_user_cannot_become_another(self):
        options = self.as_nobody()
        self.fails(self.reachable(self.command({"User": "daemon"})),
                   "config.json: User: only root can become 'daemon'", **options)

    def test_an_ordinary_user_may_be_named(self):
        options = self.as_nobody()
        name = pwd.getpwuid(options.get("user", os.geteuid())).pw_name
        self.assertNotIn("running as root",
                         self.serves(self.reachable(self.command({"User": name})), **options))


class FilesWithKeys(Starts):
    KEYS = {"ApiKeys": [{"Name": "a", "KeySha256": "0" * 64,
                         "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]}]}
    PROXY = {"Delivery": {"Proxy": "http://name:password@127.0.0.1:3128"}}

    def check(self, config, mode):
        return subprocess.run(self.command(config, "--check", mode=mode), capture_output=True,
                              text=True, timeout=harness.DEADLINE_S, check=False)

    def test_modes(self):
        for config in (self.KEYS, self.PROXY):
            for mode in (0o644, 0o604, 0o602, 0o660, 0o620, 0o777):
                with self.subTest(config=config, mode=oct(mode)):
                    result = self.check(config, mode)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn(f"its mode is {mode:04o}: chmod 0640 ", result.stderr)
                    self.assertIn(os.path.join(self.directory, "config.json"), result.stderr)
            for mode in (0o600, 0o640, 0o440, 0o400, 0o750):
                with self.subTest(config=config, mode=oct(mode)):
                    self.assertEqual(self.check(config, mode).returncode, 0)

    def test_a_file_without_keys_may_have_any_but_for_all_to_write(self):
        for config in ({}, {"ApiKeys": []}, {"Delivery": {"Proxy": "http://127.0.0.1:3128"}}):
            with self.subTest(config=config):
                self.assertEqual(self.check(config, 0o664).returncode, 0)
                self.assertIn("everybody may write it", self.check(config, 0o666).stderr)


class ReloadOfKeys(harness.ServerCase):
    def test_sighup_refuses_a_file_that_others_read(self):
        path = os.path.join(self.server.directory, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict(config, **FilesWithKeys.KEYS), file)
        os.chmod(path, 0o644)
        self.server.process.send_signal(signal.SIGHUP)
        self.assertIn("its mode is 0644", self.server.wait_for_line("nothing has changed"))
        self.assertEqual(self.get("/Svc.AvailableResource").status, 200)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o644)


if __name__ == "__main__":
    unittest.main()
