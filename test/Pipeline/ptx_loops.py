#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands in the loops of PTX.

Splits each entry into basic blocks, finds its natural loops, and says what they hold. A KV loop is a
loop with a matrix product (wgmma) in it and no such loop inside.

usage: ptx_loops.py [--check NAME]... [FILE]     ('-' or nothing: standard input)
       ptx_loops.py --self-test

Without --check: one line a loop. Checks, each over every entry ("per element": as many times in the code
of one round as a thread holds scores of a block):
  full-clean      one KV loop has no select or bit test per element: code of full blocks
  partial-bits    the other tests bits: and, setp and selp per element, but no shift per element
  partial-element the other tests the mask per element, by setp and selp
  no-table-load   no KV loop loads from global memory, but for bitmaps of hidden keys, whose code
                  also stores to shared memory
  no-scan         no KV loop has a loop inside that loads from global memory
Exit status: 0 if every check holds, 1 with the reasons if not, 2 for bad input.
"""

import argparse
import collections
import re
import sys

# `local`: stands in braces, where branches stay within.
Instruction = collections.namedtuple("Instruction", "predicate opcode operands local")


# How many reasons of one check are printed.
MOST_REASONS = 4


class PtxError(Exception):
    pass


def statements(text):
    """Yields '{', '}', ('label', name) and statements of one entry's body.

    Inline assembly stands in braces of its own; so do operands, within a statement.
    """
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    position, start = 0, 0
    while position < len(text):
        c = text[position]
        pending = text[start:position].strip()
        if c == "{" and pending:
            # Operands in braces: part of the statement.
            position = text.find("}", position)
            if position < 0:
                raise PtxError("'{' is not closed")
        elif c in "{}":
            yield c
            start = position + 1
        elif c == ";":
            yield pending
            start = position + 1
        elif c == ":" and re.fullmatch(r"[\w$%.]+", pending):
            yield ("label", pending)
            start = position + 1
        position += 1


def parse_instruction(statement, local):
    match = re.fullmatch(r"(?:(@!?%?\w+)\s+)?([\w.:]+)\s*(.*)", statement, flags=re.S)
    if not match:
        raise PtxError("cannot read '%s'" % statement[:60])
    return Instruction(match.group(1), match.group(2), match.group(3), local)


class Block:
    def __init__(self, number, labels):
        self.number, self.labels = number, labels
        self.instructions = []
        self.next = []


def split_blocks(body):
    """Basic blocks of an entry's body, with their successors."""
    blocks = [Block(0, [])]
    depth = 0
    for statement in statements(body):
        if statement in ("{", "}"):
            depth += 1 if statement == "{" else -1
        elif isinstance(statement, tuple):
            # A label in braces is local to inline assembly.
            if depth == 0:
                if blocks[-1].instructions:
                    blocks.append(Block(len(blocks), []))
                blocks[-1].labels.append(statement[1])
        elif statement.startswith("."):
            continue
        else:
            instruction = parse_instruction(statement, depth > 0)
            blocks[-1].instructions.append(instruction)
            if depth == 0 and instruction.opcode.split(".")[0] in ("bra", "brx", "ret", "exit", "trap"):
                blocks.append(Block(len(blocks), []))
    by_label = {label: block for block in blocks for label in block.labels}
    for block, following in zip(blocks, blocks[1:] + [None]):
        last = block.instructions[-1] if block.instructions else None
        kind = last.opcode.split(".")[0] if last and not last.local else ""
        if kind == "brx":
            raise PtxError("indirect branches are not read")
        if kind == "bra":
            target = last.operands.strip()
            if target not in by_label:
                raise PtxError("no label '%s'" % target)
            block.next.append(by_label[target].number)
        ends = kind in ("bra", "ret", "exit", "trap") and not last.predicate
        if not ends and following is not None:
            block.next.append(following.number)
    return blocks


def find_dominators(blocks):
    """Set of dominators of each block that can be reached."""
    before = collections.defaultdict(list)
    order, seen, stack = [], {0}, [(0, iter(blocks[0].next))]
    while stack:
        number, successors = stack[-1]
        following = next(successors, None)
        if following is None:
            order.append(number)
            stack.pop()
            continue
        before[following].append(number)
        if following not in seen:
            seen.add(following)
            stack.append((following, iter(blocks[following].next)))
    order.reverse()
    dominators = {number: set(order) for number in order}
    dominators[0] = {0}
    changed = True
    while changed:
        changed = False
        for number in order[1:]:
            new = set.intersection(*(dominators[b] for b in before[number])) | {number}
            if new != dominators[number]:
                dominators[number] = new
                changed = True
    return dominators, before


