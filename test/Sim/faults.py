# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults for PTX as our compiler writes it: where each kind can be put, and when it changes nothing.

A Fault is one edit of the text. Its `equivalent` is empty, or the reason why no run can tell the two
texts apart; the reason comes from a rule over the text, written beside the kind, and mutants.py takes it
for a mistake if a run does tell them apart.

Two more texts decide about a fault that no run has shown. `reached` makes a report where the fault is, so
a run that shows nothing of it does not come there. `needed`, of a wait, makes a report if the warp waits
there for a phase that it has not waited for already: a wait that is never needed may go.
"""

import re


class Fault:
    def __init__(self, kind, line, what, text, reached, equivalent="", needed=None):
        self.kind, self.line, self.what, self.text = kind, line, what, text
        self.reached, self.equivalent, self.needed = reached, equivalent, needed


BEGIN, END = "// begin inline asm", "// end inline asm"
REGISTERS = re.compile(r"%[a-z]+\d+\b")
ADDRESS = r"\[(%r\d+)(?:\+(\d+))?\]"  # register and constant


class Text:
    """PTX by lines, numbered from 0; an inline piece keeps its lines together."""

    def __init__(self, ptx):
        self.lines = ptx.split("\n")
        self.pieces = []  # (first line, last line) with the markers
        start = None
        for i, line in enumerate(self.lines):
            if line.strip() == BEGIN:
                start = i
            elif line.strip() == END:
                self.pieces.append((start, i))

    def find(self, pattern):
        """Lines that match, with their matches."""
        for i, line in enumerate(self.lines):
            match = re.search(pattern, line)
            if match and not line.lstrip().startswith("//"):
                yield i, match

    def piece(self, i):
        """The inline piece around line i."""
        for first, last in self.pieces:
            if first <= i <= last:
                return first, last
        raise ValueError("line %d is in no inline piece" % (i + 1))

    def edited(self, changes, fresh=""):
        """The text with {line: text or None} replaced and fresh registers declared."""
        lines = [changes.get(i, line) for i, line in enumerate(self.lines)]
        if fresh:
            lines[self.lines.index("{")] = "{\n" + fresh
        return "\n".join(line for line in lines if line is not None)

    # Loops of inline pieces have one way in and one out, so they do not end straight code.
    def before(self, i):
        """Lines before i in the same straight piece of code, nearest first."""
        for j in range(i - 1, -1, -1):
            line = self.lines[j].strip()
            if re.match(r"\$\w+:$", line) or re.match(r"(@!?%p\d+\s+)?bra(\.uni)?\s+\$", line):
                return
            if line and not line.startswith("//"):
                yield j

    def after(self, i):
        for j in range(i + 1, len(self.lines)):
            line = self.lines[j].strip()
            if re.match(r"\$\w+:$", line) or re.match(r"(@!?%p\d+\s+)?(ret|bra(\.uni)?\s+\$)", line):
                return
            if line and not line.startswith("//"):
                yield j

    def fault(self, kind, i, what, text, equivalent="", needed=None):
        first = i
        for a, b in self.pieces:
            if a <= i <= b:
                first = a
        changes = {first: "\n".join(TRAP[:2]) + "\n" + self.lines[first]}
        guard = "@P " if self.lines[i].strip().startswith("@P ") else ""
        changes[i] = guard + TRAP[2] + "\n" + changes.get(i, self.lines[i])
        if first == i:
            changes[i] = "\n".join(TRAP) + "\n" + self.lines[i]
        reached = self.edited(changes, TRAP_REGISTERS)
        return Fault(kind, i, what, text, reached, equivalent, needed)

    def needed(self, i):
        """A report if the wait at line i is the warp's first for its phase.

        The last parity that each thread waited for, by barrier, is kept in local memory. Since no
        warp misses a phase, the same parity again is the same phase.
        """
        changes = {}
        for j, match in self.find(r"mbarrier\.try_wait\.parity\S* P, " + ADDRESS + r", (%r\d+);"):
            first, last = self.piece(j)
            address = ["mov.b64 %fseen, fault_seen;", "add.s32 %fword, {0}, {2};",
                       "shr.u32 %fword, %fword, 1;",
                       "and.b32 %fword, %fword, 252;", "cvt.u64.u32 %fplace, %fword;",
                       "add.s64 %fplace, %fplace, %fseen;", "add.s32 %fword, {1}, 1;"]
            if j == i:
                extra = ["ld.local.b32 %fold, [%fplace];", "setp.ne.b32 %fnew, %fold, %fword;",
                         "mov.b64 %fnull, 0;", "@%fnew st.global.b32 [%fnull], %fword;"]
                at, place = first, "{2}\n{3}"
            else:
                extra = ["st.local.b32 [%fplace], %fword;"]
                at, place = last, "{3}\n{2}"
            code = "\n".join(address + extra).format(match.group(1), match.group(3), match.group(2) or 0)
            changes[at] = place.format("", "", code, self.lines[at])
        start = "\n".join(["mov.b64 %fseen, fault_seen;", "mov.b32 %fold, 0;"] +
                          ["st.local.b32 [%%fseen+%d], %%fold;" % (4 * k) for k in range(64)])
        body = next(j for j, line in enumerate(self.lines) if line.startswith("\tmov."))
        changes[body] = start + "\n" + self.lines[body]
        return self.edited(changes, NEEDED_REGISTERS)


TRAP_REGISTERS = ".reg .b64 %fnull; .reg .b32 %fword;"
TRAP = ("mov.b64 %fnull, 0;", "mov.b32 %fword, 0;", "st.global.b32 [%fnull], %fword;")
NEEDED_REGISTERS = (".reg .b64 %fnull, %fseen, %fplace; .reg .b32 %fword, %fold; .reg .pred %fnew;\n"
                    ".local .align 4 .b32 fault_seen[64];")


def stripped(text, i):
    return text.lines[i].strip()


def products_after(text, i):
    """Sums and A registers of the products up to the next commit."""
    used = set()
    for j in text.after(i):
        if "wgmma.mma_async" in text.lines[j]:
            used |= set(REGISTERS.findall(" ".join(re.findall(r"\{[^}]*\}", text.lines[j]))))
        elif "wgmma.commit_group" in text.lines[j] or "wgmma.fence" in text.lines[j]:
            break
    return used


#===----------------------------------------------------------------------===#
# When an edit changes nothing
#===----------------------------------------------------------------------===#


def repeated_wait_group(text, i):
    """Another wait for products just before, and none issued since."""
    for j in text.before(i):
        if "wgmma.wait_group" in text.lines[j]:
            if int(re.search(r"(\d+);", text.lines[j]).group(1)) == 0:
                return "line %d waits for every product, and none is issued in between" % (j + 1)
            return ""
        if "wgmma." in text.lines[j]:
            return ""
    return ""


def repeated_fence(text, i):
    """The same fence before, and nothing in between that it orders."""
    mnemonic = stripped(text, i)
    used = products_after(text, i) if mnemonic.startswith("wgmma.fence") else set()
    for j in text.before(i):
        line = stripped(text, j)
        if line == mnemonic:
            return "line %d is the same fence, and nothing in between is ordered by it" % (j + 1)
        if mnemonic.startswith("wgmma.fence"):
            if used & set(REGISTERS.findall(line)):
                return ""
        elif re.search(r"\b(st|ld|atom|red|cp|mbarrier|bar|wgmma|stmatrix|ldmatrix)\b", line):
            return ""
    return ""


def repeated_barrier(text, i):
    """The same barrier before, and no access to memory in between."""
    for j in text.before(i):
        line = stripped(text, j)
        if line == stripped(text, i):
            return "line %d is the same barrier, and nothing in between touches memory" % (j + 1)
        if re.search(r"\b(st|ld|atom|red|cp|mbarrier|bar|wgmma|fence|stmatrix|ldmatrix)\b", line):
            return ""
    return ""


def unread(text, i, register):
    """A value that no other instruction reads."""
    for j, line in enumerate(text.lines):
        if j != i and register in REGISTERS.findall(line):
            return ""
    return "nothing reads %s" % register


#===----------------------------------------------------------------------===#
# Kinds
#===----------------------------------------------------------------------===#


def drop_wait(text):
    for i, match in text.find(r"mbarrier\.try_wait"):
        first, last = text.piece(i)
        yield text.fault("drop a wait", i, "no " + match.group(0),
                         text.edited({j: None for j in range(first, last + 1)}), "",
                         text.needed(i))
    for i, match in text.find(r"wgmma\.wait_group.*"):
        yield text.fault("drop a wait", i, "no " + match.group(0), text.edited({i: None}),
                    repeated_wait_group(text, i))
    for i, match in text.find(r"@P cp\.async\.bulk\.wait_group.*"):
        yield text.fault("drop a wait", i, "no " + match.group(0), text.edited({i: None}))
    for i, match in text.find(r"^\s*bar\.sync.*"):
        yield text.fault("drop a wait", i, "no " + match.group(0).strip(), text.edited({i: None}),
                    repeated_barrier(text, i))


def drop_fence(text):
    for i, match in text.find(r"^\s*(wgmma\.fence|fence\.).*"):
        yield text.fault("drop a fence", i, "no " + match.group(0).strip(), text.edited({i: None}),
                    repeated_fence(text, i))


def drop_commit(text):
    for i, match in text.find(r"^\s*(@P )?(wgmma|cp\.async(\.bulk)?)\.commit_group.*"):
        yield text.fault("drop a commit", i, "no " + match.group(0).strip(), text.edited({i: None}))


def drop_arrive(text):
    for i, match in text.find(r"mbarrier\.arrive.*"):
        yield text.fault("drop an arrive", i, "no " + match.group(0), text.edited({i: None}))


def swap_phase(text):
    for i, match in text.find(r"(mbarrier\.try_wait\.parity.*\], )(%r\d+);"):
        first, _ = text.piece(i)
        changes = {first: "\txor.b32 \t%%fault, %s, 1;\n%s" % (match.group(2), text.lines[first]),
                   i: match.group(1) + "%fault;"}
        yield text.fault("swap a phase", i, "the other parity", text.edited(changes, ".reg .b32 %fault;"))


def wrong_tx(text):
    for i, match in text.find(r"(.*mbarrier\.arrive\.expect_tx.*\], )(%r\d+);"):
        first, _ = text.piece(i)
        for change in (-16, 16, -1024, 1024):
            changes = {first: "\tadd.s32 \t%%fault, %s, %d;\n%s" % (match.group(2), change,
                                                                    text.lines[first]),
                       i: match.group(1) + "%fault;"}
            yield text.fault("wrong tx count", i, "%+d bytes" % change,
                             text.edited(changes, ".reg .b32 %fault;"))


def wrong_swizzle(text):
    names = {0: "none", 1: "128 bytes", 2: "64 bytes", 3: "32 bytes"}
    for i, match in text.find(r"(or\.b64 \s*%rd\d+, %rd\d+, )(\d{19});"):
        value = int(match.group(2))
        if value >> 62 != 1:
            continue
        for mode in (0, 2, 3):
            changed = value & ~(3 << 62) | mode << 62
            line = text.lines[i].replace(match.group(2), "0x%X" % changed)
            yield text.fault("wrong swizzle", i, "%s instead of 128 bytes" % names[mode],
                        text.edited({i: line}))


def slot_early(text):
    # The slot is given back before its products are complete.
    for i, _ in text.find(r"@P mbarrier\.arrive\.shared"):
        first, last = text.piece(i)
        waits = [j for j in text.before(first) if "wgmma.wait_group" in text.lines[j]]
        if waits:
            at = text.piece(waits[0])[0]
            address = re.search(ADDRESS, text.lines[i]).group(1)
            moved = [j for j in range(at, first)
                     if re.match(r"\s*add\.s32 \s*%s," % address, text.lines[j])]
            block = [text.lines[j] for j in moved + list(range(first, last + 1))]
            changes = {j: None for j in moved + list(range(first, last + 1))}
            changes[at] = "\n".join(block) + "\n" + text.lines[at]
            yield text.fault("slot reused early", i, "given back before line %d waits" % (waits[0] + 1),
                        text.edited(changes))
    # Or before every warp has given it back.
    for i, match in text.find(r"(mbarrier\.init\.\S+ \[%r\d+(?:\+\d+)?\], )(%r\d+);"):
        first, _ = text.piece(i)
        value = [text.lines[j] for j in text.before(first)
                 if re.match(r"\s*mov\.b32 \s*%s, \d+;" % match.group(2), text.lines[j])]
        if not value or int(re.search(r", (\d+);", value[0]).group(1)) < 2:
            continue
        changes = {first: "\tadd.s32 \t%%fault, %s, -1;\n%s" % (match.group(2), text.lines[first]),
                   i: match.group(1) + "%fault;"}
        yield text.fault("slot reused early", i, "one arrival less",
                    text.edited(changes, ".reg .b32 %fault;"))


def accumulator_early(text):
    for i, match in text.find(r"(wgmma\.wait_group\S* )(\d+);"):
        groups = int(match.group(2))
        yield text.fault("accumulator read early", i, "one group less is waited for",
                    text.edited({i: match.group(1) + "%d;" % (groups + 1)}),
                    repeated_wait_group(text, i))
        # The wait behind the first instruction that uses a sum.
        first, last = text.piece(i)
        sums = set()
        for j in range(i, -1, -1):
            if "wgmma.mma_async" in text.lines[j]:
                sums = set(REGISTERS.findall(text.lines[j].split("}")[0]))
                break
        for j in text.after(last):
            if sums & set(REGISTERS.findall(text.lines[j])):
                target = j
                for a, b in text.pieces:
                    if a <= j <= b:
                        target = b
                changes = {k: None for k in range(first, last + 1)}
                changes[target] = "\n".join([text.lines[target]] + text.lines[first:last + 1])
                yield text.fault("accumulator read early", i, "waited for after line %d" % (j + 1),
                            text.edited(changes))
                break


def mask_bit(text):
    # A bit of a row's mask word, which then decides about an element.
    for i, match in text.find(r"^\s*and\.b32 \s*(%r\d+), (%r\d+), (\d+);"):
        value = int(match.group(3))
        following = " ".join(stripped(text, j) for j in range(i + 1, min(i + 3, len(text.lines))))
        if value & (value - 1) or not value or not re.search(
                r"setp\.(eq|ne)\.b32 \s*%%p\d+, %s, 0;.*selp\.f32.*0fFF800000" % match.group(1),
                following):
            continue
        for changed in ({value * 2, value // 2} - {0, 1 << 31, 1 << 32}):
            line = text.lines[i].replace(" %d;" % value, " %d;" % changed)
            yield text.fault("off-by-one mask bit", i, "bit %d instead of %d" % (
                changed.bit_length() - 1, value.bit_length() - 1), text.edited({i: line}))
    # The number of bits of a mask word.
    for i, match in text.find(r"^\s*sh[lr]\.[ub]32 (%r\d+), %r\d+, (%r\d+);"):
        try:
            first, _ = text.piece(i)
        except ValueError:
            continue
        for change in (-1, 1):
            changes = {
                first: "\tadd.s32 \t%%fault, %s, %d;\n\tmax.s32 \t%%fault, %%fault, 0;\n%s" % (
                    match.group(2), change, text.lines[first]),
                i: text.lines[i].replace(match.group(2) + ";", "%fault;")}
            yield text.fault("off-by-one mask bit", i, "%+d bits in %s" % (change, match.group(1)),
                        text.edited(changes, ".reg .b32 %fault;"))


def segment_bound(text):
    # A TileEntry: first key, number of blocks, classes, bitmap. The producer reads it from global
    # memory, loader and row groups from the queue; those past the queue's are few kernels' and left out.
    for i, match in text.find(r"ld\.(global\.nc|shared)\.v4\.b32 \s*\{(%r\d+), (%r\d+), (%r\d+), %r\d+\}, \["):
        scaled = r"shl\.b32 \s*%r\d+, %r\d+, 4;" if match.group(1) == "shared" else (
            r"mul\.wide\.[su]32 \s*%rd\d+, %r\d+, 16;")
        near = [stripped(text, j) for j in range(max(0, i - 12), i)]
        if not any(re.match(scaled, line) for line in near):
            continue
        read = r"ld\.shared\.v4\.b32 \{%s, %s, " % match.group(2, 3)
        if match.group(1) != "shared" and any(text.find(read)):
            continue
        for number, name in ((2, "first key"), (3, "number of blocks")):
            register = match.group(number)
            for change in (-1, 1):
                yield text.fault("off-by-one segment bound", i, "%s %+d" % (name, change),
                            text.edited({i: text.lines[i] + "\n\tadd.s32 \t%s, %s, %d;" % (
                                register, register, change)}), unread(text, i, register))


KINDS = (drop_wait, drop_fence, drop_commit, drop_arrive, swap_phase, wrong_tx, wrong_swizzle,
         slot_early, accumulator_early, mask_bit, segment_bound)
