// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | FileCheck %s

!acc = !tile.fragment<64x8xf32, acc>
!wide = !tile.fragment<64x16xf32, acc>

tile.kernel @rows words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    // CHECK-LABEL: llvm.func @rows(
    // CHECK: setmaxnreg.inc
    // CHECK: %[[X0:.*]] = llvm.load {{.*}} -> f32
    // CHECK: %[[X1:.*]] = llvm.load {{.*}} -> f32
    // CHECK: %[[X2:.*]] = llvm.load {{.*}} -> f32
    // CHECK: %[[X3:.*]] = llvm.load {{.*}} -> f32
    %f = tile.map -> !acc {
    ^bb0(%row: i32, %col: i32):
      %v = llvm.load volatile %args : !llvm.ptr -> f32
      tile.yield %v : f32
    }
    // Registers 0 and 1 are the first row, 2 and 3 the second.
    // CHECK: %[[A:.*]] = llvm.intr.maxnum(%[[X0]], %[[X1]])
    // CHECK: %[[A1:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[A]], %[[ONE:[a-z0-9]+]], %{{.*}} : f32 -> f32
    // CHECK: %[[B:.*]] = llvm.intr.maxnum(%[[A]], %[[A1]])
    // CHECK: %[[B2:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[B]], %[[TWO:[a-z0-9]+]], %{{.*}} : f32 -> f32
    // CHECK: %[[M0:.*]] = llvm.intr.maxnum(%[[B]], %[[B2]])
    // CHECK: llvm.intr.maxnum(%[[X2]], %[[X3]])
    // CHECK: llvm.intr.maxnum
    // CHECK: %[[M1:.*]] = llvm.intr.maxnum
    %m = tile.row_max %f : !acc -> !tile.rows<f32>
    // CHECK: %[[S0:.*]] = llvm.fadd %[[X0]], %[[X1]] : f32
    // CHECK: %[[S1:.*]] = llvm.fadd %[[X2]], %[[X3]] : f32
    %part = tile.row_sum %f : !acc -> !tile.rows<f32, partial>
    // CHECK: %[[T:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[S0]], %[[ONE]], %{{.*}} : f32 -> f32
    // CHECK: %[[T1:.*]] = llvm.fadd %[[S0]], %[[T]] : f32
    // CHECK: %[[T2:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[T1]], %[[TWO]], %{{.*}} : f32 -> f32
    // CHECK: %[[SUM0:.*]] = llvm.fadd %[[T1]], %[[T2]] : f32
    %sum = tile.row_finish %part : !tile.rows<f32, partial> -> !tile.rows<f32>
    %big = tile.map_rows %sum : !tile.rows<f32> -> !tile.rows<i1> {
    ^bb0(%x: f32, %row: i32):
      %one = arith.constant 1.0 : f32
      %c = arith.cmpf une, %x, %one : f32
      tile.yield %c : i1
    }
    // CHECK: %[[BIG0:.*]] = llvm.fcmp "une" %[[SUM0]], %{{.*}} : f32
    // CHECK: %[[BIG1:.*]] = llvm.fcmp "une" %{{.*}}, %{{.*}} : f32
    // CHECK: %[[EITHER:.*]] = llvm.or %[[BIG0]], %[[BIG1]] : i1
    // CHECK: %[[ANY:.*]] = nvvm.vote.sync any %{{.*}}, %[[EITHER]] -> i1
    %any = tile.warp_any %big : !tile.rows<i1>
    // CHECK: llvm.cond_br %[[ANY]]
    scf.if %any {
      tile.store_rows %sum, %args, %group : !tile.rows<f32>, !llvm.ptr
    }
    // CHECK: %[[D0:.*]] = llvm.fsub %[[SUM0]], %[[M0]] : f32
    // CHECK: llvm.fsub %{{.*}}, %[[M1]] : f32
    %d = tile.map_rows %sum, %m : !tile.rows<f32>, !tile.rows<f32> -> !tile.rows<f32> {
    ^bb0(%x: f32, %y: f32, %row: i32):
      %z = arith.subf %x, %y : f32
      tile.yield %z : f32
    }
    tile.store_rows %d, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}

