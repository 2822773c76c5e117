#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the order of emitted operations does not depend on the C++ compiler.

C++ leaves open in which order the arguments of a call are evaluated: of `e.add(e.mul(a, b), e.sub(c, d))`
one compiler emits the product first, another the difference. The kernel is then as correct, but neither its
text nor its speed is the same. So at most one argument of a call may create operations; the others are
named in statements of their own, which stand in the order of the code they make. Braced lists have an
order; lambdas among the arguments run later and are looked at by themselves.

Under lib/Conversion and lib/Compiler constants are left out: none of them is an instruction. Under
lib/Dialect they count, since passes over attn are read as text. Which functions create operations follows
from their bodies. Not seen: operators, and constructors that create operations.

That two compilers give the same bytes cannot be tested by a build with one of them. To compare, build with
both, run test/Device/build_artifacts.py --sim with the attn-compile of each, and diff the folders.

usage: emission_order.py [ROOT]         check a source tree (default: the one this file lies in)
       emission_order.py --self-test    check that violations are found, and nothing else
"""

import bisect
import os
import re
import sys
import tempfile

# Folders that are checked, and whether constants count.
CHECKED = {"lib/Conversion": False, "lib/Dialect": True, "lib/Compiler": False}
# Read besides, for what they declare.
HEADERS = ["include/attn/Conversion", "include/attn/Dialect", "include/attn/Compiler"]

NOTHING, CONSTANT, OPERATION = range(3)

LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*', re.S | re.M)
DIGITS = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
TEMPLATE = re.compile(r"(?<=\w)<[\w:&* ,]*>")
CALL = re.compile(r"(?P<receiver>[\w:\])>]*(?:\.|->|::))?(?P<name>~?\b\w+)\s*(?:<[\w:&* ;]*>)?\s*\(")
CLASS = re.compile(r"\b(?:class|struct)\s+(?P<name>\w+)(?:\s+final)?\s*(?::(?P<bases>[^{};]*))?\{")
CAPTURES = re.compile(r"(?:\b(return)\s*|(?<![\w\])\s])\s*)\[")
NAMED_LAMBDA = re.compile(r"\bauto\s+(\w+)\s*=\s*\[")
AFTER_HEAD = re.compile(r"(?:\s*(?:const|override|final|noexcept|mutable)\b)*(?:\s*->\s*[\w:<>&* ;]+?)?\s*\{")
VARIABLE = re.compile(r"\b(?:unique_ptr<)?(?:\w+::)*([A-Z]\w*)>?\s*[&*]?\s*[&*]?\b([a-z]\w*)\s*(?=[;,(){=:])")
KEYWORDS = set("if for while switch catch return sizeof decltype static_assert alignas assert".split())
BUILDERS = {"OpBuilder", "PatternRewriter", "ConversionPatternRewriter", "RewriterBase"}


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def closing(text, at):
    """Place of the bracket that closes the one at `at`, or the end."""
    depth = 0
    for i in range(at, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth == 0:
                return i
    return len(text)


def lambda_body(text, at):
    """Begin and end of the body of the lambda whose captures open at `at`, or None."""
    after = closing(text, at) + 1
    match = re.compile(r"\s*\(").match(text, after)
    if match:
        after = closing(text, match.end() - 1) + 1
    match = AFTER_HEAD.match(text, after)
    return (match.end() - 1, closing(text, match.end() - 1)) if match else None


def split(text):
    """The arguments in the text between two parentheses."""
    arguments, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            arguments.append(text[begin:i])
            begin = i + 1
    return arguments + [text[begin:]]


class File:
    def __init__(self, path, text):
        self.path = path
        text = LITERAL.sub(blank, DIGITS.sub(" ", text))
        # Commas between types are none between arguments.
        self.text = TEMPLATE.sub(lambda m: m.group().replace(",", ";"), text)
        self.lines = [m.start() for m in re.finditer("\n", text)]
        self.calls = [m for m in CALL.finditer(self.text) if m.group("name") not in KEYWORDS]
        self.starts = [m.start() for m in self.calls]
        self.lambdas = []  # (begin of the captures, begin and end of the body, whether returned)
        for match in CAPTURES.finditer(self.text):
            body = lambda_body(self.text, match.end() - 1)
            if body:
                self.lambdas.append((match.end() - 1, *body, match.group(1) is not None))
        self.classes = []  # (begin, end, name)
        self.functions = []  # (begin, end, class or "", name)
        self.variables = {}  # name -> types

    def line(self, at):
        return bisect.bisect_left(self.lines, at) + 1

    def class_at(self, at):
        around = [c for c in self.classes if c[0] <= at < c[1]]
        return max(around)[2] if around else ""

    def owner_at(self, at):
        """Class of the function around a place, or ""."""
        around = [f for f in self.functions if f[0] <= at < f[1] and f[2]]
        return max(around)[2] if around else self.class_at(at)


class Sources:
    def __init__(self):
        self.files = []
        self.bases = {}  # class -> bases
        self.bodies = {}  # (class or "" or file of a lambda, name) -> [(file, begin, end)]
        self.variables = {}  # those of headers
        self.kinds = {}  # name -> {class or "" or file of a lambda: what it creates}

    def add(self, path, text):
        file = File(path, text)
        self.files.append(file)
        for match in CLASS.finditer(file.text):
            file.classes.append((match.end() - 1, closing(file.text, match.end() - 1), match.group("name")))
            bases = re.findall(r"(\w+)\s*(?:<[^>]*>)?\s*(?:,|$)", match.group("bases") or "")
            self.bases.setdefault(match.group("name"), set()).update(bases)
        for match in VARIABLE.finditer(file.text):
            file.variables.setdefault(match.group(2), set()).add(match.group(1))
            if path.endswith(".h"):
                self.variables.setdefault(match.group(2), set()).add(match.group(1))
        for match in file.calls:
            if (match.group("receiver") or "::")[-1] != ":":
                continue
            head = AFTER_HEAD.match(file.text, closing(file.text, match.end() - 1) + 1)
            if not head:
                continue
            scope = (match.group("receiver") or "").rstrip(":").split("::")[-1]
            owner = scope if scope[:1].isupper() else file.class_at(match.start())
            self.define(file, owner, match.group("name"), head.end() - 1)
        for match in NAMED_LAMBDA.finditer(file.text):
            body = lambda_body(file.text, match.end() - 1)
            if body:
                self.define(file, path, match.group(1), body[0])

    def define(self, file, owner, name, begin):
        end = closing(file.text, begin)
        file.functions.append((begin, end, "" if owner == file.path else owner, name))
        self.bodies.setdefault((owner, name), []).append((file, begin, end))

    def related(self, one, other):
        """Whether one class is the other, or derives from it."""
        def above(name, seen):
            if name not in seen:
                seen.add(name)
                for base in self.bases.get(name, ()):
                    above(base, seen)
            return seen
        return other in above(one, set()) or one in above(other, set())

    def called(self, file, match):
        """What the call creates: NOTHING, constants only (CONSTANT) or OPERATION."""
        name, receiver = match.group("name"), match.group("receiver") or ""
        scope = re.split(r"\.|->|::", receiver)[-2] if receiver else ""
        if name in ("create", "createOrFold") and receiver.endswith("::") and scope[:1].isupper():
            return CONSTANT if re.search("Constant(Index)?Op$", scope) else OPERATION
        if name in ("create", "createOrFold", "replaceOpWithNewOp") and receiver:
            return OPERATION
        known = self.kinds.get(name, {})
        if not receiver:
            if file.path in known:
                return known[file.path]
            owner = file.owner_at(match.start())
            own = [kind for other, kind in known.items() if owner and self.related(owner, other)]
            return max(own) if own else known.get("", NOTHING)
        if receiver.endswith("::"):
            types = {scope} if scope[:1].isupper() else {""}
        else:
            types = file.variables.get(scope) or self.variables.get(scope)
            if types and name == "clone":
                return OPERATION if types & BUILDERS else NOTHING
        if types is None:
            return max([NOTHING] + [kind for owner, kind in known.items() if owner[:1].isupper()])
        return max([NOTHING] + [kind for owner, kind in known.items()
                                if any(owner == t or t and self.related(t, owner) for t in types)])

    def created(self, file, begin, end, is_argument):
        """What the calls of an argument, or of the body of a function, create."""
        later = [body for captures, *body, returned in file.lambdas
                 if begin <= captures < end and (is_argument or returned)]
        kind = NOTHING
        for i in range(bisect.bisect_left(file.starts, begin), bisect.bisect_left(file.starts, end)):
            if not any(body[0] < file.starts[i] < body[1] for body in later):
                kind = max(kind, self.called(file, file.calls[i]))
        return kind

    def infer(self):
        for owner, name in self.bodies:
            self.kinds.setdefault(name, {})[owner] = NOTHING
        changed = True
        while changed:
            changed = False
            for (owner, name), bodies in self.bodies.items():
                kind = max(self.created(*body, is_argument=False) for body in bodies)
                if kind > self.kinds[name][owner]:
                    self.kinds[name][owner] = kind
                    changed = True

    def violations(self, file, constants):
        """Lines, functions and arguments of calls with two or more that create operations."""
        for match in file.calls:
            at, creating = match.end(), []
            for argument in split(file.text[at:closing(file.text, at - 1)]):
                kind = self.created(file, at, at + len(argument), is_argument=True)
                if kind == OPERATION or (kind == CONSTANT and constants):
                    creating.append(" ".join(argument.split()))
                at += len(argument) + 1
            if len(creating) > 1:
                yield file.line(match.start()), (match.group("receiver") or "") + match.group("name"), creating


def source_files(root, tops):
    for top in tops:
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".h", ".cpp")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def check(root):
    """Returns (number of files, number of functions that create operations, list of errors)."""
    sources = Sources()
    for path in source_files(root, HEADERS + list(CHECKED)):
        with open(os.path.join(root, path), encoding="utf-8") as text:
            sources.add(path, text.read())
    sources.infer()
    errors = []
    for file in sources.files:
        constants = any(value for top, value in CHECKED.items() if file.path.startswith(top + "/"))
        for line, name, creating in sources.violations(file, constants):
            errors.append("%s:%d: %d arguments of %s create operations, in an order that C++ leaves open: %s; "
                          "name all but the first in statements of their own, the last one first"
                          % (file.path, line, len(creating), name, " | ".join(creating)))
    creators = sum(kind == OPERATION for known in sources.kinds.values() for kind in known.values())
    return len(sources.files), creators, errors


HEAD = """
class Emitter {
public:
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value load(Value a);
  Value i32(int64_t value) { return arith::ConstantOp::create(builder, loc, value); }
};
Value Emitter::load(Value a) { return LLVM::LoadOp::create(builder, loc, a); }
struct Target : public Context {
  Value rows(OpBuilder &b) override { return RowsOp::create(b, loc); }
};
class Program {
public:
  int add(int a, int b) { return a + b; }
};
static Value twice(Emitter &e, Value a) { return e.add(a, a); }
"""

SELF_TEST = [
    # body of void f(Emitter &e, Context &context, Program &program, Value a), legal in lib/Conversion,
    # legal in lib/Dialect
    ("e.add(e.add(a, a), a);", True, True),
    ("e.add(e.add(a, a), e.add(a, a));", False, False),
    ("e.add(\n    a, e.add(e.load(a), e.load(a)));", False, False),
    ("use(twice(e, a), e.load(a));", False, False),
    ("use(arith::AddIOp::create(b, loc, a, a), LLVM::LoadOp::create(b, loc, a));", False, False),
    ("use(e.emit<LLVM::AddOp>(a), e.load(a));", True, True),  # no body of emit() here
    ("std::pair(e.load(a), e.load(a));", False, False),
    ("std::pair<Value, Value>{e.load(a), e.load(a)};", True, True),
    ("use({e.load(a), e.load(a)}, a);", True, True),
    ("use(e.load(a), ValueRange{e.load(a)});", False, False),
    ("auto two = [&](Value v) { return e.load(v); };\n  e.add(two(a), two(a));", False, False),
    ("use(e.load(a), [&] { e.load(a); });", True, True),
    ("use(a, [&] { e.add(e.load(a), e.load(a)); });", False, False),
    ("auto late = [&](int i) { return [&, i] { e.load(a); }; };\n  use(late(0), late(1));", True, True),
    ("e.add(e.load(a), e.i32(1));", True, False),
    ("e.add(e.i32(1), e.i32(2));", True, False),
    ("use(context.rows(b), e.load(a));", False, False),
    ("use(program.add(1, 2), program.add(3, 4));", True, True),
    ("e.add(use<Pair<A, B>>(a), e.load(a));", True, True),
    ("if (e.load(a) && e.load(a)) e.load(a);", True, True),
    ("use(\"e.load(a)\", e.load(a)); // e.add(e.load(a), e.load(a))", True, True),
    ("Value x = e.load(a), y = e.load(a);", True, True),
]


def self_test():
    failed = 0
    for body, *legal in SELF_TEST:
        for folder, expected in zip(("lib/Conversion/A", "lib/Dialect/A"), legal):
            with tempfile.TemporaryDirectory() as root:
                os.makedirs(os.path.join(root, folder))
                with open(os.path.join(root, folder, "A.cpp"), "w", encoding="utf-8") as out:
                    out.write(HEAD + "void f(Emitter &e, Context &context, Program &program, Value a) {\n  "
                              + body + "\n}\n")
                errors = check(root)[2]
                # What is wrong stands in the last line.
                place = "%s/A.cpp:%d: " % (folder, HEAD.count("\n") + 2 + body.count("\n"))
                if expected == bool(errors) or not all(error.startswith(place) for error in errors):
                    failed += 1
                    print("self-test: %s in %s: expected %s, got %s"
                          % (body, folder, "no error" if expected else "an error", errors or "none"))
    print("emission order self-test: %d cases, %d failed" % (len(SELF_TEST), failed))
    return 1 if failed else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__)
        return 2
    root = arguments[0] if arguments else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    num_files, num_creators, errors = check(root)
    for error in errors:
        print(error)
    print("emission order: %d files, %d functions that create operations, %d errors"
          % (num_files, num_creators, len(errors)))
    # Hundreds of functions emit; none found means that they are no longer recognised.
    return 1 if errors or num_creators < 100 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
