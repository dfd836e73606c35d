#!/usr/bin/env python3
"""The Debian package: what tools/package makes, what it does to a bare Debian 12 (machine.py), and the container's
image that is made of it.

    SVCD=build/optimized/svcd tests/package/run.py [-v] [NAME-PART...]

SVCD names the server among the programs that are packed; without it tools/release builds them. Needs root and a
source of Debian's packages; without these only the package itself is looked at, but in CI that is a failure."""
import argparse
import glob
import hashlib
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zlib

from machine import ROOT, Service, bare, harness, keep_mounts, run, unit_lines

sys.path.insert(0, os.path.join(ROOT, "tests", "formats"))
import make  # noqa: E402  pylint: disable=wrong-import-position,import-error
import test_formats  # noqa: E402  pylint: disable=wrong-import-position,import-error

CONFIG, KEY, DATA = "/etc/svcd/svcd.json", "/etc/svcd/admin.key", "/var/lib/svcd"
BACKUPS = "/var/lib/svcd-backup"
SAMPLE = os.path.join(ROOT, "tests", "formats", "v1")
NEXT = "+next"
PROGRAMS = ["svc", "svc-journal", "svcd"]
UNITS = ["svcd-backup.service", "svcd-backup.timer", "svcd.service", "svcd.socket"]
SCRIPTS = ["postinst", "postrm", "prerm"]


def build(directory):
    """The path of a package."""
    options = []
    if "SVCD" in os.environ:
        options = ["--build", os.path.dirname(os.path.abspath(os.environ["SVCD"]))]
    return run([os.path.join(ROOT, "tools", "package"), "--output", directory, *options]).split()[-1]


def build_next(package, directory):
    """The same of the next version."""
    root = os.path.join(directory, "next")
    run(["dpkg-deb", "--raw-extract", package, root])
    with open(os.path.join(root, "DEBIAN", "control"), "r+", encoding="utf-8") as file:
        text = re.sub(r"(?m)^Version: .*", rf"\g<0>{NEXT}", file.read())
        file.seek(0)
        file.write(text)
    run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", root, directory])
    with_next, = glob.glob(os.path.join(directory, f"*{NEXT}_*.deb"))
    return with_next