// Four chains, then pairs of them.
// CHECK-LABEL: llvm.func @tree(
tile.kernel @tree words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %f = tile.map -> !tile.fragment<64x24xf32, acc> {
    ^bb0(%row: i32, %col: i32):
      %v = llvm.load volatile %args : !llvm.ptr -> f32
      tile.yield %v : f32
    }
    // CHECK-COUNT-12: llvm.load volatile
    // CHECK: %[[C0:.*]] = llvm.fadd %[[X0:.*]], %[[X4:.*]] : f32
    // CHECK-NEXT: %[[C1:.*]] = llvm.fadd %[[X1:.*]], %[[X5:.*]] : f32
    // CHECK-NEXT: %[[L:.*]] = llvm.fadd %[[C0]], %[[C1]] : f32
    // CHECK-NEXT: %[[R:.*]] = llvm.fadd %[[X2:.*]], %[[X3:.*]] : f32
    // CHECK-NEXT: llvm.fadd %[[L]], %[[R]] : f32
    %part = tile.row_sum %f : !tile.fragment<64x24xf32, acc> -> !tile.rows<f32, partial>
    %sum = tile.row_finish %part : !tile.rows<f32, partial> -> !tile.rows<f32>
    tile.store_rows %sum, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}

// CHECK-LABEL: llvm.func @bits(
tile.kernel @bits words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %zero = arith.constant 0.0 : f32
    %lo = tile.fill %group : i32 -> !tile.rows<i32>
    %block = tile.block_id : i32
    %hi = tile.fill %block : i32 -> !tile.rows<i32>
    // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK-DAG: %[[C2:.*]] = llvm.mlir.constant(2 : i32) : i32
    // CHECK-DAG: %[[C7:.*]] = llvm.mlir.constant(7 : i32) : i32
    // CHECK-DAG: %[[C32:.*]] = llvm.mlir.constant(32 : i32) : i32
    // CHECK-DAG: %[[C64:.*]] = llvm.mlir.constant(64 : i32) : i32
    // CHECK-DAG: %[[C256:.*]] = llvm.mlir.constant(256 : i32) : i32
    // CHECK-DAG: %[[ALL:.*]] = llvm.mlir.constant(-1 : i32) : i32
    // CHECK-DAG: %[[EVEN:.*]] = llvm.mlir.constant(-2 : i32) : i32
    // CHECK: setmaxnreg.inc
    // CHECK: %[[GROUP:.*]] = llvm.sub
    // CHECK: llvm.add
    // CHECK: %[[COL:.*]] = llvm.shl
    // CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
    // Cut off, then elements below: (c / 8) 2 + min(c mod 8, 2).
    // CHECK-NEXT: %[[L0:.*]] = llvm.intr.smax(%[[GROUP]], %[[C0]])
    // CHECK-NEXT: %[[L1:.*]] = llvm.intr.smin(%[[L0]], %[[C256]])
    // CHECK-NEXT: %[[L2:.*]] = llvm.sub %[[L1]], %[[COL]] : i32
    // CHECK-NEXT: %[[L3:.*]] = llvm.intr.smax(%[[L2]], %[[C0]])
    // CHECK-NEXT: %[[L4:.*]] = llvm.lshr %[[L3]], %[[C2]] : i32
    // CHECK-NEXT: %[[L5:.*]] = llvm.and %[[L4]], %[[EVEN]] : i32
    // CHECK-NEXT: %[[L6:.*]] = llvm.and %[[L3]], %[[C7]] : i32
    // CHECK-NEXT: %[[L7:.*]] = llvm.intr.smin(%[[L6]], %[[C2]])
    // CHECK-NEXT: %[[FIRST:.*]] = llvm.add %[[L5]], %[[L7]] : i32
    // CHECK-NEXT: llvm.intr.smax(%[[BLOCK]], %[[C0]])
    // CHECK: %[[LAST:.*]] = llvm.add
    // CHECK-NEXT: %[[N0:.*]] = llvm.sub %[[C32]], %[[LAST]] : i32
    // CHECK-NEXT: %[[N1:.*]] = llvm.intr.smax(%[[N0]], %[[C0]])
    // CHECK-NEXT: %[[BELOW:.*]] = llvm.inline_asm asm_dialect = att "shr.u32 $0, $1, $2;", "=r,r,r" %[[ALL]], %[[N1]]
    // CHECK-NEXT: %[[A0:.*]] = llvm.sub %[[FIRST]], %[[C0]] : i32
    // CHECK-NEXT: %[[A1:.*]] = llvm.intr.smax(%[[A0]], %[[C0]])
    // CHECK-NEXT: %[[ABOVE:.*]] = llvm.inline_asm asm_dialect = att "shl.b32 $0, $1, $2;", "=r,r,r" %[[ALL]], %[[A1]]
    // CHECK-NEXT: %[[WORD0:.*]] = llvm.and %[[BELOW]], %[[ABOVE]] : i32
    // The second word: elements 32 to 63.
    // CHECK-NEXT: %[[N2:.*]] = llvm.sub %[[C64]], %[[LAST]] : i32
    // CHECK: llvm.sub %[[FIRST]], %[[C32]] : i32
    // CHECK: shl.b32
    // CHECK-NEXT: %[[WORD1:.*]] = llvm.and
    // The other row.
    // CHECK: shl.b32
    // CHECK-NEXT: %[[WORD2:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
    // CHECK-NEXT: llvm.sub %[[C64]]
    // CHECK: shl.b32
    // CHECK-NEXT: %[[WORD3:.*]] = llvm.and
    %b = tile.range_bits %lo, %hi : !tile.rows<i32> -> !tile.bits<64x256>
    // CHECK-NEXT: llvm.or %[[WORD0]], %[[WORD0]] : i32
    // CHECK-NEXT: llvm.or %[[WORD1]], %[[WORD1]] : i32
    // CHECK-NEXT: llvm.or %[[WORD2]], %[[WORD2]] : i32
    // CHECK-NEXT: llvm.or %[[WORD3]], %[[WORD3]] : i32
    %c = tile.bits_or %b, %b : !tile.bits<64x256>
    %f = tile.map %c : !tile.bits<64x256> -> !tile.fragment<64x256xf32, acc> {
    ^bb0(%keep: i1, %row: i32, %col: i32):
      %v = arith.uitofp %keep : i1 to f32
      tile.yield %v : f32
    }
    %m = tile.row_max %f : !tile.fragment<64x256xf32, acc> -> !tile.rows<f32>
    tile.store_rows %m, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}

