"""What the documents say is true: their examples run, their tables are those of the source."""
import glob
import os
import re
import subprocess
import unittest

import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def table_rows(text, after):
    """The rows of the first table behind a line that begins with `after`, as lists of cells."""
    part = text[text.index("\n" + after):]
    rows = re.search(r"(?:^\|.*\n)+", part, re.M).group(0).splitlines()
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows[2:]]


class Examples(harness.ServerCase):
    def test_the_readmes_commands(self):
        """Each command of "Use it" is answered with a 2xx status."""
        section = read("README.md").split("## Use it")[1].split("##")[0]
        block = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
        commands = re.findall(r"^curl (?:[^'\n]|'[^']*')*", block, re.M)
        self.assertGreaterEqual(len(commands), 4)
        for command in commands:
            command = command.replace("localhost:8080", f"127.0.0.1:{self.server.port}")
            command = command.replace("https://example.com/", "http://127.0.0.1:9/")
            result = subprocess.run(command + " -sS -o /dev/null -w '%{http_code}'", shell=True,
                                    capture_output=True, text=True, timeout=30, check=False)
            self.assertRegex(result.stdout, r"^2\d\d$", (command, result.stderr))


class Tables(unittest.TestCase):
    def test_limits(self):
        source = re.findall(r'X\(\w+, "(\w+)", (\d+), [^,]+, [^,]+,\s*(?:\\\n\s*)?"(\w+)",',
                            read("include", "base", "limits.h"))
        documented = [tuple(row[:3]) for row in table_rows(read("docs", "configuration.md"), "`Limits`")]
        self.assertGreater(len(source), 10)
        self.assertEqual(sorted(source), sorted(documented))

    def test_retention(self):
        source = re.findall(r'X\(\w+, "(\w+)", (\d+), "(\w+)"\)',
                            read("include", "hooks", "retention.h"))
        documented = [tuple(row[:3])
                      for row in table_rows(read("docs", "configuration.md"), "`Retention`")]
        self.assertEqual(source, documented)

    def test_metrics(self):
        source = re.findall(r'X\(\w+, \w+, "(\w+)", "(\w+)", "([\w,]*)", "([^"]*)"\)',
                            re.sub(r"\s*\\\n\s*", " ", read("include", "rest", "metrics.h")))
        documented = [(row[1], row[0], row[2].replace("`, `", ","), row[3])
                      for row in table_rows(read("docs", "metrics.md"), "`_other`")]
        self.assertGreater(len(source), 30)
        self.assertEqual(source, documented)

    def test_reference(self):
        """Its tables are what svc-reference prints from those that the server works by."""
        tool = os.path.join(os.path.dirname(harness.SVCD), "svc-reference")
        printed = subprocess.run([tool], capture_output=True, text=True, timeout=30, check=True).stdout
        errors, resources = printed.split("\n\n", 1)
        reference = read("docs", "reference.md")
        self.assertGreater(errors.count("\n"), 30)
        self.assertIn("\n" + errors + "\n", reference)
        self.assertEqual(reference[reference.index("### Svc."):], resources)

    def test_security(self):
        """The files that it names exist, and the members."""
        words = re.findall(r"`([^`\n]+)`", read("docs", "security.md"))
        files = [word for word in words if re.match(r"(src|include|deploy|tools|tests|docs)/", word)]
        self.assertGreater(len(files), 15)
        for name in files:
            self.assertTrue(glob.glob(os.path.join(ROOT, name)), name)
        configuration = read("docs", "configuration.md")
        members = [word for word in words if re.fullmatch(r"([A-Z][a-z]+){2,}(\.\w+)*", word)]
        self.assertGreater(len(members), 15)
        for member in members:
            self.assertIn(member.split(".")[-1], configuration)

    def test_links(self):
        for name in ["README.md", "SECURITY.md"] + [f"docs/{n}" for n in os.listdir(os.path.join(ROOT, "docs"))
                                     if n.endswith(".md")]:
            for target in re.findall(r"\]\(([^)#:]+)\)", read(name)):
                path = os.path.join(ROOT, os.path.dirname(name), target)
                self.assertTrue(os.path.exists(path), f"{name} links to {target}")


if __name__ == "__main__":
    unittest.main()
