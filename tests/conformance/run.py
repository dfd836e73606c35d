#!/usr/bin/env python3
"""Runs the conformance table: `run.py [-v] [FILE-PART...]`. SVCD names the binary. What the rows mean
is told in README.txt. The last line counts the rows."""
import argparse
import glob
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
import harness  # noqa: E402

METHODS = "[A-Za-z]+"
READS = ("GET", "HEAD", "REPORT", "OPTIONS")
# Answers that leave no Svc.Admin.Error entity behind.
NOT_STORED = (401, 403, 429, 503)


# ErrorCodes that need a full disk, a limit, a cluster, a mistake of ours, or bytes that are no request: other
# tests show them.
NOT_IN_TABLE = {"NoError", "Unknown", "PayloadTooLarge", "TooManyRequests",
                "Overloaded", "StorageFailure", "RequestTooCostly", "RequestTimeout", "UriTooLong",
                "ExpectationFailed", "HeadersTooLarge", "HttpVersionNotSupported", "NoLeader"}
# The target itself is malformed: it has no normal form.
NO_URI = ("InvalidUriSyntax", "InvalidConditionSyntax", "InvalidMetaConditionSyntax",
          "InvalidMetaConditionOperator")


class Row:
    """`METHOD TARGET [Header: value]... BODY -> STATUS [Header: value]... EXPECTED`"""

    def __init__(self, file, number, rule, text):
        self.place = f"{os.path.basename(file)}:{number}"
        self.rule = rule
        self.text = text
        request, arrow, answer = text.partition(" -> ")
        found = re.fullmatch(rf"({METHODS}) (\S+)((?: \[[\w-]+: [^\]]*\])*)(?: (.*))?", request, re.S)
        expected = re.fullmatch(r"(\d{3})((?: \[[\w-]+: [^\]]*\])*)(?: (.*))?", answer, re.S)
        if not arrow or not found or not expected:
            raise SystemExit(f"{self.place}: this is no row: {text}")
        self.method, self.target, headers, self.body = found.groups()
        self.headers = split_headers(headers)
        self.status = int(expected.group(1))
        self.answer_headers = split_headers(expected.group(2))
        self.expected = expected.group(3)


def split_headers(text):
    return [tuple(part.split(": ", 1)) for part in re.findall(r"\[([\w-]+: [^\]]*)\]", text)]


class Block:
    """Rows under one rule. They begin with fresh data and run in their order."""

    def __init__(self, rule):
        self.rule = rule
        self.rows = []


def rows_of_markdown(lines):
    """The same lines as a table: paragraphs are rules, indented rows are rows, all else is blank."""
    for line in lines:
        is_row = re.match(rf"    ({METHODS}) [/?]\S* .*-> ", line) is not None
        yield line[4:] if is_row else "#" + line if line.strip() else line


def read_blocks(file):
    blocks, rule, text, first = [], [], "", 0
    with open(file, encoding="utf-8") as stream:
        lines = rows_of_markdown(stream) if file.endswith(".md") else stream
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if line.startswith(("==", "--")) or not line.strip():
                rule = []
            elif line.startswith("#"):
                rule.append(line[1:].strip())
                if len(rule) == 1:
                    blocks.append(Block(""))
                blocks[-1].rule = " ".join(rule)
            else:
                first = first or number
                text += line.rstrip("\\").strip() + (" " if line.endswith("\\") else "")
                if not line.endswith("\\"):
                    blocks[-1].rows.append(Row(file, first, blocks[-1].rule, text))
                    text, first = "", 0
    return [block for block in blocks if block.rows]