// CHECK-LABEL: llvm.func @select(
tile.kernel @select words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %ninf = arith.constant 0xFF800000 : f32
    // CHECK-DAG: %[[NINF:.*]] = llvm.mlir.constant(0xFF800000 : f32) : f32
    // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK-DAG: %[[C1:.*]] = llvm.mlir.constant(1 : i32) : i32
    // CHECK-DAG: %[[C2:.*]] = llvm.mlir.constant(2 : i32) : i32
    // CHECK-DAG: %[[C4:.*]] = llvm.mlir.constant(4 : i32) : i32
    // CHECK: setmaxnreg.inc
    // CHECK: %[[X0:.*]] = llvm.load volatile
    // CHECK-NEXT: %[[X1:.*]] = llvm.load volatile
    // CHECK-NEXT: %[[X2:.*]] = llvm.load volatile
    // CHECK-NEXT: %[[X3:.*]] = llvm.load volatile
    // CHECK-NEXT: %[[X4:.*]] = llvm.load volatile
    %f = tile.map -> !wide {
    ^bb0(%row: i32, %col: i32):
      %v = llvm.load volatile %args : !llvm.ptr -> f32
      tile.yield %v : f32
    }
    %lo = tile.fill %group : i32 -> !tile.rows<i32>
    // CHECK: shl.b32
    // CHECK-NEXT: %[[W0:.*]] = llvm.and
    // CHECK: shl.b32
    // CHECK-NEXT: %[[W1:.*]] = llvm.and
    %b = tile.range_bits %lo, %lo : !tile.rows<i32> -> !tile.bits<64x16>
    // Registers 0, 1, 4, 5 are bits 0 to 3 of the first row, 2, 3, 6, 7 of the second; bits of a word one after
    // the other.
    // CHECK-NEXT: %[[T0:.*]] = llvm.and %[[W0]], %[[C1]] : i32
    // CHECK-NEXT: %[[Z0:.*]] = llvm.icmp "eq" %[[T0]], %[[C0]] : i32
    // CHECK-NEXT: llvm.select %[[Z0]], %[[NINF]], %[[X0]] : i1, f32
    // CHECK-NEXT: llvm.and %[[W0]], %[[C2]] : i32
    // CHECK-NEXT: llvm.icmp
    // CHECK-NEXT: llvm.select %{{.*}}, %[[NINF]], %[[X1]]
    // CHECK-NEXT: llvm.and %[[W0]], %[[C4]] : i32
    // CHECK-NEXT: llvm.icmp
    // CHECK-NEXT: llvm.select %{{.*}}, %[[NINF]], %[[X4]]
    // CHECK: llvm.and %[[W1]], %[[C1]] : i32
    // CHECK-NEXT: llvm.icmp
    // CHECK-NEXT: llvm.select %{{.*}}, %[[NINF]], %[[X2]]
    // CHECK-NEXT: llvm.and %[[W1]], %[[C2]] : i32
    // CHECK-NEXT: llvm.icmp
    // CHECK-NEXT: llvm.select %{{.*}}, %[[NINF]], %[[X3]]
    %s = tile.select %b, %f, %ninf : !tile.bits<64x16>, !wide
    // CHECK: cvt.rn.f16x2.f32
    %p = tile.to_operand %s : !wide -> !tile.fragment<64x16xf16, operand>
    %m = tile.row_max %s : !wide -> !tile.rows<f32>
    tile.store_rows %m, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}