class Loop:
    """A natural loop: header, numbers of its blocks, and what dominates its back edges."""

    def __init__(self, header):
        self.header, self.body, self.always = header, {header}, None
        self.inner = []

    def instructions(self, blocks, numbers=None):
        return [i for n in sorted(numbers or self.body) for i in blocks[n].instructions]


def find_loops(blocks):
    dominators, before = find_dominators(blocks)
    loops = {}
    for block in blocks:
        for header in block.next:
            if block.number not in dominators or header not in dominators[block.number]:
                continue
            loop = loops.setdefault(header, Loop(header))
            every = dominators[block.number]
            loop.always = every if loop.always is None else loop.always & every
            stack = [block.number]
            while stack:
                number = stack.pop()
                if number not in loop.body:
                    loop.body.add(number)
                    stack.extend(before[number])
    result = [loops[header] for header in sorted(loops)]
    for loop in result:
        loop.always &= loop.body
        loop.inner = [other for other in result if other is not loop and other.body < loop.body]
    return result


class Entry:
    def __init__(self, name, body):
        self.name = name
        self.blocks = split_blocks(body)
        self.loops = find_loops(self.blocks)

    def kv_loops(self):
        def multiplies(loop):
            return any(i.opcode.startswith("wgmma.mma_async") for i in loop.instructions(self.blocks))

        return [l for l in self.loops if multiplies(l) and not any(multiplies(i) for i in l.inner)]

    def elements(self, loop):
        """Scores that a thread holds: half the columns of the product with K.

        The product with V takes its left factor from registers and its right one transposed.
        """
        for i in loop.instructions(self.blocks):
            shape = re.match(r"wgmma\.mma_async\..*\.m64n(\d+)k", i.opcode)
            if shape and not re.search(r"^\{[^}]*\}\s*,\s*\{.*,\s*1\s*$", i.operands, re.S):
                return int(shape.group(1)) // 2
        raise PtxError("the KV loop at block %d has no product with K" % loop.header)

    def count(self, loop, pattern, numbers=None):
        """How many instructions of `loop`, or of some blocks of it, begin with `pattern`."""
        return sum(bool(re.match(pattern, i.opcode)) for i in loop.instructions(self.blocks, numbers))


