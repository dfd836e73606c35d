"""What a scenario needs to know, and the command lines of tools/bench/run and compare."""
import argparse
import os
import shutil
import subprocess
import sys

from . import SCENARIOS, machine, peers, report

ROOT = os.path.dirname(os.path.dirname(peers.BENCH))
OPTIMIZED = os.path.join(ROOT, "build", "optimized")
PACKAGES = "wrk nginx-light h2o redis-server nodejs node-undici linux-perf strace openssl".split()
UNDICI = "undici@6"
PROVIDES = {"nginx-light": "nginx", "nodejs": "node", "linux-perf": "perf",
            "redis-server": "redis-server", "node-undici": "/usr/share/nodejs/undici/index.js"}


class Context:
    def __init__(self, options, builds, with_peers):
        self.runs = options.runs
        self.seconds = options.seconds
        self.count = options.count
        self.builds = builds
        self.peers = with_peers
        self.place = peers.Place(options.build, options.directory)

    def start_builds(self):
        return [peers.Svcd(name, binary, self.place) for name, binary in self.builds]

    @staticmethod
    def stop(started):
        for peer in started:
            peer.stop()


def install():
    """Packages whose program is not there. Where systemd runs, Debian starts their services too, on
    their usual ports, which the benchmark does not use; elsewhere RUNLEVEL keeps them down."""
    missing = [name for name in PACKAGES
               if not os.path.exists(PROVIDES.get(name, name)) and
               not shutil.which(PROVIDES.get(name, name))]
    if missing:
        _install_packages(missing)
    if shutil.which("npm") and not os.path.exists(peers.NODE_MODULES):
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix",
                        peers.NODE_MODULES, UNDICI], check=False, stdout=subprocess.DEVNULL)


def _install_packages(missing):
    print("installing: " + " ".join(missing), file=sys.stderr)
    sudo = [] if os.getuid() == 0 else ["sudo"]
    subprocess.run([*sudo, "apt-get", "update", "-qq"], check=True)
    subprocess.run([*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get",
                    "install", "-y", "-qq", "--no-install-recommends", *missing],
                   check=True, stdout=subprocess.DEVNULL)


def build(directory):
    """The server, as tools/release makes it or as a plain release in another directory, and the
    benchmark's programs."""
    options = ["-Dtests=false", "--buildtype=release", "-Db_lto=true"]
    if os.path.abspath(directory) == OPTIMIZED:
        subprocess.run([os.path.join(ROOT, "tools", "release")], check=True, stdout=sys.stderr)
    elif os.path.exists(os.path.join(directory, "build.ninja")):
        subprocess.run(["meson", "configure", directory, *options], check=True)
    else:
        subprocess.run(["meson", "setup", directory, ROOT, *options], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", directory, "svcd", "bench_programs"], check=True,
                   stdout=subprocess.DEVNULL)


def parser(text):
    result = argparse.ArgumentParser(description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--runs", type=int, default=5, help="rounds of each (default 5)")
    result.add_argument("--seconds", type=int, default=5, help="of each run (default 5)")
    result.add_argument("--count", type=int, default=1000000,
                        help="webhooks and pending deliveries to hold (default a million)")
    result.add_argument("--build", default=OPTIMIZED,
                        help="build directory (default build/optimized, by tools/release)")
    result.add_argument("--output", default=os.path.join(ROOT, "build", "bench"),
                        help="where results.json and plots go (default build/bench)")
    return result


def chosen(names):
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        sys.exit(f"no scenario is called {', '.join(unknown)}; there are "
                 f"{', '.join(SCENARIOS)}")
    return names


def run(options, names, builds, with_peers):
    """Runs the scenarios, printing each as it ends; the files are written in any case."""
    options.directory = os.path.join(options.output, "scratch")
    shutil.rmtree(options.directory, ignore_errors=True)
    os.makedirs(options.directory)
    context = Context(options, builds, with_peers)
    done = []
    print(", ".join(f"{key}: {value}" for key, value in machine.describe().items()))
    try:
        for name in names:
            print(f"\n{name} ...", file=sys.stderr)
            done.append(SCENARIOS[name](context))
            print(report.table(done[-1]), flush=True)
    finally:
        shutil.rmtree(options.directory, ignore_errors=True)
        if done:
            print("\n" + report.write(options.output, done,
                                      {"runs": options.runs, "seconds": options.seconds,
                                       "count": options.count, "builds": dict(builds)}))
    return done
