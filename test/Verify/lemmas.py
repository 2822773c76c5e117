#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts that hand-written code rests on and that no pass check covers, asked of z3. Each has a wrong twin that
must have a counterexample: a lemma that cannot fail says nothing.

usage: lemmas.py
"""

import shutil
import subprocess
import sys
import time

LEMMAS = []


def lemma(name, declarations, claim, wrong):
    """`claim` holds for all values; `wrong`, a claim or (declarations, claim), does not."""
    LEMMAS.append((name, declarations, claim, "unsat"))
    other, twin = wrong if isinstance(wrong, tuple) else (declarations, wrong)
    LEMMAS.append((name + ", wrong twin", other, twin, "sat"))


# ---- Query ranges (lib/Runtime/Builders/QueryRanges.cpp) ----------------------------------------------------
# Ranges sorted by start; `first` is the first one that ends at q or later and has started, `last` one with the
# largest end among those that have started. The row is [start(first), end(last)].
SORTED = """
(declare-fun s (Int) Int) (declare-fun e (Int) Int)
(declare-const n Int) (declare-const q Int) (declare-const k Int)
(declare-const first Int) (declare-const last Int)
(define-fun holds ((r Int) (x Int)) Bool (and (<= (s r) x) (<= x (e r))))
(assert (forall ((i Int) (j Int)) (! (=> (and (<= 0 i) (< i j) (< j n)) (<= (s i) (s j))) :pattern ((s i) (s j)))))
(assert (and (<= 0 first) (< first n) (<= (s first) q) (<= q (e first))))
(assert (forall ((i Int)) (! (=> (and (<= 0 i) (< i first)) (< (e i) q)) :pattern ((e i)))))
(assert (and (<= 0 last) (< last n) (<= (s last) q)))
"""
LARGEST = "(assert (forall ((i Int)) (! (=> (and (<= 0 i) (< i n) (<= (s i) q)) (<= (e i) (e last))) :pattern ((e i)))))\n"
SCAN = "(exists ((r Int)) (and (<= 0 r) (< r n) (holds r q) (holds r k)))"
lemma("row of sorted ranges", SORTED + LARGEST, "(= %s (and (<= (s first) k) (<= k (e last))))" % SCAN,
      "(= %s (and (<= (s first) k) (<= k (e first))))" % SCAN)

# One more range keeps a running hull the union of all ranges that hold q.
FOLD = """
(declare-const lo Int) (declare-const hi Int) (declare-const s Int) (declare-const e Int)
(declare-const q Int) (declare-const k Int)
(define-const none Bool (and (= lo (- 1)) (= hi (- 1))))
(define-const kept Bool (and (not none) (<= lo k) (<= k hi)))
(assert (or none (and (<= 0 lo) (<= lo q) (<= q hi))))
(assert (and (<= %s s) (< s e)))
(define-const takes Bool (and (<= s q) (<= q e)))
(define-const nlo Int (ite takes (ite (= lo (- 1)) s (ite (< s lo) s lo)) lo))
(define-const nhi Int (ite takes (ite (< hi e) e hi) hi))
(define-const nkept Bool (and (not (and (= nlo (- 1)) (= nhi (- 1)))) (<= nlo k) (<= k nhi)))
"""
FOLDED = "(= nkept (or kept (and takes (<= s k) (<= k e))))"
# With negative starts a start of -1 looks like "nothing yet".
NEGATIVE = FOLD.replace("(<= 0 lo)", "true") % "(- 1)"
lemma("fold of one range", FOLD % "0", FOLDED, (NEGATIVE, FOLDED))

# ---- 32-bit arithmetic as wrapped integers (lib/Verify/Encoder.cpp) -----------------------------------------
# The wrapped value lies in the type and differs by a multiple of its span: there is only one such number.
WRAP = """
(declare-const x Int) (declare-const y Int)
(define-const span Int 4294967296) (define-const low Int (- 2147483648)) (define-const high Int 2147483647)
(assert (and (<= low x) (<= x high) (<= low y) (<= y high)))
(define-fun wrap ((v Int)) Int (ite (< high v) (- v span) (ite (< v low) (+ v span) v)))
(define-fun turned ((v Int)) Int (+ (mod (- v low) span) low))
(define-fun is ((wrapped Int) (exact Int)) Bool
  (and (<= low wrapped) (<= wrapped high) (= (mod (- exact wrapped) span) 0)))
