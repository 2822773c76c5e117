// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm -split-input-file -verify-diagnostics

// expected-error @+1 {{needs 262160 bytes of shared memory, a CTA can have 232448}}
tile.kernel @memory words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %k = tile.ring arrivals(8) : !tile.ring<1 x 256x512xbf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

tile.kernel @operation words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 1.0 : f32
    // expected-error @+1 {{has no lowering to the GPU}}
    %x = math.atan %f : f32
  }
}

// -----

tile.kernel @width words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 1.0 : f64
    // expected-error @+1 {{has no lowering to the GPU}}
    %x = math.exp %f : f64
  }
}

// -----

tile.kernel @region words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
    // expected-error @+1 {{has no lowering to the GPU}}
    scf.execute_region {
      scf.yield
    }
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

tile.kernel @carried words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %k = tile.ring arrivals(8) : !tile.ring<1 x 64x64xbf16>
  tile.producer registers(24) {
    %zero = arith.constant 0 : i32
    %lane = tile.thread_id : i32
    // expected-error @+1 {{carries a value of type '!tile.ring<1 x 64x64xbf16>', which has no registers}}
    %r = scf.for %i = %zero to %lane step %lane iter_args(%x = %k) -> (!tile.ring<1 x 64x64xbf16>) : i32 {
      scf.yield %x : !tile.ring<1 x 64x64xbf16>
    }
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

tile.kernel @scalar words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %k = tile.ring arrivals(8) : !tile.ring<1 x 64x64xbf16>
  tile.producer registers(24) {
    // expected-error @+1 {{takes a value of type '!tile.ring<1 x 64x64xbf16>', which is no scalar}}
    %x = builtin.unrealized_conversion_cast %k : !tile.ring<1 x 64x64xbf16> to i32
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}
