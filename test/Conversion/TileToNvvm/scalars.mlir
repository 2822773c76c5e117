// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | FileCheck %s
// RUN: tile-opt %s -convert-tile-to-nvvm | mlir-translate -mlir-to-llvmir | \
// RUN:   llc -O3 -mcpu=sm_90a -mattr=+ptx86 | FileCheck %s --check-prefix=PTX

// Scalar operations. f32 arithmetic must reach PTX as written: rounded to nearest, not contracted,
// subnormals kept.

// CHECK-LABEL: llvm.func @scalars(
tile.kernel @scalars words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
    %i = tile.block_id : i32
    %j = llvm.load volatile %args : !llvm.ptr -> i32
    %f = llvm.load volatile %args : !llvm.ptr -> f32
    %g = llvm.load volatile %args : !llvm.ptr -> f32
    %c = llvm.load volatile %args : !llvm.ptr -> i1
    // CHECK: llvm.add %[[I:.*]], %[[J:.*]] : i32
    %r0 = arith.addi %i, %j : i32
    llvm.store volatile %r0, %args : i32, !llvm.ptr
    // CHECK: llvm.sub %[[I]], %[[J]] : i32
    %r1 = arith.subi %i, %j : i32
    llvm.store volatile %r1, %args : i32, !llvm.ptr
    // CHECK: llvm.mul %[[I]], %[[J]] : i32
    %r2 = arith.muli %i, %j : i32
    llvm.store volatile %r2, %args : i32, !llvm.ptr
    // CHECK: llvm.sdiv %[[I]], %[[J]] : i32
    %r3 = arith.divsi %i, %j : i32
    llvm.store volatile %r3, %args : i32, !llvm.ptr
    // CHECK: llvm.udiv %[[I]], %[[J]] : i32
    %r4 = arith.divui %i, %j : i32
    llvm.store volatile %r4, %args : i32, !llvm.ptr
    // CHECK: llvm.srem %[[I]], %[[J]] : i32
    %r5 = arith.remsi %i, %j : i32
    llvm.store volatile %r5, %args : i32, !llvm.ptr
    // CHECK: llvm.urem %[[I]], %[[J]] : i32
    %r6 = arith.remui %i, %j : i32
    llvm.store volatile %r6, %args : i32, !llvm.ptr
    // CHECK: llvm.and %[[I]], %[[J]] : i32
    %r7 = arith.andi %i, %j : i32
    llvm.store volatile %r7, %args : i32, !llvm.ptr
    // CHECK: llvm.or %[[I]], %[[J]] : i32
    %r8 = arith.ori %i, %j : i32
    llvm.store volatile %r8, %args : i32, !llvm.ptr
    // CHECK: llvm.xor %[[I]], %[[J]] : i32
    %r9 = arith.xori %i, %j : i32
    llvm.store volatile %r9, %args : i32, !llvm.ptr
    // CHECK: llvm.shl %[[I]], %[[J]] : i32
    %r10 = arith.shli %i, %j : i32
    llvm.store volatile %r10, %args : i32, !llvm.ptr
    // CHECK: llvm.lshr %[[I]], %[[J]] : i32
    %r11 = arith.shrui %i, %j : i32
    llvm.store volatile %r11, %args : i32, !llvm.ptr
    // CHECK: llvm.ashr %[[I]], %[[J]] : i32
    %r12 = arith.shrsi %i, %j : i32
    llvm.store volatile %r12, %args : i32, !llvm.ptr
    // CHECK: llvm.intr.smin(%[[I]], %[[J]])
    %r13 = arith.minsi %i, %j : i32
    llvm.store volatile %r13, %args : i32, !llvm.ptr
    // CHECK: llvm.intr.smax(%[[I]], %[[J]])
    %r14 = arith.maxsi %i, %j : i32
    llvm.store volatile %r14, %args : i32, !llvm.ptr
    // CHECK: llvm.intr.umin(%[[I]], %[[J]])
    %r15 = arith.minui %i, %j : i32
    llvm.store volatile %r15, %args : i32, !llvm.ptr
    // CHECK: llvm.intr.umax(%[[I]], %[[J]])
    %r16 = arith.maxui %i, %j : i32
    llvm.store volatile %r16, %args : i32, !llvm.ptr
    // CHECK: llvm.fadd %[[F:.*]], %[[G:.*]] : f32
    %r17 = arith.addf %f, %g : f32
    llvm.store volatile %r17, %args : f32, !llvm.ptr
    // CHECK: llvm.fsub %[[F]], %[[G]] : f32
    %r18 = arith.subf %f, %g : f32
    llvm.store volatile %r18, %args : f32, !llvm.ptr
    // CHECK: llvm.fmul %[[F]], %[[G]] : f32
    %r19 = arith.mulf %f, %g : f32
    llvm.store volatile %r19, %args : f32, !llvm.ptr
    // CHECK: llvm.fdiv %[[F]], %[[G]] : f32
    %r20 = arith.divf %f, %g : f32
    llvm.store volatile %r20, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.minimum(%[[F]], %[[G]])
    %r21 = arith.minimumf %f, %g : f32
    llvm.store volatile %r21, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.maximum(%[[F]], %[[G]])
    %r22 = arith.maximumf %f, %g : f32
    llvm.store volatile %r22, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.minnum(%[[F]], %[[G]])
    %r23 = arith.minnumf %f, %g : f32
    llvm.store volatile %r23, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.maxnum(%[[F]], %[[G]])
    %r24 = arith.maxnumf %f, %g : f32
    llvm.store volatile %r24, %args : f32, !llvm.ptr
    // CHECK: llvm.fneg %[[F]] : f32
    %r25 = arith.negf %f : f32
    llvm.store volatile %r25, %args : f32, !llvm.ptr
    // CHECK: llvm.icmp "eq" %[[I]], %[[J]] : i32
    %r26 = arith.cmpi eq, %i, %j : i32
    llvm.store volatile %r26, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "ne" %[[I]], %[[J]] : i32
    %r27 = arith.cmpi ne, %i, %j : i32
    llvm.store volatile %r27, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "slt" %[[I]], %[[J]] : i32
    %r28 = arith.cmpi slt, %i, %j : i32
    llvm.store volatile %r28, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "sle" %[[I]], %[[J]] : i32
    %r29 = arith.cmpi sle, %i, %j : i32
    llvm.store volatile %r29, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "sgt" %[[I]], %[[J]] : i32
    %r30 = arith.cmpi sgt, %i, %j : i32
    llvm.store volatile %r30, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "sge" %[[I]], %[[J]] : i32
    %r31 = arith.cmpi sge, %i, %j : i32
    llvm.store volatile %r31, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "ult" %[[I]], %[[J]] : i32
    %r32 = arith.cmpi ult, %i, %j : i32
    llvm.store volatile %r32, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "ule" %[[I]], %[[J]] : i32
    %r33 = arith.cmpi ule, %i, %j : i32
    llvm.store volatile %r33, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "ugt" %[[I]], %[[J]] : i32
    %r34 = arith.cmpi ugt, %i, %j : i32
    llvm.store volatile %r34, %args : i1, !llvm.ptr
    // CHECK: llvm.icmp "uge" %[[I]], %[[J]] : i32
    %r35 = arith.cmpi uge, %i, %j : i32
    llvm.store volatile %r35, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "oeq" %[[F]], %[[G]] : f32
    %r36 = arith.cmpf oeq, %f, %g : f32
    llvm.store volatile %r36, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "ogt" %[[F]], %[[G]] : f32
    %r37 = arith.cmpf ogt, %f, %g : f32
    llvm.store volatile %r37, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "oge" %[[F]], %[[G]] : f32
    %r38 = arith.cmpf oge, %f, %g : f32
    llvm.store volatile %r38, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "olt" %[[F]], %[[G]] : f32
    %r39 = arith.cmpf olt, %f, %g : f32
    llvm.store volatile %r39, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "ole" %[[F]], %[[G]] : f32
    %r40 = arith.cmpf ole, %f, %g : f32
    llvm.store volatile %r40, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "one" %[[F]], %[[G]] : f32
    %r41 = arith.cmpf one, %f, %g : f32
    llvm.store volatile %r41, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "ord" %[[F]], %[[G]] : f32
    %r42 = arith.cmpf ord, %f, %g : f32
    llvm.store volatile %r42, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "ueq" %[[F]], %[[G]] : f32
    %r43 = arith.cmpf ueq, %f, %g : f32
    llvm.store volatile %r43, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "ugt" %[[F]], %[[G]] : f32
    %r44 = arith.cmpf ugt, %f, %g : f32
    llvm.store volatile %r44, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "uge" %[[F]], %[[G]] : f32
    %r45 = arith.cmpf uge, %f, %g : f32
    llvm.store volatile %r45, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "ult" %[[F]], %[[G]] : f32
    %r46 = arith.cmpf ult, %f, %g : f32
    llvm.store volatile %r46, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "ule" %[[F]], %[[G]] : f32
    %r47 = arith.cmpf ule, %f, %g : f32
    llvm.store volatile %r47, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "une" %[[F]], %[[G]] : f32
    %r48 = arith.cmpf une, %f, %g : f32
    llvm.store volatile %r48, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "uno" %[[F]], %[[G]] : f32
    %r49 = arith.cmpf uno, %f, %g : f32
    llvm.store volatile %r49, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "_false"
    %r50 = arith.cmpf false, %f, %g : f32
    llvm.store volatile %r50, %args : i1, !llvm.ptr
    // CHECK: llvm.fcmp "_true"
    %r51 = arith.cmpf true, %f, %g : f32
    llvm.store volatile %r51, %args : i1, !llvm.ptr
    // CHECK: llvm.select %{{.*}}, %[[I]], %[[J]] : i1, i32
    %r52 = arith.select %c, %i, %j : i32
    llvm.store volatile %r52, %args : i32, !llvm.ptr
    // CHECK: llvm.sext %[[I]] : i32 to i64
    %r53 = arith.extsi %i : i32 to i64
    llvm.store volatile %r53, %args : i64, !llvm.ptr
    // CHECK: llvm.zext %[[I]] : i32 to i64
    %r54 = arith.extui %i : i32 to i64
    llvm.store volatile %r54, %args : i64, !llvm.ptr
    // CHECK: llvm.trunc %[[I]] : i32 to i8
    %r55 = arith.trunci %i : i32 to i8
    llvm.store volatile %r55, %args : i8, !llvm.ptr
    // CHECK: llvm.sitofp %[[I]] : i32 to f32
    %r56 = arith.sitofp %i : i32 to f32
    llvm.store volatile %r56, %args : f32, !llvm.ptr
    // CHECK: llvm.uitofp %[[I]] : i32 to f32
    %r57 = arith.uitofp %i : i32 to f32
    llvm.store volatile %r57, %args : f32, !llvm.ptr
    // CHECK: llvm.fptosi %[[F]] : f32 to i32
    %r58 = arith.fptosi %f : f32 to i32
    llvm.store volatile %r58, %args : i32, !llvm.ptr
    // CHECK: llvm.bitcast %[[F]] : f32 to i32
    %r59 = arith.bitcast %f : f32 to i32
    llvm.store volatile %r59, %args : i32, !llvm.ptr
    // CHECK: llvm.fpext %[[F]] : f32 to f64
    %r60 = arith.extf %f : f32 to f64
    llvm.store volatile %r60, %args : f64, !llvm.ptr
    // CHECK: llvm.fptrunc %[[F]] : f32 to bf16
    %r61 = arith.truncf %f : f32 to bf16
    llvm.store volatile %r61, %args : bf16, !llvm.ptr
    // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[F]])
    %r62 = tile.ex2 %f : f32
    llvm.store volatile %r62, %args : f32, !llvm.ptr
    // CHECK: llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%[[F]])
    %r63 = tile.lg2 %f : f32
    // CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[F]])
    %r63r = tile.rcp %f : f32
    llvm.store volatile %r63, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.fabs(%[[F]])
    %r64 = math.absf %f : f32
    llvm.store volatile %r64, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.fma(%[[F]], %[[G]], %[[F]])
    %r65 = math.fma %f, %g, %f : f32
    llvm.store volatile %r65, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.floor(%[[F]])
    %r66 = math.floor %f : f32
    llvm.store volatile %r66, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.ceil(%[[F]])
    %r67 = math.ceil %f : f32
    llvm.store volatile %r67, %args : f32, !llvm.ptr
    // CHECK: llvm.intr.sqrt(%[[F]])
    %r68 = math.sqrt %f : f32
    llvm.store volatile %r68, %args : f32, !llvm.ptr
    // CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%[[F]])
    %r69 = math.rsqrt %f : f32
    llvm.store volatile %r69, %args : f32, !llvm.ptr
    // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%[[F]])
    %r70 = math.exp2 %f : f32
    llvm.store volatile %r70, %args : f32, !llvm.ptr
    // CHECK: llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%[[F]])
    %r71 = math.log2 %f : f32
    llvm.store volatile %r71, %args : f32, !llvm.ptr
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}