"""
lemma("wrapped sum", WRAP, "(is (wrap (+ x y)) (+ x y))", "(is (+ x y) (+ x y))")
lemma("wrapped difference", WRAP, "(is (wrap (- x y)) (- x y))", "(is (wrap (- (- x y) 1 span)) (- x y))")
lemma("wrapped product", WRAP, "(is (turned (* 77 x)) (* 77 x))", "(is (wrap (* 77 x)) (* 77 x))")

# ---- Bits of a row's columns (lib/Conversion/TileToNvvm/Fragments.cpp) --------------------------------------
# A thread holds columns f, f + 1, f + 8, f + 9, ... with f = 0, 2, 4 or 6; element i is column
# f + 8 (i / 2) + i % 2. Bit i of the word that starts at element `at` says lo <= column < hi.
BITS = """
(define-fun smin ((a (_ BitVec 32)) (b (_ BitVec 32))) (_ BitVec 32) (ite (bvslt a b) a b))
(define-fun smax ((a (_ BitVec 32)) (b (_ BitVec 32))) (_ BitVec 32) (ite (bvslt a b) b a))
(declare-const lo (_ BitVec 32)) (declare-const hi (_ BitVec 32)) (declare-const f (_ BitVec 32))
(declare-const i (_ BitVec 32)) (declare-const at (_ BitVec 32)) (declare-const columns (_ BitVec 32))
(assert (or (= f #x00000000) (= f #x00000002) (= f #x00000004) (= f #x00000006)))
(assert (or (= at #x00000000) (= at #x00000020)))
(assert (and (bvult columns #x00000101) (= (bvand columns #x00000007) #x00000000)))
(assert (and (bvule at i) (bvult i (bvadd at #x00000020)) (bvult (bvmul i #x00000004) columns)))
(define-fun below ((limit (_ BitVec 32))) (_ BitVec 32)
  (let ((c (smax (bvsub (smin (smax limit #x00000000) columns) f) #x00000000)))
    (bvadd (bvand (bvlshr c #x00000002) #xfffffffe) (smin (bvand c #x00000007) #x00000002))))
(define-const right (_ BitVec 32) (bvlshr #xffffffff (smax (bvsub (bvadd at #x00000020) (below hi)) #x00000000)))
(define-const left (_ BitVec 32) (bvshl #xffffffff (smax (bvsub (below lo) at) #x00000000)))
(define-const bit Bool (not (= (bvand (bvand left right) (bvshl #x00000001 (bvsub i at))) #x00000000)))
(define-const column (_ BitVec 32)
  (bvadd f (bvadd (bvmul #x00000008 (bvlshr i #x00000001)) (bvand i #x00000001))))
"""
INSIDE = "(= bit (and (bvsle lo column) (bvslt column hi)))"
# Shifts that count modulo 32, as some machines do.
MODULO = BITS.replace("(define-const right (_ BitVec 32) (bvlshr #xffffffff (",
                      "(define-const right (_ BitVec 32) (bvlshr #xffffffff (bvand #x0000001f (").replace(
    "(below hi)) #x00000000)))", "(below hi)) #x00000000))))")
lemma("bits of a row", BITS, INSIDE, (MODULO, INSIDE))

# ---- Addresses ----------------------------------------------------------------------------------------------
# Byte of an element in a paged cache: pages and strides as far as tensors of 2^47 bytes go.
ADDRESS = """
(declare-const page Int) (declare-const slot Int) (declare-const head Int) (declare-const stride Int)
(declare-const row Int) (declare-const column Int)
(assert (and (<= 0 page) (< page %s) (<= 0 stride) (<= stride 4294967296)))
(assert (and (<= 0 slot) (< slot 1073741824) (<= 0 row) (<= row 16777216)))
(assert (and (<= 0 head) (< head 1048576) (<= 0 column) (< column 1048576)))
(define-const byte Int (* 4 (+ (* page stride) (* slot row) (* head 1048576) column)))
"""
lemma("64-bit addresses", ADDRESS % "268435456", "(and (<= 0 byte) (< byte 9223372036854775808))",
      "(< byte 4294967296)")

# ---- Clipping -----------------------------------------------------------------------------------------------
CLIP = """
(declare-const lo Int) (declare-const hi Int) (declare-const len Int) (declare-const begin Int)
(declare-const end Int) (declare-const k Int) (declare-const at Int)
(define-fun smin ((a Int) (b Int)) Int (ite (< a b) a b))
(define-fun smax ((a Int) (b Int)) Int (ite (< a b) b a))
(assert (and (<= 0 begin) (<= begin end) (<= end len)))
"""
lemma("clip to the keys of a launch", CLIP,
      "(= (and (<= lo k) (< k hi) (<= begin k) (< k end)) (and (<= (smax lo begin) k) (< k (smin hi end))))",
      "(= (and (<= lo k) (< k hi) (<= begin k) (< k end)) (and (<= (smax lo begin) k) (< k (smin hi len))))")
lemma("chunks of 32 columns", CLIP + "(assert (and (<= at k) (< k (+ at 32))))",
      "(= (and (<= lo k) (< k hi)) (and (<= (smax (- lo at) 0) (- k at)) (< (- k at) (smin (- hi at) 32))))",
      "(= (and (<= lo k) (< k hi)) (and (<= (smax (- lo at) 0) (- k at)) (< (- k at) (smin (- hi at) 31))))")

# ---- Tiles --------------------------------------------------------------------------------------------------
# Rows r of a tile keep [lo r, hi r). Keys outside [min lo, max hi) are kept by none; keys in [max lo, min hi)
# by all, if rows that keep nothing take part with the empty interval (2^30, -2^30).
TILE = """
(declare-fun lo (Int) Int) (declare-fun hi (Int) Int)
(declare-const n Int) (declare-const r Int) (declare-const k Int)
(declare-const from Int) (declare-const to Int) (declare-const full_from Int) (declare-const full_to Int)
(define-fun empty ((x Int)) Bool (and (= (lo x) 1073741824) (= (hi x) (- 1073741824))))
(assert (and (<= 0 r) (< r n)))
(assert (forall ((x Int)) (! (=> (and (<= 0 x) (< x n)) (and (<= from (lo x)) (<= (hi x) to))) :pattern ((lo x)))))
(assert (forall ((x Int)) (! (=> (and (<= 0 x) (< x n) %s) (and (<= (lo x) full_from) (<= full_to (hi x))))
  :pattern ((lo x)))))
(define-const kept Bool (and (<= (lo r) k) (< k (hi r))))
"""
ALL, NONEMPTY = TILE % "true", TILE % "(not (empty x))"
lemma("tiles to skip", ALL, "(=> kept (and (<= from k) (< k to)))", "(=> (and (<= from k) (< k to)) kept)")
lemma("full tiles", ALL, "(=> (and (<= full_from k) (< k full_to)) kept)",
      (NONEMPTY, "(=> (and (<= full_from k) (< k full_to)) kept)"))


def main():
    z3 = shutil.which("z3")
    if not z3:
        sys.exit("error: z3 is not in PATH, install package z3")
    failures = 0
    for name, declarations, claim, wanted in LEMMAS:
        start = time.time()
        text = declarations + "(check-sat)\n(assert (not %s))\n(check-sat)\n" % claim
        if "forall" in declarations:
            # Whether quantified assumptions can hold is asked by the wrong twin, which has a model.
            text = declarations + "(assert (not %s))\n(check-sat)\n" % claim
            expected = [wanted]
        else:
            expected = ["sat", wanted]
        done = subprocess.run([z3, "-in", "-T:60"], input=text, stdout=subprocess.PIPE, universal_newlines=True)
        got = done.stdout.split()
        fine = got == expected and done.returncode == 0
        print("%-32s %5.0f ms %s" % (name, 1000 * (time.time() - start), "ok" if fine else "failed"))
        if not fine:
            failures += 1
            print("error: %s: expected %s, got %s" % (name, expected, done.stdout[:300]))
    print("%d questions, %d failed" % (len(LEMMAS), failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
