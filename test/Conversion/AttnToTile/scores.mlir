// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How scores reach the softmax: what is done to each element, and which kernels have a running maximum.
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile | FileCheck %s

// The scale goes into the exponent only if it is a positive literal and no score region is there.
// CHECK-LABEL: tile.kernel @attn.forward.folded
// CHECK: arith.constant 0.0901684388 : f32
attn.kernel @folded heads(1) dim(256) q(f16) kv(f16) {
}
// CHECK-LABEL: tile.kernel @attn.forward.negative
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.constant 1.44269502 : f32
attn.kernel @negative heads(1) dim(256) q(f16) kv(f16) scale(-2.0) {
}

// Scores in [-50, 50] and weights of bf16: a constant shift of 25 log2(e), no maximum. An element takes
// scale / cap, tanh, and 50 log2(e) with the shift; the product is O as it is, in every block.
// CHECK-LABEL: tile.kernel @attn.forward.bounded
// CHECK-NOT: tile.row_max
// The first block.
// CHECK: tile.wait_mma 0
// CHECK: %[[FACTOR:.*]] = arith.constant 0.00176776689 : f32
// CHECK-NEXT: %[[RATIO:.*]] = arith.mulf %{{.*}}, %[[FACTOR]] : f32
// CHECK-NEXT: %[[TANH:.*]] = math.tanh %[[RATIO]] fastmath<afn> : f32
// CHECK-NEXT: tile.yield %[[TANH]] : f32
// CHECK-NOT: tile.row_max
// CHECK: tile.select
// CHECK: %[[UNIT:.*]] = arith.constant 72.1347503 : f32
// CHECK-NEXT: %[[SHIFT:.*]] = arith.constant -36.0673752 : f32
// CHECK-NEXT: %[[POWER:.*]] = math.fma %{{.*}}, %[[UNIT]], %[[SHIFT]] : f32
// CHECK-NEXT: tile.ex2 %[[POWER]] : f32
// CHECK: tile.row_sum
// CHECK-NEXT: tile.map_rows
// CHECK: arith.addf
// CHECK: tile.to_operand
// CHECK-NOT: tile.map
// The full loop.
// CHECK: scf.for
// CHECK: tile.wait_mma 1
// CHECK-NOT: tile.row_max
// CHECK: tile.row_sum
// CHECK: %[[O:.*]] = tile.wait_mma 0
// CHECK-NEXT: tile.release
// CHECK-NEXT: %[[P:.*]] = tile.to_operand
// CHECK-NOT: tile.
// CHECK: scf.yield {{.*}}, %[[O]], %[[P]] :
// The partial loop.
// CHECK: scf.for
// CHECK: tile.wait_mma 1
// CHECK-NOT: tile.row_max
// CHECK: tile.select
// CHECK: tile.row_sum
// CHECK: %[[O:.*]] = tile.wait_mma 0
// CHECK-NEXT: tile.release
// CHECK-NEXT: %[[P:.*]] = tile.to_operand
// CHECK-NOT: tile.map
// CHECK: scf.yield {{.*}}, %[[O]], %[[P]] :
// The shift comes back in the log-sum-exp.
// CHECK: %[[LOG:.*]] = tile.lg2
// CHECK-NEXT: %[[SHIFT:.*]] = arith.constant 36.0673752 : f32
// CHECK-NEXT: arith.addf %[[LOG]], %[[SHIFT]] : f32
// CHECK-NOT: arith.maxnumf
// CHECK: tile.store_rows
attn.kernel @bounded heads(1) dim(128) q(bf16) kv(bf16) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 50.0
    attn.yield %t : f32
  }
}

// No maximum either where more than the scale comes before the cap; it is done by itself then.
// CHECK-LABEL: tile.kernel @attn.forward.bounded_sum
// CHECK: %[[SCORE:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: %[[SUM:.*]] = arith.addf %[[SCORE]], %[[SCORE]] : f32
// CHECK: %[[FACTOR:.*]] = arith.constant 0.0333333351 : f32
// CHECK-NEXT: arith.mulf %[[SUM]], %[[FACTOR]] : f32
// CHECK: arith.constant 43.2808495 : f32
// CHECK-NEXT: arith.constant -21.6404247 : f32
// CHECK-NOT: tile.row_max
// CHECK: tile.store_rows
attn.kernel @bounded_sum heads(1) dim(64) q(bf16) kv(bf16) {
  attn.score (%s, %b, %h, %q, %k) {
    %u = arith.addf %s, %s : f32
    %t = attn.soft_cap %u, 30.0
    attn.yield %t : f32
  }
}