class Packages:
    """This version's and the next one's, made once."""
    directory = this = next = None

    @classmethod
    def make(cls):
        if cls.directory is None:
            cls.directory = tempfile.mkdtemp(prefix="svcd-test-")
            cls.this = build(cls.directory)
            cls.next = build_next(cls.this, cls.directory)

    @classmethod
    def remove(cls):
        if cls.directory:
            shutil.rmtree(cls.directory)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Packages.make()
        with tempfile.TemporaryFile() as file:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", Packages.this], stdout=file, check=True)
            file.seek(0)
            with tarfile.open(fileobj=file) as tar:
                cls.members = {member.name.removeprefix("."): member for member in tar}
                cls.contents = {name: tar.extractfile(member).read() for name, member in cls.members.items()
                                if member.isfile()}

    def field(self, name):
        return run(["dpkg-deb", "--field", Packages.this, name]).strip()

    def test_lintian_has_no_error(self):
        # It warns when it is root.
        output = run(["lintian", "--fail-on", "error", "--allow-root", Packages.this])
        self.assertNotRegex(output, r"(?m)^E:")

    def test_scripts_have_no_finding(self):
        scripts = [os.path.join(ROOT, "deploy", "debian", name) for name in SCRIPTS]
        run(["shellcheck", "-x", *scripts, os.path.join(ROOT, "tools", "package")], cwd=ROOT)
        for name in scripts:
            with open(name, encoding="utf-8") as file:
                self.assertIn("\nset -e\n", file.read())

    def test_the_same_bytes_again(self):
        with tempfile.TemporaryDirectory(prefix="svcd-test-") as directory:
            again = build(directory)
            self.assertEqual(os.path.basename(again), os.path.basename(Packages.this))
            self.assertEqual(sha256(again), sha256(Packages.this))

    def test_its_version(self):
        with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
            version = re.search(r"version: '([^']+)'", file.read()).group(1)
        self.assertEqual(self.field("Version"), version)
        self.assertEqual(os.path.basename(Packages.this), f"svcd_{version}_{self.field('Architecture')}.deb")
        with open(os.path.join(ROOT, "deploy", "debian", "changelog"), encoding="utf-8") as file:
            self.assertTrue(file.read().startswith(f"svcd ({version}) "), "deploy/debian/changelog has another version")
        run(["dpkg", "--compare-versions", version, "lt", version + NEXT])

    def test_what_is_in_it(self):
        wanted = {f"/usr/bin/{name}" for name in PROGRAMS}
        wanted |= {f"/usr/share/man/man1/{name}.1.gz" for name in PROGRAMS}
        wanted |= {f"/lib/systemd/system/{name}" for name in UNITS}
        wanted |= {"/usr/lib/sysusers.d/svcd.conf", "/usr/share/bash-completion/completions/svc",
                   "/usr/share/svcd/svcd.json", "/etc/svcd/", "/usr/share/doc/svcd/copyright",
                   "/usr/share/doc/svcd/changelog.gz", "/usr/share/doc/svcd/README.md"}
        docs = {os.path.relpath(name, os.path.join(ROOT, "docs"))
                for name in glob.glob(os.path.join(ROOT, "docs", "**", "*.*"), recursive=True)}
        wanted |= {f"/usr/share/doc/svcd/{name}" for name in docs if not name.endswith(".1")}
        wanted |= {f"/usr/share/doc/svcd/deploy/{os.path.basename(name)}"
                   for name in glob.glob(os.path.join(ROOT, "deploy", "*.*"))}
        names = {name + "/" if member.isdir() else name for name, member in self.members.items()}
        self.assertEqual(wanted - names, set())
        self.assertEqual({name for name in names if not name.endswith("/")} - wanted -
                         {"/usr/share/doc/svcd/SECURITY.md", "/usr/share/doc/svcd/deploy/Containerfile"}, set())

    def test_links_between_documents(self):
        """But for those to the source."""
        names = {name.rstrip("/") for name in self.members}
        for name, data in self.contents.items():
            for target in re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", data.decode()) if name.endswith(".md") else []:
                path = os.path.normpath(os.path.join(os.path.dirname(name), target))
                is_source = re.match(r"/usr/share/doc/(svcd/)?(tests|tools|src|include)\b", path)
                self.assertTrue(path in names or is_source, f"{name} links to {target}")

    def test_owners_and_modes(self):
        for name, member in self.members.items():
            self.assertEqual((member.uid, member.gid), (0, 0), name)
            is_program = member.isdir() or name.startswith("/usr/bin/")
            self.assertEqual(oct(member.mode & 0o7777), oct(0o755 if is_program else 0o644), name)

    def test_units_name_the_programs_of_the_package(self):
        for name in UNITS:
            text = self.contents["/lib/systemd/system/" + name].decode()
            for command in unit_lines(text, r"Exec\w+"):
                program = command.split()[0]
                if program.startswith("/usr/bin/"):
                    self.assertIn(program, self.members)
                else:
                    self.assertIn(program, ["/bin/sh", "/bin/rm"])

    def test_programs_are_stripped_and_have_no_path_of_this_machine(self):
        for name in PROGRAMS:
            data = self.contents["/usr/bin/" + name]
            self.assertNotIn(b".debug_info", data)
            self.assertNotIn(ROOT.encode(), data)


