#!/usr/bin/env python3
"""Becomes a program that may make only the system calls that deploy/svcd.service allows; all others fail with
EPERM, as they do there: `in_filter.py PROGRAM [ARGUMENT...]`. Without a program it prints their names,
which it takes from SYSTEM_CALLS when that is set: asking systemd takes a while. `--to FILE [NAME...]` writes the
filter for in_filter.c, which takes no time to speak of; it allows those named too."""
import ctypes
import errno
import os
import sys

ACT_ALLOW = 0x7FFF0000
ACT_ERRNO = 0x00050000


def names():
    if "SYSTEM_CALLS" in os.environ:
        return os.environ["SYSTEM_CALLS"].split()
    import test_deploy  # pylint: disable=import-outside-toplevel
    return sorted(test_deploy.allowed_system_calls())


def make(allowed):
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    library.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    context = library.seccomp_init(ACT_ERRNO | errno.EPERM)
    for name in allowed:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # it is one of this architecture
            assert library.seccomp_rule_add(context, ACT_ALLOW, number, 0) == 0, name
    return library, context


def load(allowed):
    library, context = make(allowed)
    assert library.seccomp_load(context) == 0


def write(allowed, path):
    library, context = make(allowed)
    with open(path, "wb") as file:
        assert library.seccomp_export_bpf(context, file.fileno()) == 0


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(" ".join(names()))
    elif sys.argv[1] == "--to":
        write(names() + sys.argv[3:], sys.argv[2])
    else:
        load(names())
        os.execv(sys.argv[1], sys.argv[1:])