// A scale that is a parameter is done apart: its quotient by a cap may be infinite.
// CHECK-LABEL: tile.kernel @attn.forward.bounded_scale
// CHECK: tile.consumers
// CHECK: %[[SCALE:.*]] = arith.bitcast {{.*}} : i32 to f32
// CHECK: %[[SCORE:.*]] = arith.mulf %{{.*}}, %[[SCALE]] : f32
// CHECK: %[[FACTOR:.*]] = arith.constant 0.0333333351 : f32
// CHECK-NEXT: %[[RATIO:.*]] = arith.mulf %[[SCORE]], %[[FACTOR]] : f32
// CHECK-NEXT: math.tanh %[[RATIO]]
// CHECK-NEXT: tile.yield
// CHECK-NOT: tile.row_max
// CHECK: tile.store_rows
attn.kernel @bounded_scale heads(1) dim(64) q(bf16) kv(bf16) scale(%scale) params(%scale: f32) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 30.0
    attn.yield %t : f32
  }
}

// f16 has no range for weights without a maximum. Its multiplication by 50 log2(e) is the exponent's.
// CHECK-LABEL: tile.kernel @attn.forward.half
// CHECK: arith.constant 0.00176776689 : f32
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: %[[TANH:.*]] = math.tanh {{.*}} fastmath<afn>
// CHECK-NEXT: tile.yield %[[TANH]]
// CHECK: tile.row_max
// CHECK: arith.maxnumf
// CHECK: tile.map {{.*}} -> !tile.fragment
// CHECK: %[[UNIT:.*]] = arith.constant 72.1347503 : f32
// CHECK-NEXT: math.fma %{{.*}}, %[[UNIT]], %{{.*}} : f32
// CHECK-NEXT: tile.ex2
attn.kernel @half heads(1) dim(128) q(f16) kv(f16) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 50.0
    attn.yield %t : f32
  }
}

// Nor has bf16 for caps above 50.8.
// CHECK-LABEL: tile.kernel @attn.forward.below
// CHECK-NOT: tile.row_max
// CHECK: tile.store_rows
attn.kernel @below heads(1) dim(128) q(bf16) kv(bf16) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 50.8
    attn.yield %t : f32
  }
}
// CHECK-LABEL: tile.kernel @attn.forward.above
// CHECK: tile.row_max
attn.kernel @above heads(1) dim(128) q(bf16) kv(bf16) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 50.9
    attn.yield %t : f32
  }
}

// A cap whose product with the maximum has a large rounding error stays out of the exponent, as has one
// that may be negative. It may be the largest number there is, so it is not multiplied by log2(e) either.
// CHECK-LABEL: tile.kernel @attn.forward.huge
// CHECK: %[[FACTOR:.*]] = arith.constant 1.250000e-06 : f32
// CHECK-NEXT: arith.mulf %{{.*}}, %[[FACTOR]] : f32
// CHECK-NEXT: %[[TANH:.*]] = math.tanh
// CHECK-NEXT: %[[CAP:.*]] = arith.constant 1.000000e+05 : f32
// CHECK-NEXT: arith.mulf %[[CAP]], %[[TANH]] : f32
// CHECK-NEXT: tile.yield
// CHECK: tile.row_max
// CHECK: tile.map {{.*}} -> !tile.fragment
// CHECK: %[[BELOW:.*]] = arith.subf
// CHECK-NEXT: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-NEXT: %[[POWER:.*]] = arith.mulf %[[BELOW]], %[[LOG2E]]
// CHECK-NEXT: tile.ex2 %[[POWER]]
// CHECK: tile.row_sum
attn.kernel @huge heads(1) dim(64) q(bf16) kv(bf16) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 100000.0
    attn.yield %t : f32
  }
}
// CHECK-LABEL: tile.kernel @attn.forward.param
// CHECK: %[[FACTOR:.*]] = arith.divf
// CHECK-NEXT: arith.mulf %{{.*}}, %[[FACTOR]] : f32
// CHECK-NEXT: %[[TANH:.*]] = math.tanh
// CHECK-NEXT: arith.mulf %{{.*}}, %[[TANH]] : f32
// CHECK-NEXT: tile.yield
// CHECK: tile.row_max
// CHECK: tile.map {{.*}} -> !tile.fragment
// CHECK: %[[BELOW:.*]] = arith.subf
// CHECK-NEXT: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-NEXT: %[[POWER:.*]] = arith.mulf %[[BELOW]], %[[LOG2E]]
// CHECK-NEXT: tile.ex2 %[[POWER]]
// CHECK: tile.row_sum
attn.kernel @param heads(1) dim(64) q(bf16) kv(bf16) params(%cap: f32) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, %cap
    attn.yield %t : f32
  }
}