class Mismatch(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Mismatch(message)


# JSON, to be compared as it is written: numbers by their text, members in their order.

class Number(str):
    pass


def parse(text):
    return json.loads(text, object_pairs_hook=lambda pairs: ("object", pairs), parse_int=Number,
                      parse_float=Number, parse_constant=Number)


def same(expected, actual):
    """`"*"` stands for any value, a last member `"...": 0` for any further members."""
    if expected == "*" and not isinstance(expected, Number):
        return True
    if isinstance(expected, tuple) and isinstance(actual, tuple):
        wanted, given = expected[1], actual[1]
        if wanted and wanted[-1][0] == "...":
            wanted = wanted[:-1]
            given = given[:len(wanted)]
        return len(wanted) == len(given) and all(
            name == other and same(value, found)
            for (name, value), (other, found) in zip(wanted, given))
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    return type(expected) is type(actual) and expected == actual


class Table:
    def __init__(self, server, config):
        self.server = server
        self.data = config
        self.names = {}
        self.passed = self.failed = 0
        self.is_fresh = False

    def request(self, method, target, body=None, headers=()):
        merged = dict(headers)
        if self.data.get("key") and "Authorization" not in merged:
            merged["Authorization"] = f"apikey {self.data['key']}"
        if merged.get("Authorization") == "none":
            del merged["Authorization"]
        return self.server.request(method, target, body, merged)

    def refresh(self):
        """The data that the file begins with, and nothing else. Ids get new, their names stay."""
        if self.is_fresh:
            return
        for target in self.data["empty"]:
            answer = self.request("DELETE", f"{target}/unsafe=true")
            assert answer.status == 200, answer
        self.names = {}
        for target, entities in self.data["entities"].items():
            for name, entity in entities.items():
                answer = self.request("POST", target, entity)
                assert answer.status == 201, answer
                self.names[name] = answer.json()[0]["Id"]
                self.names[name + ".ObjectNo"] = str(answer.json()[0]["ObjectNo"])
                self.names[name + ".ETag"] = self.request(
                    "GET", f"{target}/Id={self.names[name]}").headers.get("ETag") or ""
                self.names[name + ".indented"] = self.names[name + ".ETag"][:-1] + '-i"'
        self.request("DELETE", "/Svc.Event/_/unsafe=true")  # what these insertions raised
        self.is_fresh = True

    def fill_in(self, text):
        return re.sub(r"\{\{([\w.]+)\}\}", lambda found: self.names[found.group(1)], text)

    def snapshot(self):
        return [self.request("GET", target.split("/_")[0]).body for target in self.data["empty"]]

    def run(self, row):
        target = self.fill_in(row.target)
        headers = [(name, self.fill_in(value)) for name, value in row.headers]
        body = self.body_of(row)
        before = self.snapshot() if row.method not in READS and row.status >= 400 else None
        if row.method not in READS:
            self.is_fresh = False
        answer = self.request(row.method, target, body, headers)
        expect(answer.status == row.status, f"status {row.status}")
        for name, value in row.answer_headers:
            self.check_header(answer, name, self.fill_in(value))
        if row.status >= 400:
            self.check_error(row, answer, body)
        elif row.expected is not None:
            self.check_body(answer, self.fill_in(row.expected))
        if before is not None:
            expect(self.snapshot() == before, "nothing changed")
        return answer

    def body_of(self, row):
        if row.body is None:
            return None
        if row.body.startswith("raw:"):
            return row.body[4:].encode().decode("unicode_escape").encode("latin-1")
        return self.fill_in(row.body).encode()

    @staticmethod
    def check_header(answer, name, value):
        found = answer.headers.get(name)
        if value == "-":
            expect(found is None, f"no header {name}")
        elif value == "*":
            expect(found is not None, f"a header {name}")
        elif value.startswith("~"):
            expect(found is not None and re.search(value[1:], found), f"{name} like {value[1:]}")
        else:
            expect(found == value, f"{name}: {value}")

    @staticmethod
    def check_body(answer, expected):
        if expected == "empty":
            expect(answer.body == b"", "no body")
        elif expected.startswith("raw:"):
            wanted = expected[4:].encode().decode("unicode_escape").encode("latin-1")
            expect(answer.body == wanted, f"the body {wanted!r}")
        else:
            expect(same(parse(expected), parse(answer.body)), f"the body {expected}")

    def check_error(self, row, answer, body):
        """A problem body with the code, a message with all the words, and the stored entity."""
        found = re.fullmatch(r"(\w+)((?: '[^']*'| \"[^\"]*\")*)", row.expected or "")
        expect(found is not None, "an ErrorCode in the row")
        if row.method != "HEAD":
            problem = answer.json()
            expect(answer.headers["Content-Type"].startswith("application/problem+json"),
                   "a problem body")
            expect((problem["status"], problem["ErrorCode"]) == (row.status, found.group(1)),
                   f"ErrorCode {found.group(1)}")
            self.check_words(found.group(2), problem["detail"])
        is_stored = row.status not in NOT_STORED and row.method not in ("OPTIONS", "CONNECT")
        expect((answer.headers["ErrorInfo"] is not None) == is_stored, "ErrorInfo if it is stored")
        if is_stored:
            self.check_stored(row, answer, found, body)

    def check_words(self, words, message):
        for single, double in re.findall(r" '([^']*)'| \"([^\"]*)\"", words):
            word = self.fill_in(single or double)
            expect(word in message, f"a message that names {word}")

    def check_stored(self, row, answer, found, body):
        link = answer.headers["ErrorInfo"]
        expect(re.fullmatch(r"/Svc\.Admin\.Error/id=[0-9a-f-]{36}", link), "ErrorInfo as a link")
        error = self.request("GET", link).json()[0]
        expect(list(error) == ["Id", "Time", "ResourceName", "Action", "ErrorCode", "StackTrace",
                               "Message", "Uri", "Headers", "Body", "ObjectNo"], "all members")
        expect(error["ErrorCode"] == found.group(1), f"the entity's ErrorCode {found.group(1)}")
        expect(error["Action"] == row.method, "the entity's Action")
        expect(re.sub(r"[\x00-\x1f\x7f]", " ", error["Message"]) == (answer.headers["Svc-info"] or "")
               or len(error["Message"]) > 200 or not error["Message"].isascii(),
               "the entity's Message in Svc-info")
        self.check_words(found.group(2), error["Message"])
        expect(re.fullmatch(r"(at \w+ \([\w/.]+:\d+\)\n?)+", error["StackTrace"]), "a StackTrace")
        expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", error["Time"]), "a Time")
        if error["Uri"] == self.fill_in(row.target) and error["ResourceName"] == "<unknown>":
            expect(found.group(1) in NO_URI, "a Uri in normal form")
        else:
            expect(re.fullmatch(r"/[^/]+/[^/]+/[^/]+", error["Uri"]), "a Uri of three parts")
        if found.group(1) in ("UnknownResource", "AmbiguousResource") and not row.body:
            expect(error["ResourceName"] == "<unknown>", "ResourceName <unknown>")
        self.check_stored_secrets(error, row)
        if body is not None and re.search(rb'apikey |svck_|"Secrets":\[[^]]|//[^/"]*@', body):
            expect("*******" in error["Body"] and not re.search("apikey |svck_", error["Body"]),
                   "no secret in the entity's Body")
        elif body is not None and body.isascii() and len(body) < 10000:
            expect(error["Body"] == body.decode(), "the entity's Body")

    def check_stored_secrets(self, error, row):
        for name, value in row.headers:
            value = self.fill_in(value)
            if name == "Authorization":
                expect("Authorization: apikey *******" in error["Headers"], "a masked key")
                expect(value not in error["Headers"], "no key in Headers")
            elif name in ("Cookie", "X-Api-Key", "Proxy-Authorization"):
                expect(f"{name}: *******" in error["Headers"], f"a masked {name}")
            else:
                expect(f"{name}: {value}" in error["Headers"], f"{name} in Headers")

    def run_block(self, block, verbose):
        self.is_fresh = self.is_fresh and not any(row.method not in READS for row in block.rows)
        for row in block.rows:
            if not self.is_fresh and row is block.rows[0]:
                self.refresh()
            answer = None
            try:
                answer = self.run(row)
                self.passed += 1
                if verbose:
                    print(f"ok {row.place}: {row.text}")
            except (Mismatch, KeyError, ValueError) as problem:
                self.failed += 1
                print(f"FAILED {row.place}: {row.rule}\n  {row.text}\n  expected: {problem!r}")
                print(f"  got: {answer or self.request(row.method, self.fill_in(row.target), self.body_of(row), row.headers)}")


def missing_codes(files):
    """ErrorCodes that no row is about."""
    shown = {row.expected.split()[0] for file in files for block in read_blocks(file)
             for row in block.rows if row.status >= 400 and row.expected}
    with open(os.path.join(HERE, "..", "..", "include", "base", "err.h"), encoding="utf-8") as source:
        codes = set(re.findall(r'X\(ERR_\w+, "(\w+)"', source.read()))
    return sorted(codes - shown - NOT_IN_TABLE)


def run_file(file, verbose):
    with open(os.path.join(HERE, "data.json"), encoding="utf-8") as stream:
        data = json.load(stream)
    name = os.path.splitext(os.path.basename(file))[0]
    data.update(data["files"].get(name, {}))
    server = harness.Server(dict(data["config"], **data.get("more", {})))
    server.start()
    table = Table(server, data)
    try:
        for block in read_blocks(file):
            table.run_block(block, verbose)
    finally:
        server.remove()
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("parts", nargs="*", help="files whose name contains one of these")
    options = parser.parse_args()
    passed = failed = 0
    every = [file for file in sorted(glob.glob(os.path.join(HERE, "*.txt")))
             if not file.endswith("README.txt")]
    pages = glob.glob(os.path.join(HERE, "..", "..", "docs", "reference", "*.md"))
    every += [page for page in sorted(pages) if read_blocks(page)]
    for code in missing_codes(every):
        failed += 1
        print(f"FAILED: no row is answered with {code}")
    for file in every:
        if options.parts and not any(part in os.path.basename(file) for part in options.parts):
            continue
        table = run_file(file, options.verbose)
        passed += table.passed
        failed += table.failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