class Installed(unittest.TestCase):
    """One machine on which the package was installed; each test has a layer of its own over it."""

    @classmethod
    def setUpClass(cls):
        Packages.make()
        cls.origin = bare().layer()
        cls.addClassCleanup(cls.origin.remove)
        cls.this = cls.origin.copy_in(Packages.this)
        cls.next = cls.origin.copy_in(Packages.next)
        cls.first = cls.origin.run("apt-get", "install", "-y", "--no-install-recommends", cls.this)

    def setUp(self):
        self.machine = self.origin.layer()
        self.addCleanup(self.machine.remove)
        self.listen_anywhere()
        self.service = Service(self.machine)
        self.addCleanup(self.service.remove)

    def purge(self):
        """With the data."""
        self.machine.run("dpkg", "--purge", "svcd")
        self.machine.run("rm", "-r", DATA)

    def install(self, package):
        return self.machine.run("dpkg", "--force-downgrade", "--install", package)

    def listen_anywhere(self):
        """On a free port, as somebody might who edits the configuration."""
        text = self.machine.read(CONFIG)
        self.assertIn('"127.0.0.1:8080"', text)
        self.machine.write(CONFIG, text.replace('"127.0.0.1:8080"', '"127.0.0.1:0"'))

    def key(self):
        return self.machine.read(KEY).strip()

    def ask(self, method, target, body=None, key=None):
        return self.service.request(method, target, body, {
            "Authorization": f"apikey {key or self.key()}", "Content-Type": "application/json"})

    def svc(self, *words):
        """The command line, in the machine."""
        return self.machine.run("svc", *words, environment={
            "SVC_URL": f"http://127.0.0.1:{self.service.port}", "SVC_KEY": self.key()})

    def receiver(self):
        receiver = harness.Receiver()
        self.addCleanup(receiver.close)
        return receiver

    def has_first_webhook(self):
        """A declared resource, a webhook, and an event that is delivered."""
        receiver = self.receiver()
        answer = self.ask("POST", "/Svc.Admin.Resource", {"Name": "Shop.Placed", "Kind": "EventResource",
                                                          "Description": "An order"})
        self.assertEqual(answer.status, 201, answer)
        self.svc("webhooks", "add", receiver.url(), "--label", "first", "--events", "/Shop.Placed")
        self.svc("trigger", "Shop.Placed", "--data", '{"Total": 12.50}')
        self.assertEqual(receiver.take().json(), [{"Total": 12.50}])
        harness.wait_until(lambda: self.ask("REPORT", "/Svc.Admin.Delivery/State=Delivered").json() == [{"Count": 1}],
                           "it is recorded")

    def kept(self):
        """What upgrades and removal leave alone."""
        return {name: (self.machine.read(name), self.machine.owner(name)) for name in (CONFIG, KEY)}

    def test_first_installation(self):
        before = self.key()
        self.purge()
        for text in (self.first, self.install(self.this)):
            self.assertIn(f"made {CONFIG}", text)
            self.assertIn(KEY, text)
            self.assertNotIn(self.key(), text)
        machine = self.machine
        self.assertEqual(machine.owner(CONFIG), "root:svcd 0640")
        self.assertEqual(machine.owner(KEY), "root:root 0600")
        self.assertEqual(machine.owner("/etc/svcd"), "root:root 0755")
        self.assertEqual(machine.owner(DATA), "svcd:svcd 0700")
        self.assertRegex(self.key(), r"^[0-9a-f]{64}$")
        self.assertIn(hashlib.sha256(self.key().encode()).hexdigest(), machine.read(CONFIG))
        machine.run("svcd", "--check", "--config", CONFIG, user="svcd")
        self.assertRegex(machine.read("/etc/passwd"), rf"(?m)^svcd:.*:{DATA}:/usr/sbin/nologin$")
        wants = "/etc/systemd/system/{}.wants/{}"
        self.assertTrue(machine.exists(wants.format("multi-user.target", "svcd.service")))
        self.assertTrue(machine.exists(wants.format("sockets.target", "svcd.socket")))
        self.assertFalse(machine.exists(wants.format("timers.target", "svcd-backup.timer")))
        self.assertEqual(sorted(os.listdir(machine.path + "/etc/svcd")), ["admin.key", "svcd.json"])
        self.assertNotEqual(self.key(), before, "every installation has a key of its own")

    def test_first_webhook(self):
        self.service.start()
        self.assertEqual(self.service.request("GET", "/Svc.Admin.Webhook").status, 401)
        self.assertEqual(self.ask("GET", "/Svc.Admin.Webhook", key="0" * 64).status, 401)
        self.assertEqual(self.service.request("GET", "/livez").status, 200)
        self.has_first_webhook()
        page = self.service.request("GET", "/", headers={"Accept": "text/html"})
        self.assertEqual(page.status, 302)
        self.assertEqual(self.service.request("GET", page.headers["Location"], headers={"Accept": "text/html"}).status,
                         200)
        self.assertEqual(self.service.stop(), 0)
        self.assertEqual(self.machine.owner(DATA), "svcd:svcd 0700")

    def test_upgrade_keeps_everything(self):
        self.service.start()
        self.has_first_webhook()
        before, digest = self.kept(), self.service.digest()
        said = self.install(self.next)  # the server runs meanwhile
        self.assertNotIn("made", said)
        self.assertEqual(self.service.stop(), 0)
        self.assertEqual(self.kept(), before)
        self.service.start()
        self.assertEqual(self.service.digest(), digest)
        self.assertIn("first", self.svc("webhooks", "list"))
        self.assertEqual(self.service.stop(), 0)
        self.purge()

    def test_upgrade_keeps_what_was_disabled(self):
        self.machine.run("systemctl", "disable", "svcd.service")
        self.install(self.next)
        self.assertFalse(self.machine.exists("/etc/systemd/system/multi-user.target.wants/svcd.service"))
        self.assertTrue(self.machine.exists("/etc/systemd/system/sockets.target.wants/svcd.socket"))

    def asked_of_systemd(self, *words):
        """What the scripts ask of it, where it runs, while dpkg does something."""
        self.machine.run("mkdir", "-p", "/run/systemd/system", "/stubs")
        for name in ("systemctl", "deb-systemd-invoke"):
            self.machine.write("/stubs/" + name, '#!/bin/sh\necho "${0##*/} $*" >>/stubs/asked\n')
            self.machine.run("chmod", "755", "/stubs/" + name)
        try:
            self.machine.run("dpkg", *words, environment={"PATH": "/stubs:/usr/sbin:/usr/bin:/sbin:/bin"})
            asked = self.machine.read("/stubs/asked") if self.machine.exists("/stubs/asked") else ""
        finally:
            self.machine.run("rm", "-r", "/run/systemd/system", "/stubs")
        return [line for line in asked.splitlines() if line.startswith("deb-systemd-invoke ")]

    def test_the_service_begins_goes_on_and_ends(self):
        self.machine.run("dpkg", "--purge", "svcd")
        invoke = "deb-systemd-invoke "
        # To start a socket that is open changes nothing, to restart a service that has ended starts it.
        begins = [invoke + "start svcd.socket", invoke + "restart svcd.service"]
        ends = [invoke + "stop svcd-backup.timer svcd.socket svcd.service"]
        for words, asked in (("--install", self.this), begins), (("--install", self.next), begins), \
                (("--remove", "svcd"), ends), (("--install", self.this), begins), (("--purge", "svcd"), ends):
            self.assertEqual(self.asked_of_systemd(*words), asked, words)

    def put_sample(self):
        """The data directory of an earlier format, with the configuration that belongs to it."""
        with open(os.path.join(SAMPLE, "config.json"), encoding="utf-8") as file:
            sample = json.load(file)
        lines = self.machine.read(CONFIG).splitlines()
        config = json.loads("\n".join(line for line in lines if not line.startswith("//")))
        # Where the sample's deliveries go others may listen.
        config.update(sample, Delivery={"Egress": {"Deny": [make.HOST + "/32"]}})
        self.machine.write(CONFIG, json.dumps(config))
        with tarfile.open(os.path.join(SAMPLE, "data.tar.xz")) as tar:
            tar.extractall(self.machine.path + DATA)
        self.machine.run("chown", "-R", "svcd:svcd", DATA)

    def holds_sample(self):
        """What no retention forgets."""
        with open(os.path.join(SAMPLE, "expected.json"), encoding="utf-8") as file:
            counts = json.load(file)["Counts"]
        for name in ("Shop.Person", "Shop.Message", "Shop.Late", "Svc.Admin.Webhook"):
            self.assertEqual(self.ask("REPORT", "/" + name).json(), [{"Count": counts[name]}], name)

    def test_upgrade_over_data_of_the_version_before(self):
        self.put_sample()
        self.install(self.next)
        self.service.start()
        self.holds_sample()
        self.assertEqual(self.ask("POST", "/Shop.Late", {"New": True}).status, 201)
        self.assertEqual(self.service.stop(), 0)
        self.machine.run("svc-journal", "verify", DATA)

    def test_downgrade_within_a_format(self):
        self.install(self.next)
        self.service.start()
        self.has_first_webhook()
        before, digest = self.kept(), self.service.digest()
        self.assertEqual(self.service.stop(), 0)
        self.install(self.this)
        self.service.start()
        self.assertEqual((self.kept(), self.service.digest()), (before, digest))

    def test_downgrade_over_a_newer_format_is_refused(self):
        """And changes nothing: the way back to the newer version, or to a backup, is open."""
        self.put_sample()
        path = sorted(glob.glob(self.machine.path + DATA + "/*.seg"))[-1]
        with open(path, "r+b") as file:
            header = bytearray(file.read(test_formats.HEADER))
            struct.pack_into("<I", header, test_formats.VERSION_AT, 77)
            struct.pack_into("<I", header, test_formats.HEADER - 4,
                             test_formats.crc32c(header[:test_formats.HEADER - 4]))
            file.seek(0)
            file.write(header)
        with open(path, "rb") as file:
            before = zlib.crc32(file.read())
        self.install(self.this)
        with self.assertRaisesRegex(AssertionError, rf"(?s){os.path.basename(path)}.*version 77\b"):
            self.service.start()
        self.assertEqual(self.service.process.wait(timeout=harness.DEADLINE_S), 2)
        with open(path, "rb") as file:
            self.assertEqual(zlib.crc32(file.read()), before)

    def test_removal_keeps_configuration_and_data(self):
        self.service.start()
        self.has_first_webhook()
        before, digest = self.kept(), self.service.digest()
        self.assertEqual(self.service.stop(), 0)
        self.machine.run("dpkg", "--remove", "svcd")
        self.assertFalse(self.machine.exists("/usr/bin/svcd"))
        self.assertEqual(self.kept(), before)
        self.machine.run("sh", "-c", f"ls {DATA}/*.seg")
        self.assertNotIn("made", self.install(self.this))
        self.assertEqual(self.kept(), before)
        self.service.start()
        self.assertEqual(self.service.digest(), digest)

    def test_purge(self):
        self.service.start()
        self.has_first_webhook()
        self.assertEqual(self.service.stop(), 0)
        said = self.machine.run("dpkg", "--purge", "svcd")
        self.assertRegex(said, rf"the data directory {DATA} .*left")
        self.assertFalse(self.machine.exists("/etc/svcd"))
        self.assertNotEqual(glob.glob(self.machine.path + DATA + "/*.seg"), [])
        self.assertEqual(self.machine.run("sh", "-c", "find /etc /usr /lib/ -name '*svc*'").strip(), "")
        self.machine.run("rm", "-r", DATA)
        self.install(self.this)
        self.assertNotIn("left", self.machine.run("sh", "-c", f"rm -r {DATA}; dpkg --purge svcd"))

    def test_purge_leaves_what_others_have_put_there(self):
        self.machine.write("/etc/svcd/terms.txt", "Terms")
        self.machine.run("dpkg", "--purge", "svcd")
        self.assertEqual(os.listdir(self.machine.path + "/etc/svcd"), ["terms.txt"])

    def test_scripts_may_run_again(self):
        before = self.kept()
        for words in (["postinst", "configure", ""], ["postinst", "configure", "0.1.0"],
                      ["postinst", "abort-remove"], ["prerm", "upgrade", "1"], ["postrm", "upgrade", "1"],
                      ["postrm", "abort-install"]):
            self.machine.run("/var/lib/dpkg/info/svcd." + words[0], *words[1:])
        self.assertEqual(self.kept(), before)
        for _ in range(2):
            self.machine.run("/var/lib/dpkg/info/svcd.postrm", "purge")
        self.assertFalse(self.machine.exists(CONFIG))

    def test_an_interrupted_installation_is_done_again(self):
        """Between key and configuration, and before."""
        self.machine.run("sh", "-c", f"rm {CONFIG}; mkdir /etc/svcd/.new.1; touch /etc/svcd/.new.1/admin.key")
        old = self.key()
        self.machine.run("/var/lib/dpkg/info/svcd.postinst", "configure", "")
        self.assertNotEqual(self.key(), old)
        self.assertIn(hashlib.sha256(self.key().encode()).hexdigest(), self.machine.read(CONFIG))
        self.assertEqual(sorted(os.listdir(self.machine.path + "/etc/svcd")), ["admin.key", "svcd.json"])

    def backup(self):
        """Runs what svcd-backup.service says; the status of the first command that fails, else 0."""
        self.machine.run("install", "-d", "-o", "svcd", "-m", "0700", BACKUPS)
        text = self.machine.read("/lib/systemd/system/svcd-backup.service")
        name, value = unit_lines(text, "Environment")[0].split("=")
        for command in unit_lines(text, "ExecStartPre") + unit_lines(text, "ExecStart"):
            status, said = self.machine.status(*shlex.split(command.replace("%%", "%")), user="svcd",
                                               environment={name: value})
            if status:
                return status, said
        return 0, ""

    def backups(self):
        return sorted(os.listdir(self.machine.path + BACKUPS))

    def test_backup(self):
        self.service.start()
        self.has_first_webhook()
        digest = self.service.digest()
        self.machine.run("install", "-d", "-o", "svcd", "-m", "0700", BACKUPS)
        for day in range(1, 10):
            self.machine.run("mkdir", f"{BACKUPS}/2020-01-0{day}T020000Z", f"{BACKUPS}/note-{day}", user="svcd")
        self.assertEqual(self.backup(), (0, ""))
        dated = [name for name in self.backups() if name.startswith("20")]
        self.assertEqual(dated[:-1], [f"2020-01-0{day}T020000Z" for day in range(4, 10)])
        self.assertEqual(len([name for name in self.backups() if name.startswith("note-")]), 9)
        self.assertEqual(self.service.stop(), 0)
        self.machine.run("svc-journal", "verify", f"{BACKUPS}/{dated[-1]}")
        self.machine.run("sh", "-c", f"rm -r {DATA} && cp -a {BACKUPS}/{dated[-1]} {DATA}")
        self.service.start()
        self.assertEqual(self.service.digest(), digest)

    def test_a_backup_that_fails_deletes_none(self):
        self.machine.run("install", "-d", "-o", "svcd", "-m", "0700", BACKUPS)
        names = [f"2020-01-0{day}T020000Z" for day in range(1, 10)]
        self.machine.run("mkdir", *[f"{BACKUPS}/{name}" for name in names], f"{BACKUPS}/unfinished", user="svcd")
        self.machine.write(DATA + "/journal-0000000000000001.seg", "no journal")
        self.assertNotEqual(self.backup()[0], 0)
        self.assertEqual([name for name in self.backups() if name != "unfinished"], names)