def read_entries(text):
    """The entries of a PTX module."""
    entries = []
    for match in re.finditer(r"\.entry\s+([\w$]+)", text):
        begin = text.find("{", text.find(")", match.end()))
        if begin < 0:
            raise PtxError("entry '%s' has no body" % match.group(1))
        depth, end = 0, begin
        for end in range(begin, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                break
        if depth:
            raise PtxError("the body of entry '%s' does not end" % match.group(1))
        entries.append(Entry(match.group(1), text[begin + 1:end]))
    if not entries:
        raise PtxError("no entry")
    return entries


SHOWN = [("wgmma", r"wgmma\.mma_async"), ("ld.global", r"ld\.global"), ("st.shared", r"st\.shared"),
         ("selp", r"selp"), ("setp", r"setp"), ("and", r"and\.b32"), ("or", r"or\.b32"),
         ("shift", r"sh[lr]|shf"), ("ex2", r"ex2"), ("all", r"")]


def describe(entry, loop):
    """One line about a loop."""
    kind = "kv loop" if loop in entry.kv_loops() else "loop"
    counts = ["%s %d" % (name, entry.count(loop, pattern)) for name, pattern in SHOWN]
    return "%s: %s at block %d: %s" % (entry.name, kind, loop.header, ", ".join(counts))


#===------------------------------------------------------------------------===#
# Checks: each gives the reasons why an entry fails it.
#===------------------------------------------------------------------------===#

SHIFT = r"(shl|shr|shf)\."


def has_mask_code(entry, loop):
    """Whether the loop selects or tests bits for each element."""
    selects, tests = entry.count(loop, r"selp\."), entry.count(loop, r"setp\.")
    return max(selects, min(entry.count(loop, r"and\.b32"), tests)) >= entry.elements(loop)


def by_class(entry):
    """KV loops without and with mask code."""
    loops = entry.kv_loops()
    masked = [loop for loop in loops if has_mask_code(entry, loop)]
    return [loop for loop in loops if loop not in masked], masked


def check_full_clean(entry):
    full, masked = by_class(entry)
    if len(full) != 1:
        return ["%d of %d KV loops have no mask code, expected 1" %
                (len(full), len(full) + len(masked))]
    why = []
    # Guards of empty rows, of which a thread has two; comparisons of barriers and lanes besides.
    for name, pattern, most in (("selp", r"selp\.", 4), ("setp", r"setp\.", 16)):
        count = entry.count(full[0], pattern)
        if count > most:
            why.append("the full KV loop has %d %s, expected at most %d" % (count, name, most))
    return why


def check_partial_bits(entry):
    masked = by_class(entry)[1]
    if len(masked) != 1:
        return ["%d KV loops have mask code, expected 1" % len(masked)]
    why, elements = [], entry.elements(masked[0])
    for name, pattern in (("and", r"and\.b32"), ("setp.eq or setp.ne", r"setp\.(eq|ne)\."),
                          ("selp", r"selp\.")):
        count = entry.count(masked[0], pattern)
        if count < elements:
            why.append("the partial KV loop has %d %s, expected one for each of %d elements" %
                       (count, name, elements))
    for name, pattern in (("setp.lt, le, gt or ge", r"setp\.(lt|le|gt|ge|lo|ls|hi|hs)\."),
                          ("shift", SHIFT)):
        count = entry.count(masked[0], pattern)
        if count >= elements:
            why.append("the partial KV loop has %d %s, expected fewer than its %d elements" %
                       (count, name, elements))
    return why


def check_partial_element(entry):
    masked = by_class(entry)[1]
    if len(masked) != 1:
        return ["%d KV loops have mask code, expected 1" % len(masked)]
    elements = entry.elements(masked[0])
    return ["the partial KV loop has %d %s, expected at least %d" % (count, name, elements)
            for name, pattern in (("setp", r"setp\."), ("selp", r"selp\."))
            for count in [entry.count(masked[0], pattern)] if count < elements]


def check_no_table_load(entry):
    why = []
    for loop in entry.kv_loops():
        # Code that hides keys is its own loop or stands in blocks that not every round takes.
        always = entry.count(loop, r"ld\.global", loop.always)
        if always:
            why.append("the KV loop at block %d has %d ld.global in every round" %
                       (loop.header, always))
        sometimes = entry.count(loop, r"ld\.global") - always
        if sometimes and not entry.count(loop, r"st\.shared"):
            why.append("the KV loop at block %d has %d ld.global and hides no keys" %
                       (loop.header, sometimes))
        if sometimes >= entry.elements(loop) // 2:
            why.append("the KV loop at block %d has %d ld.global beside those of every round" %
                       (loop.header, sometimes))
    return why


def check_no_scan(entry):
    return ["the KV loop at block %d has a loop inside with %d ld.global" % (inner.header, count)
            for loop in entry.kv_loops() for inner in loop.inner
            for count in [entry.count(inner, r"ld\.global")]
            if count and not entry.count(inner, r"st\.shared")]


CHECKS = {"full-clean": check_full_clean, "partial-bits": check_partial_bits,
          "partial-element": check_partial_element, "no-table-load": check_no_table_load,
          "no-scan": check_no_scan}


#===------------------------------------------------------------------------===#
# Self-test
#===------------------------------------------------------------------------===#

PIECES = {
    "product": "{ .reg .pred p; W: bra W; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
               "{%f1, %f2}, a, b, p, 1, 1; @p bra W; }",
    "pv": "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f1, %f2}, {%r1, %r2}, b, p, 1, 1;",
    "bits": "and.b32 %r1, %r2, 4; setp.eq.b32 %p1, %r1, 0; selp.f32 %f1, %f2, %f3, %p1;",
    "compare": "setp.lt.s32 %p1, %r1, %r2; selp.f32 %f1, %f2, %f3, %p1;",
    "shift": "shr.u32 %r2, %r2, 1;",
    "load": "ld.global.v2.b32 {%r1, %r2}, [%rd1];",
    "store": "st.shared.b32 [%r1], %r2;",
}


def sample(full, partial, inner="", rare=""):
    """An entry with a loop over two KV loops; `inner` stands in a loop and `rare` behind a branch of the
    partial one. Pieces by name, four times each where "4" stands in front."""

    def code(names):
        return "\n".join(PIECES[n.lstrip("4")] * (4 if n.startswith("4") else 1) for n in names.split())

    nested = "$I:\n%s\n@%%p4 bra $I;\n" % code(inner) if inner else ""
    behind = "@%%p5 bra $S;\n%s\n$S:\n" % code(rare) if rare else ""
    return (".visible .entry f(\n.param .b64 f_param_0\n)\n{\n.reg .b32 %%r<9>;\n$O:\n@%%p6 bra $P;\n"
            "$F: // full\n%s\n@%%p2 bra $F;\nbra.uni $E;\n$P:\n%s\n%s%s@%%p3 bra $P;\n$E:\n"
            "ld.global.b32 %%r1, [%%rd1];\n@!%%p7 bra $O;\nret;\n}\n"
            % (code(full), code(partial), nested, behind))


def self_test():
    clean, bits = "pv product", "pv product 4bits"
    # (PTX, check, whether it holds)
    cases = [
        (sample(clean, bits), "full-clean", True),
        (sample(bits, bits), "full-clean", False),
        (sample(clean, clean), "full-clean", False),
        (sample(clean + " bits bits", bits), "full-clean", True),
        (sample(clean, bits), "partial-bits", True),
        (sample(clean, bits + " shift shift shift"), "partial-bits", True),
        (sample(clean, bits + " 4shift"), "partial-bits", False),
        (sample(clean, "pv product 4compare"), "partial-bits", False),
        (sample(clean, clean), "partial-bits", False),
        (sample(clean, "pv product 4compare"), "partial-element", True),
        (sample(clean, clean), "partial-element", False),
        (sample(clean, bits), "no-table-load", True),
        (sample(clean, bits + " load"), "no-table-load", False),
        (sample(clean + " load", bits), "no-table-load", False),
        (sample(clean, bits, rare="load"), "no-table-load", False),
        (sample(clean, bits, rare="load store"), "no-table-load", True),
        (sample(clean, bits, rare="4load store"), "no-table-load", False),
        (sample(clean, bits), "no-scan", True),
        (sample(clean, bits, inner="load"), "no-scan", False),
        (sample(clean, bits, inner="load store"), "no-scan", True),
        (sample(clean, bits, inner="shift"), "no-scan", True),
    ]
    wrong = 0
    for number, (ptx, check, holds) in enumerate(cases):
        why = [w for entry in read_entries(ptx) for w in CHECKS[check](entry)]
        if (not why) != holds:
            wrong += 1
            print("self-test %d: %s is expected %s, got %s" %
                  (number, check, "to hold" if holds else "not to hold", why))
    entry = read_entries(sample(clean, bits))[0]
    if [len(entry.loops), len(entry.kv_loops())] != [3, 2]:
        wrong += 1
        print("self-test: expected 3 loops, 2 of them KV loops; got %d and %d" %
              (len(entry.loops), len(entry.kv_loops())))
    for text in ("", ".entry f() {", ".entry f() { bra $N; }", ".entry f() { brx.idx %r1, t; }"):
        try:
            read_entries(text)
            wrong += 1
            print("self-test: '%s' is read" % text)
        except PtxError:
            pass
    print("self-test: %d wrong" % wrong)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default="-")
    parser.add_argument("--check", action="append", default=[], choices=sorted(CHECKS))
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    try:
        if arguments.file == "-":
            text = sys.stdin.read()
        else:
            with open(arguments.file) as file:
                text = file.read()
        entries = read_entries(text)
    except (OSError, PtxError) as error:
        print("ptx_loops.py: %s" % error, file=sys.stderr)
        return 2
    status = 0
    for entry in entries:
        if not arguments.check:
            for loop in entry.loops:
                print(describe(entry, loop))
        for check in arguments.check:
            try:
                reasons = CHECKS[check](entry)
            except PtxError as error:
                reasons = [str(error)]
            for why in reasons[:MOST_REASONS]:
                print("%s: %s: %s" % (entry.name, check, why))
            if len(reasons) > MOST_REASONS:
                print("%s: %s: %d more" % (entry.name, check, len(reasons) - MOST_REASONS))
            status |= bool(reasons)
    return status


if __name__ == "__main__":
    sys.exit(main())