// CHECK-LABEL: llvm.func @index(
// An index is an i64.
tile.kernel @index words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
    // CHECK-DAG: %[[C5:.*]] = llvm.mlir.constant(5 : i64) : i64
    // CHECK: %[[I:.*]] = nvvm.read.ptx.sreg.ctaid.x
    %i = tile.block_id : i32
    %five = arith.constant 5 : index
    // CHECK: %[[X:.*]] = llvm.sext %[[I]] : i32 to i64
    %x = arith.index_cast %i : i32 to index
    // CHECK: %[[Y:.*]] = llvm.zext %[[I]] : i32 to i64
    %y = arith.index_castui %i : i32 to index
    // CHECK: %[[Z:.*]] = llvm.mul %[[X]], %[[C5]] : i64
    %z = arith.muli %x, %five : index
    // CHECK: %[[W:.*]] = llvm.add %[[Z]], %[[Y]] : i64
    %w = arith.addi %z, %y : index
    // CHECK: llvm.store volatile %[[W]], %{{.*}} : i64, !llvm.ptr
    %v = arith.index_cast %w : index to i64
    llvm.store volatile %v, %args : i64, !llvm.ptr
    // CHECK: llvm.trunc %[[W]] : i64 to i32
    %u = arith.index_cast %w : index to i32
    llvm.store volatile %u, %args : i32, !llvm.ptr
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}