class Image(unittest.TestCase):
    """What deploy/Containerfile makes of the package, on the bare machine, by buildah. It runs as a container's
    process would: the image's user and command, no capabilities, nothing to write to but the volume."""

    @classmethod
    def setUpClass(cls):
        Packages.make()
        cls.machine = bare()
        cls.directory = tempfile.mkdtemp(prefix="svcd-test-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.addClassCleanup(cls.unmount)
        os.chmod(cls.directory, 0o755)
        cls.driver = "overlay"
        try:
            base = cls.buildah("from", "--isolation", "chroot", "scratch")
        except subprocess.CalledProcessError:
            cls.driver = "vfs"  # where a file system cannot be laid over this one
            base = cls.buildah("from", "--isolation", "chroot", "scratch")
        run(["cp", "-a", cls.machine.path + "/.", cls.buildah("mount", base)])
        cls.buildah("commit", "--quiet", "--disable-compression", base, "localhost/base")
        context = os.path.join(cls.directory, "context")
        os.mkdir(context)
        shutil.copy(Packages.this, context)
        cls.buildah("build", "--quiet", "--isolation", "chroot", "--network", "host", "--build-arg",
                    "BASE=localhost/base", "--file", os.path.join(ROOT, "deploy", "Containerfile"), "--tag", "svcd",
                    context)
        cls.config = json.loads(cls.buildah("inspect", "--type", "image", "svcd"))["OCIv1"]["config"]
        cls.root = cls.buildah("mount", cls.buildah("from", "svcd"))

    @classmethod
    def buildah(cls, *words):
        """What it says last; the result of these commands."""
        places = ["--root", cls.directory + "/storage", "--runroot", cls.directory + "/run"]
        return subprocess.run(["buildah", *places, "--storage-driver", cls.driver, *words], stdout=subprocess.PIPE,
                              text=True, timeout=harness.DEADLINE_S, check=True).stdout.strip()

    @classmethod
    def unmount(cls):
        with open("/proc/self/mounts", encoding="utf-8") as file:
            places = [line.split()[1] for line in file]
        for place in reversed(places):
            if place.startswith(cls.directory + "/"):
                run(["umount", place])

    def setUp(self):
        self.owner = int(self.config["User"].split(":", maxsplit=1)[0])
        self.volumes = tempfile.mkdtemp(prefix="svcd-test-")
        self.addCleanup(shutil.rmtree, self.volumes)
        for name in ("etc", "data"):
            os.mkdir(os.path.join(self.volumes, name))
        os.chown(os.path.join(self.volumes, "data"), self.owner, self.owner)
        os.chmod(os.path.join(self.volumes, "data"), 0o700)

    def configure(self, config):
        path = os.path.join(self.volumes, "etc", "svcd.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        os.chown(path, 0, self.owner)
        os.chmod(path, 0o640)

    def command(self, *words):
        """Of a container: what the image begins with, behind it what the image or whoever starts it says."""
        user, group = self.config["User"].split(":")
        mounts = """set -e
            mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; mount -t proc proc "$1/proc"
            mount --bind "$2/data" "$1/var/lib/svcd"; mount --bind "$2/etc" "$1/etc/svcd"
            root=$1; shift 2; exec chroot "$root" env -i "$@\""""
        return ["unshare", "--fork", "--pid", "--kill-child", "--mount", "sh", "-c", mounts, "sh", self.root,
                self.volumes, "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--bounding-set=-all",
                "--no-new-privs", "--", *words]

    def test_it_has_no_key_and_no_rest(self):
        self.assertEqual(os.listdir(self.root + "/etc/svcd"), [])
        self.assertEqual(os.listdir(self.root + "/tmp"), [])
        self.assertEqual(os.listdir(self.root + "/var/lib/apt/lists"), [])
        self.assertEqual(os.stat(self.root + DATA).st_uid, self.owner)

    def test_it_is_started_as_it_says(self):
        self.assertRegex(self.config["User"], r"^[1-9]\d*:[1-9]\d*$")
        self.assertEqual(self.config["StopSignal"], "SIGTERM")
        self.assertIn(DATA, self.config["Volumes"])
        self.assertEqual(list(self.config["ExposedPorts"]), ["8080/tcp"])

    def test_without_keys_it_does_not_listen(self):
        self.configure({})
        result = subprocess.run(self.command(*self.config["Entrypoint"], *self.config["Cmd"]), stderr=subprocess.PIPE,
                                text=True, timeout=harness.DEADLINE_S, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("RequireApiKey", result.stderr)

    def test_it_runs(self):
        key = "0123456789abcdef" * 4
        self.configure({"RequireApiKey": True, "ApiKeys": [
            {"Name": "admin", "KeySha256": hashlib.sha256(key.encode()).hexdigest(),
             "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]}]})
        refused = subprocess.run(self.command("sh", "-c", "touch /etc/x || touch /tmp/x || touch /x"),
                                 capture_output=True, check=False)
        self.assertNotEqual(refused.returncode, 0, "there is something to write to")
        service = Service(self.machine)
        self.addCleanup(service.remove)
        service.begin(self.command(*self.config["Entrypoint"], "--listen", "127.0.0.1:0"))
        for target, status in (("/livez", 200), ("/readyz", 200), ("/Svc.Admin.Webhook", 401)):
            self.assertEqual(service.request("GET", target).status, status, target)
        with open(f"/proc/{service.pid()}/status", encoding="ascii") as file:
            status = file.read()
        self.assertRegex(status, rf"Uid:(\s+{self.owner}){{4}}\n")
        self.assertRegex(status, r"CapEff:\s+0+\n")
        answer = service.request("POST", "/Svc.Admin.Resource", {"Name": "Shop.Note", "Kind": "EntityResource",
                                                                 "Description": "Notes"},
                                 {"Authorization": "apikey " + key, "Content-Type": "application/json"})
        self.assertEqual(answer.status, 201, answer)
        self.assertEqual(service.stop(), 0)
        self.assertNotEqual(glob.glob(self.volumes + "/data/*.seg"), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("parts", nargs="*", help="run tests whose name contains one of these")
    options = parser.parse_args()
    keep_mounts()
    tests = unittest.TestSuite()
    for case in (Package, Installed, Image):
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
            if not options.parts or any(part in test.id() for part in options.parts):
                tests.addTest(test)
    began = time.monotonic()
    try:
        result = unittest.TextTestRunner(sys.stdout, verbosity=2 if options.verbose else 1).run(tests)
    finally:
        Packages.remove()
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print(f"{time.monotonic() - began:.0f} s")
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
