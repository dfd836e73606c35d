"""What compiler and linker were asked for against the exploitation of bugs is in the programs."""
import os
import platform
import re
import subprocess
import unittest

import harness

PROGRAMS = (harness.SVCD, *(os.path.join(os.path.dirname(harness.SVCD), name) for name in ("svc", "svc-journal")))
IS_X86 = platform.machine() == "x86_64"


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=harness.DEADLINE_S, check=True).stdout


class Programs(unittest.TestCase):
    def test_relocations_are_read_only_from_the_start(self):
        for program in PROGRAMS:
            dynamic = output("readelf", "-dW", program)
            self.assertRegex(dynamic, r"\(FLAGS\)\s+.*BIND_NOW")
            self.assertNotRegex(dynamic, r"TEXTREL|RPATH|RUNPATH")
            self.assertIn("GNU_RELRO", output("readelf", "-lW", program))

    def test_the_place_in_memory_is_random(self):
        for program in PROGRAMS:
            if harness.is_sanitized():
                self.skipTest("programs with sanitizers start quicker at fixed addresses; the release build is looked at")
            self.assertRegex(output("readelf", "-hW", program), r"Type:\s+DYN")
            self.assertRegex(output("readelf", "-dW", program), r"\(FLAGS_1\)\s+.*PIE")

    def test_the_stack_is_not_executable(self):
        for program in PROGRAMS:
            self.assertRegex(output("readelf", "-lW", program), r"GNU_STACK( +0x\w+){5} RW +0x")

    def test_overrun_stack_frames_are_noticed(self):
        for program in PROGRAMS:
            self.assertIn("__stack_chk_fail", output("readelf", "-W", "--dyn-syms", program))

    def test_sizes_are_checked_in_calls_of_the_c_library(self):
        for program in PROGRAMS:
            symbols = output("readelf", "-W", "--dyn-syms", program)
            if harness.is_sanitized():
                self.skipTest("sanitizers check more themselves; the release build is looked at")
            self.assertTrue(re.search(r"__(memcpy|v?snprintf)_chk", symbols))

    @unittest.skipUnless(IS_X86, "written for x86-64")
    def test_large_stack_frames_touch_every_page(self):
        """`orq $0, (%rsp)` is in no other code; hash-key has a frame of more than a page."""
        self.assertRegex(output("objdump", "-d", "--no-show-raw-insn", harness.SVCD),
                         r"orq +\$0x0,(0x\w+)?\(%rsp\)")

    @unittest.skipUnless(IS_X86, "written for x86-64")
    def test_shadow_stacks_are_understood(self):
        for program in PROGRAMS:
            self.assertRegex(output("readelf", "-nW", program), r"x86 feature:.*SHSTK")


if __name__ == "__main__":
    unittest.main()