// PTX-LABEL: .entry ieee(
tile.kernel @ieee words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
    %f = llvm.load volatile %args : !llvm.ptr -> f32
    %g = llvm.load volatile %args : !llvm.ptr -> f32
    %h = llvm.load volatile %args : !llvm.ptr -> f32
    // PTX: mul.rn.f32
    %p = arith.mulf %f, %g fastmath<fast> : f32
    // PTX: add.rn.f32
    %s = arith.addf %p, %h fastmath<fast> : f32
    // PTX: div.rn.f32
    %q = arith.divf %s, %h : f32
    // PTX: sqrt.rn.f32
    %r = math.sqrt %q : f32
    // PTX: setp.lt.f32
    %c = arith.cmpf olt, %r, %h : f32
    %t = arith.select %c, %r, %h : f32
    llvm.store volatile %t, %args : f32, !llvm.ptr
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}

// Every function of math assembles from instructions alone.
// PTX-LABEL: .entry functions(
// PTX-NOT: call
tile.kernel @functions words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
    %f = llvm.load volatile %args : !llvm.ptr -> f32
    %g = llvm.load volatile %args : !llvm.ptr -> f32
    %exp = math.exp %f : f32
    llvm.store volatile %exp, %args : f32, !llvm.ptr
    %expm1 = math.expm1 %f : f32
    llvm.store volatile %expm1, %args : f32, !llvm.ptr
    %log = math.log %f : f32
    llvm.store volatile %log, %args : f32, !llvm.ptr
    %log1p = math.log1p %f : f32
    llvm.store volatile %log1p, %args : f32, !llvm.ptr
    %tanh = math.tanh %f : f32
    llvm.store volatile %tanh, %args : f32, !llvm.ptr
    %sin = math.sin %f : f32
    llvm.store volatile %sin, %args : f32, !llvm.ptr
    %cos = math.cos %f : f32
    llvm.store volatile %cos, %args : f32, !llvm.ptr
    %erf = math.erf %f : f32
    llvm.store volatile %erf, %args : f32, !llvm.ptr
    %pow = math.powf %f, %g : f32
    llvm.store volatile %pow, %args : f32, !llvm.ptr
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}
