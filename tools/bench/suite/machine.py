"""The machine as the benchmark sees it: which core does what, what a process has used."""
import os
import re
import subprocess
import tempfile
import time

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE = CORES[-1]
# A receiver has a core of its own where there are three or more.
RECEIVER_CORE = CORES[-2] if len(CORES) > 2 else CORES[0]
LOAD_CORES = CORES[:-2] if len(CORES) > 3 else CORES[:1]


def pinned(cores, command):
    cores = [cores] if isinstance(cores, int) else cores
    return ["taskset", "-c", ",".join(map(str, cores)), *map(str, command)]


def describe():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return {"date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "kernel": os.uname().release,
            "processor": found.group(1) if found else os.uname().machine, "cores": len(CORES),
            "load_average": round(os.getloadavg()[0], 2), "server_core": SERVER_CORE,
            "receiver_core": RECEIVER_CORE, "load_cores": LOAD_CORES}


def family(pid):
    """The process and all below it."""
    found = [pid]
    for each in found:
        for task in os.listdir(f"/proc/{each}/task"):
            with open(f"/proc/{each}/task/{task}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


def cpu_ns(pids):
    """Processor time of the processes, threads and children included."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
    return total


def status(pid, name):
    """A number of /proc/PID/status: VmRSS in kB, voluntary_ctxt_switches, ..."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{name}:\s*(\d+)", file.read(), re.M).group(1))


def resident_mb(pid):
    return status(pid, "VmRSS") / 1024


class Calls:
    """Counts system calls of processes between start and stop: with perf where the kernel lets us,
    else with strace, which slows them down and counts the same."""

    def __init__(self, pids):
        self.pids = pids
        self.log = tempfile.NamedTemporaryFile("r", suffix=".calls")
        self.perf = self._start(["perf", "stat", "-x,", "-o", self.log.name, "-e",
                                 "raw_syscalls:sys_enter,syscalls:sys_enter_epoll_ctl",
                                 "-p", ",".join(map(str, pids))])
        self.process = self.perf or self._start(
            ["strace", "-c", "-f", "-o", self.log.name,
             *(word for pid in pids for word in ("-p", str(pid)))])

    @staticmethod
    def _start(command):
        try:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            return None
        time.sleep(0.3)
        return process if process.poll() is None else None

    def stop(self):
        """(all, epoll_ctl), or None when there is no way to count."""
        if self.process is None:
            return None
        self.process.send_signal(2)
        self.process.wait()
        text = self.log.read()
        self.log.close()
        if self.perf:
            return (self._perf(text, "raw_syscalls:sys_enter"),
                    self._perf(text, "syscalls:sys_enter_epoll_ctl"))
        return self._strace(text, "total"), self._strace(text, "epoll_ctl")

    @staticmethod
    def _perf(text, name):
        found = re.search(rf"^(\d+),,{re.escape(name)}", text, re.M)
        return int(found.group(1)) if found else 0

    @staticmethod
    def _strace(text, name):
        found = re.search(rf"^\s*[\d.]+\s+[\d.]+\s+\d*\s+(\d+)\s+(?:\d+\s+)?{name}$", text, re.M)
        return int(found.group(1)) if found else 0
