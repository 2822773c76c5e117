#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""faults.py on a small text: the places it finds, what it writes there, and which edits change nothing."""

import sys

import faults

FENCES = """.version 8.6
{
	.reg .b32 %r<9>;
	mov.b32 	%r1, 1;
	// begin inline asm
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r2, %r3}, %rd1, %rd2, p, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	// end inline asm
	// begin inline asm
	{
.reg .pred P;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 P, [%r7], %r8;
@P bra DONE;
bra WAIT;
DONE:
}
	// end inline asm
	// begin inline asm
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r4, %r5}, %rd1, %rd2, p, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	// end inline asm
	// begin inline asm
	wgmma.wait_group.sync.aligned 0;
	// end inline asm
	mov.b32 	%r6, %r2;
	bar.sync 	1, 128;
	bra.uni 	$L1;
$L1:
	ret;
}
"""
FENCE = "wgmma.fence.sync.aligned;"


def main():
    failures = []

    def expect(what, got, wanted):
        if got != wanted:
            failures.append("%s: expected %r, got %r" % (what, wanted, got))

    def reasons(kind, text):
        return [bool(f.equivalent) for f in kind(faults.Text(text))]

    # The second fence orders nothing that the first does not.
    expect("two fences", reasons(faults.drop_fence, FENCES), [False, True])
    second = FENCES.replace("\t// begin inline asm\n\t{\n", "\tmov.b32 \t%r5, %r1;\n\t// begin inline asm\n\t{\n")
    expect("a register in between", reasons(faults.drop_fence, second), [False, False])
    label = FENCES.replace("\t// begin inline asm\n\t{\n", "$L0:\n\t// begin inline asm\n\t{\n")
    expect("a label in between", reasons(faults.drop_fence, label), [False, False])
    # A wait again, with and without a product in between.
    wait = "\t// begin inline asm\n\twgmma.wait_group.sync.aligned 0;\n\t// end inline asm\n"
    waits = [f.equivalent for f in faults.drop_wait(faults.Text(FENCES.replace(wait, wait + wait)))
             if "wait_group" in f.what]
    expect("two waits", [bool(w) for w in waits], [False, True])
    one = FENCES.replace(wait, wait.replace(" 0;", " 1;") + wait)
    expect("a wait for fewer", [bool(f.equivalent) for f in faults.drop_wait(faults.Text(one))
                                if "wait_group" in f.what], [False, False])
    bars = FENCES.replace("\tbar.sync \t1, 128;\n", 2 * "\tbar.sync \t1, 128;\n")
    expect("two barriers", [bool(f.equivalent) for f in faults.drop_wait(faults.Text(bars))
                            if "bar.sync" in f.what], [False, True])

    # Entries: the producer's, the queue's, those past the queue's, a row of the queue that is none.
    producer = """	mul.wide.s32 	%rd1, %r1, 16;
	ld.global.nc.v4.b32 	{%r2, %r3, %r4, %r5}, [%rd1];
	add.s32 	%r6, %r2, %r3;
"""
    queue = """	shl.b32 	%r7, %r1, 4;
	ld.shared.v4.b32 {%r12, %r13, %r14, %r15}, [%r7+64];
	add.s32 	%r6, %r12, %r13;
"""
    past = producer.replace("{%r2, %r3, %r4, %r5}", "{%r12, %r13, %r24, %r25}")
    row = queue.split("\n", 1)[1].replace("{%r12, %r13, %r14, %r15}", "{%r22, %r23, %r24, %r25}")
    for name, text, wanted in (("producer", producer, 4), ("queue", queue, 4), ("past the queue", queue + past, 4),
                               ("a row", row, 0)):
        expect("entries, " + name, len(list(faults.segment_bound(faults.Text("{\n" + text)))), wanted)

    # What is written.
    kinds = {kind.__name__: [f.text for f in kind(faults.Text(FENCES))] for kind in faults.KINDS}
    expect("commits", kinds["drop_commit"][0].count("commit_group"), 1)
    expect("a wait gone", "try_wait" in kinds["drop_wait"][0], False)
    expect("a phase", "xor.b32 \t%fault, %r8, 1;" in kinds["swap_phase"][0]
           and "[%r7], %fault;" in kinds["swap_phase"][0], True)
    early = kinds["accumulator_early"]
    expect("one group less", "wait_group.sync.aligned 1;" in early[0], True)
    nothing = [name for name in ("wrong_tx", "drop_arrive", "mask_bit", "segment_bound") if kinds[name]]
    expect("places that are none", nothing, [])
    expect("needed", "ld.local.b32 %fold, [%fplace];" in next(
        f.needed for f in faults.drop_wait(faults.Text(FENCES)) if f.needed), True)

    for failure in failures:
        print(failure)
    print("faults self-test: %d failed" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