// The scale is done apart where the factor would not be a normal number.
// CHECK-LABEL: tile.kernel @attn.forward.largest
// CHECK: %[[SCORE:.*]] = arith.mulf
// CHECK: %[[FACTOR:.*]] = arith.constant 2.938735{{.*}}E-39 : f32
// CHECK-NEXT: arith.mulf %[[SCORE]], %[[FACTOR]] : f32
attn.kernel @largest heads(1) dim(64) q(bf16) kv(bf16) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 0x7F7FFFFF
    attn.yield %t : f32
  }
}

// ALiBi in log2 units: scale and slope have log2(e), and the maximum is subtracted. The distance of a
// block's first key and the columns become floats apart from the elements.
// CHECK-LABEL: tile.kernel @attn.forward.biased
// CHECK: arith.bitcast {{.*}} : i32 to f32
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK-NOT: arith.sitofp {{.*}} : i64 to f32
// CHECK: %[[SLOPE:.*]] = arith.negf
// CHECK-NEXT: %[[FACTOR:.*]] = arith.constant 0.180336878 : f32
// CHECK-NEXT: %[[SCORE:.*]] = arith.mulf %{{.*}}, %[[FACTOR]] : f32
// CHECK-NEXT: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-NEXT: %[[SLOPE2:.*]] = arith.mulf %[[SLOPE]], %[[LOG2E]] : f32
// CHECK-NEXT: math.fma %[[SLOPE2]], %{{.*}}, %[[SCORE]] : f32
// CHECK-NEXT: tile.yield
// CHECK: tile.row_max
// CHECK: %[[BELOW:.*]] = arith.subf
// CHECK-NEXT: tile.ex2 %[[BELOW]]
// CHECK: tile.row_sum
attn.kernel @biased heads(1) dim(64) q(f16) kv(f16) tables(%slopes: !attn.table<[h], f32>) {
  attn.score (%s, %b, %h, %q, %k) {
    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>
    %t = attn.alibi %s, %q, %k, %slope
    attn.yield %t : f32
  }
}

// With a parameter for the scale ALiBi is in natural units.
// CHECK-LABEL: tile.kernel @attn.forward.scaled
// CHECK: %[[SLOPE:.*]] = arith.negf
// CHECK-NEXT: math.fma %[[SLOPE]]
// CHECK-NEXT: tile.yield
// CHECK: %[[BELOW:.*]] = arith.subf
// CHECK-NEXT: %[[UNIT:.*]] = arith.constant 1.44269502 : f32
// CHECK-NEXT: %[[POWER:.*]] = arith.mulf %[[BELOW]], %[[UNIT]] : f32
// CHECK-NEXT: tile.ex2 %[[POWER]]
attn.kernel @scaled heads(1) dim(64) q(f16) kv(f16) scale(%scale) params(%scale: f32)
    tables(%slopes: !attn.table<[h], f32>) {
  attn.score (%s, %b, %h, %q, %k) {
    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>
    %t = attn.alibi %s, %q, %k, %slope
    attn.yield %t : f32
  }
}

// What follows a cap is in natural units, and the exponent has log2(e). So has
// ALiBi of another score than the region's.
// CHECK-LABEL: tile.kernel @attn.forward.cap_first
// CHECK: arith.constant 2.000000e-02 : f32
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: %[[TANH:.*]] = math.tanh
// CHECK-NEXT: %[[CAP:.*]] = arith.constant 5.000000e+01 : f32
// CHECK-NEXT: %[[CAPPED:.*]] = arith.mulf %[[CAP]], %[[TANH]] : f32
// CHECK: math.fma %{{.*}}, %{{.*}}, %[[CAPPED]] : f32
// CHECK-NEXT: tile.yield
// CHECK: tile.row_max
// CHECK: arith.subf
// CHECK-NEXT: arith.constant 1.44269502 : f32
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: tile.ex2
attn.kernel @cap_first heads(1) dim(64) q(bf16) kv(bf16) tables(%slopes: !attn.table<[h], f32>) {
  attn.score (%s, %b, %h, %q, %k) {
    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>
    %u = attn.soft_cap %s, 50.0
    %t = attn.alibi %u, %q, %k, %slope
    attn.yield %t : f32
  }
}
// CHECK-LABEL: tile.kernel @attn.forward.cap_inside
// CHECK: arith.constant 5.000000e+01 : f32
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.negf
// CHECK: tile.row_max
// CHECK: arith.subf
// CHECK-NEXT: arith.constant 1.44269502 : f32
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: tile.ex2
attn.kernel @cap_inside heads(1) dim(64) q(bf16) kv(bf16) {
  attn.score (%s, %b, %h, %q, %k) {
    %u = attn.soft_cap %s, 50.0
    %t = arith.negf %u : f32
    attn.yield %t : f32
  }
}
