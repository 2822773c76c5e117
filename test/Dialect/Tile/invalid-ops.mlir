// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -split-input-file -verify-diagnostics

// tile-C12
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    // expected-error @+1 {{'tile.mma_shared' op the first slot is expected to have 64 rows, got 128 (tile-C12)}}
    %s = tile.mma_shared %k[%group], %k[%group] : !tile.ring<2 x 128x64xbf16>, !tile.ring<2 x 128x64xbf16> -> !tile.pending<!tile.fragment<64x128xf32, acc>>
  }
}

// -----

// tile-C12
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    // expected-error @+1 {{'tile.mma_shared' op expected slots of the same columns and elements, got 64x'bf16' and 128x'f16' (tile-C12)}}
    %s = tile.mma_shared %q[%group], %h[%group] : !tile.ring<2 x 64x64xbf16>, !tile.ring<2 x 128x128xf16> -> !tile.pending<!tile.fragment<64x128xf32, acc>>
  }
}

// -----

// tile-C12
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    // expected-error @+1 {{'tile.mma_shared' op the result is expected to be an acc fragment with a column for each of the second slot's first rows, of 128, got '!tile.fragment<64x136xf32, acc>' (tile-C12)}}
    %s = tile.mma_shared %q[%group], %k[%group] : !tile.ring<2 x 64x64xbf16>, !tile.ring<2 x 128x64xbf16> -> !tile.pending<!tile.fragment<64x136xf32, acc>>
  }
}

// -----

// tile-C13
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    %u = tile.fill %f : f32 -> !tile.fragment<64x64xf32, acc>
    // expected-error @+1 {{'tile.mma_register' op the first factor is expected to be an operand fragment with a column for each row of the slot and its elements, 128x'bf16', got '!tile.fragment<64x128xf32, acc>' (tile-C13)}}
    %s = tile.mma_register %a, %k[%group], %u : !tile.fragment<64x128xf32, acc>, !tile.ring<2 x 128x64xbf16> -> !tile.pending<!tile.fragment<64x64xf32, acc>>
  }
}

// -----

// tile-C13
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    %p = tile.to_operand %a : !tile.fragment<64x128xf32, acc> -> !tile.fragment<64x128xbf16, operand>
    // expected-error @+1 {{'tile.mma_register' op the accumulator is expected to be an acc fragment with the columns of the slot, 64, got '!tile.fragment<64x128xf32, acc>' (tile-C13)}}
    %s = tile.mma_register %p, %k[%group], %a : !tile.fragment<64x128xbf16, operand>, !tile.ring<2 x 128x64xbf16> -> !tile.pending<!tile.fragment<64x128xf32, acc>>
  }
}

// -----

// tile-C14
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %s = tile.mma_shared %q[%group], %k[%group] : !tile.ring<2 x 64x64xbf16>, !tile.ring<2 x 128x64xbf16> -> !tile.pending<!tile.fragment<64x128xf32, acc>>
    // expected-error @+1 {{'tile.wait_mma' op the number of later products is expected to be 0 to 7, got -1 (tile-C14)}}
    %t = tile.wait_mma -1, %s : !tile.pending<!tile.fragment<64x128xf32, acc>>
  }
}

// -----

// tile-C14
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %s = tile.mma_shared %q[%group], %k[%group] : !tile.ring<2 x 64x64xbf16>, !tile.ring<2 x 128x64xbf16> -> !tile.pending<!tile.fragment<64x128xf32, acc>>
    // expected-error @+1 {{'tile.wait_mma' op the number of later products is expected to be 0 to 7, got 8 (tile-C14)}}
    %t = tile.wait_mma 8, %s : !tile.pending<!tile.fragment<64x128xf32, acc>>
  }
}

// -----

// tile-C15
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    // expected-error @+1 {{'tile.fill' op the result is expected to be an acc fragment or rows, got '!tile.fragment<64x128xbf16, operand>' (tile-C15)}}
    %p = tile.fill %f : f32 -> !tile.fragment<64x128xbf16, operand>
  }
}

// -----

// tile-C15
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    // expected-error @+1 {{'tile.fill' op the value is expected to have the type of an element, 'i32', got 'f32' (tile-C15)}}
    %p = tile.fill %f : f32 -> !tile.rows<i32>
  }
}

// -----

// tile-C16
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.map' op expected at least one result (tile-C16)}}
    "tile.map"(%a) ({
    ^bb0(%x: f32, %row: i32, %col: i32):
      tile.yield
    }) : (!tile.fragment<64x128xf32, acc>) -> ()
  }
}

// -----

// tile-C16
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.map' op expected inputs and results of the same columns, got 128 and 64 (tile-C16)}}
    %m = tile.map %a : !tile.fragment<64x128xf32, acc> -> !tile.fragment<64x64xf32, acc> {
    ^bb0(%x: f32, %row: i32, %col: i32):
      tile.yield %x : f32
    }
  }
}

// -----

// tile-C16
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    %p = tile.to_operand %a : !tile.fragment<64x128xf32, acc> -> !tile.fragment<64x128xbf16, operand>
    // expected-error @+1 {{'tile.map' op expected acc fragments, got '!tile.fragment<64x128xbf16, operand>' (tile-C16)}}
    %m = tile.map %p : !tile.fragment<64x128xbf16, operand> -> !tile.fragment<64x128xf32, acc> {
    ^bb0(%x: f32, %row: i32, %col: i32):
      tile.yield %x : f32
    }
  }
}

// -----

// tile-C17
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.map' op the region is expected to take ('f32', 'i32', 'i32'), got ('f32', 'i32') (tile-C17)}}
    %m = tile.map %a : !tile.fragment<64x128xf32, acc> -> !tile.fragment<64x128xf32, acc> {
    ^bb0(%x: f32, %row: i32):
      tile.yield %x : f32
    }
  }
}

// -----

// tile-C17
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.map' op the region is expected to yield ('i1'), got ('f32') (tile-C17)}}
    %m = tile.map %a : !tile.fragment<64x128xf32, acc> -> !tile.bits<64x128> {
    ^bb0(%x: f32, %row: i32, %col: i32):
      tile.yield %x : f32
    }
  }
}

// -----

// tile-C17
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %f : f32 -> !tile.rows<f32>
    // expected-error @+1 {{'tile.map_rows' op the region is expected to take ('f32', 'i32'), got ('i32', 'i32') (tile-C17)}}
    %m = tile.map_rows %r : !tile.rows<f32> -> !tile.rows<f32> {
    ^bb0(%x: i32, %row: i32):
      tile.yield %f : f32
    }
  }
}

// -----

// tile-C17
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %f : f32 -> !tile.rows<f32>
    // expected-error @+1 {{'tile.map_rows' op the region is expected to yield ('f32'), got () (tile-C17)}}
    %m = tile.map_rows %r : !tile.rows<f32> -> !tile.rows<f32> {
    ^bb0(%x: f32, %row: i32):
    }
  }
}

// -----

// tile-C18
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    %p = tile.to_operand %a : !tile.fragment<64x128xf32, acc> -> !tile.fragment<64x128xbf16, operand>
    // expected-error @+1 {{'tile.row_max' op expected an acc fragment, got '!tile.fragment<64x128xbf16, operand>' (tile-C18)}}
    %m = tile.row_max %p : !tile.fragment<64x128xbf16, operand> -> !tile.rows<f32>
  }
}

// -----

// tile-C18
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.row_max' op the result is expected to be '!tile.rows<f32>', got '!tile.rows<f32, partial>' (tile-C18)}}
    %m = tile.row_max %a : !tile.fragment<64x128xf32, acc> -> !tile.rows<f32, partial>
  }
}

// -----

// tile-C18
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.row_sum' op the result is expected to be '!tile.rows<f32, partial>', got '!tile.rows<f32>' (tile-C18)}}
    %m = tile.row_sum %a : !tile.fragment<64x128xf32, acc> -> !tile.rows<f32>
  }
}

// -----

// tile-C18
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %f : f32 -> !tile.rows<f32>
    // expected-error @+1 {{'tile.row_finish' op expected partial rows, got '!tile.rows<f32>' (tile-C18)}}
    %m = tile.row_finish %r : !tile.rows<f32> -> !tile.rows<f32>
  }
}

// -----

// tile-C18
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %f : f32 -> !tile.rows<f32, partial>
    // expected-error @+1 {{'tile.row_finish' op the result is expected to be whole rows of 'f32', got '!tile.rows<f32, partial>' (tile-C18)}}
    %m = tile.row_finish %r : !tile.rows<f32, partial> -> !tile.rows<f32, partial>
  }
}

// -----

// tile-C25
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %f : f32 -> !tile.rows<f32, partial>
    // expected-error @+1 {{'tile.warp_any' op expected whole rows of i1, got '!tile.rows<f32, partial>' (tile-C25)}}
    %m = tile.warp_any %r : !tile.rows<f32, partial>
  }
}

// -----

// tile-C19
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.to_operand' op expected an acc fragment and an operand of as many columns or more, got '!tile.fragment<64x128xf32, acc>' and '!tile.fragment<64x64xbf16, operand>' (tile-C19)}}
    %p = tile.to_operand %a : !tile.fragment<64x128xf32, acc> -> !tile.fragment<64x64xbf16, operand>
  }
}

// -----

// tile-C20
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %f : f32 -> !tile.rows<f32>
    // expected-error @+1 {{'tile.range_bits' op the bounds are expected to be !tile.rows<i32>, got '!tile.rows<f32>' (tile-C20)}}
    %b = tile.range_bits %r, %r : !tile.rows<f32> -> !tile.bits<64x64>
  }
}

// -----

// tile-C21
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    %r = tile.fill %group : i32 -> !tile.rows<i32>
    %b = tile.range_bits %r, %r : !tile.rows<i32> -> !tile.bits<64x64>
    // expected-error @+1 {{'tile.select' op expected an acc fragment of the columns of the bits, 64, got '!tile.fragment<64x128xf32, acc>' (tile-C21)}}
    %s = tile.select %b, %a, %f : !tile.bits<64x64>, !tile.fragment<64x128xf32, acc>
  }
}

// -----

// tile-C22
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %n = arith.constant 8 : i64
    %a = tile.fill %f : f32 -> !tile.fragment<64x48xf32, acc>
    // expected-error @+1 {{'tile.store' op expected an acc fragment whose columns are a multiple of 32, got '!tile.fragment<64x48xf32, acc>' (tile-C22)}}
    tile.store %a, %args, %n, %group : !tile.fragment<64x48xf32, acc>, !llvm.ptr as bf16
  }
}

// -----

// tile-C22
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %n = arith.constant 8 : i64
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.store' op expected to store f16 or bf16, got 'f32' (tile-C22)}}
    tile.store %a, %args, %n, %group : !tile.fragment<64x128xf32, acc>, !llvm.ptr as f32
  }
}

// -----

// tile-C23
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %f : f32 -> !tile.rows<f32, partial>
    // expected-error @+1 {{'tile.store_rows' op expected whole rows of f32 or i32, got '!tile.rows<f32, partial>' (tile-C23)}}
    tile.store_rows %r, %args, %group : !tile.rows<f32, partial>, !llvm.ptr
  }
}

// -----

// tile-C24
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %group : i32 -> !tile.rows<i32>
    %b = tile.range_bits %r, %r : !tile.rows<i32> -> !tile.bits<64x64>
    // expected-error @+1 {{'tile.hide_unseen' op expected a column of bits for each row of the ring, got 64 and 128 (tile-C24)}}
    tile.hide_unseen %k[%group] keep %b, %group : !tile.ring<2 x 128x64xbf16>, !tile.bits<64x64>
  }
}

// -----

// tile-C24
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(4) registers(96) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %r = tile.fill %group : i32 -> !tile.rows<i32>
    %b = tile.range_bits %r, %r : !tile.rows<i32> -> !tile.bits<64x128>
    // expected-error @+1 {{'tile.hide_unseen' op up to 3 row groups can share a slot, got 4 (tile-C24)}}
    tile.hide_unseen %k[%group] keep %b, %group : !tile.ring<2 x 128x64xbf16>, !tile.bits<64x128>
  }
}

// -----

// tile-C27
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x64xf32, acc>
    %p = tile.to_operand %a : !tile.fragment<64x64xf32, acc> -> !tile.fragment<64x64xbf16, operand>
    // expected-error @+1 {{'tile.load_operand' op the slot is expected to have 64 rows, got 128 (tile-C27)}}
    %x = tile.load_operand %k[%group] : !tile.ring<2 x 128x64xbf16> -> !tile.fragment<64x64xbf16, operand>
  }
}

// -----

// tile-C27
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x64xf32, acc>
    %p = tile.to_operand %a : !tile.fragment<64x64xf32, acc> -> !tile.fragment<64x64xbf16, operand>
    // expected-error @+1 {{'tile.load_operand' op the result is expected to be an operand fragment of the slot's columns and elements, 64x'bf16', got '!tile.fragment<64x64xf16, operand>' (tile-C27)}}
    %x = tile.load_operand %q[%group] : !tile.ring<2 x 64x64xbf16> -> !tile.fragment<64x64xf16, operand>
  }
}

// -----

// tile-C27
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x64xf32, acc>
    %p = tile.to_operand %a : !tile.fragment<64x64xf32, acc> -> !tile.fragment<64x64xbf16, operand>
    // expected-error @+1 {{'tile.load_operand' op the result is expected to be an operand fragment of the slot's columns and elements, 64x'bf16', got '!tile.fragment<64x128xbf16, operand>' (tile-C27)}}
    %x = tile.load_operand %q[%group] : !tile.ring<2 x 64x64xbf16> -> !tile.fragment<64x128xbf16, operand>
  }
}

// -----

// tile-C28
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x64xf32, acc>
    %p = tile.to_operand %a : !tile.fragment<64x64xf32, acc> -> !tile.fragment<64x64xbf16, operand>
    // expected-error @+1 {{'tile.mma_operand' op the first factor is expected to be an operand fragment of the slot's columns and elements, 128x'f16', got '!tile.fragment<64x64xbf16, operand>' (tile-C28)}}
    %x = tile.mma_operand %p, %h[%group] : !tile.fragment<64x64xbf16, operand>, !tile.ring<2 x 128x128xf16> -> !tile.pending<!tile.fragment<64x128xf32, acc>>
  }
}

// -----

// tile-C28
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x64xf32, acc>
    %p = tile.to_operand %a : !tile.fragment<64x64xf32, acc> -> !tile.fragment<64x64xbf16, operand>
    // expected-error @+1 {{'tile.mma_operand' op the result is expected to be an acc fragment with a column for each of the slot's first rows, of 128, got '!tile.fragment<64x136xf32, acc>' (tile-C28)}}
    %x = tile.mma_operand %p, %k[%group] : !tile.fragment<64x64xbf16, operand>, !tile.ring<2 x 128x64xbf16> -> !tile.pending<!tile.fragment<64x136xf32, acc>>
  }
}

// -----

// tile-C30
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.store_box' op expected an acc fragment and a multiple of 64 columns that divides its own, got '!tile.fragment<64x128xf32, acc>' and 32 (tile-C30)}}
    tile.store_box %a to %mo[%group, %group] columns(32) : !tile.fragment<64x128xf32, acc> as bf16
  }
}

// -----

// tile-C30
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x192xf32, acc>
    // expected-error @+1 {{'tile.store_box' op expected an acc fragment and a multiple of 64 columns that divides its own, got '!tile.fragment<64x192xf32, acc>' and 128 (tile-C30)}}
    tile.store_box %a to %mo[%group, %group] columns(128) : !tile.fragment<64x192xf32, acc> as bf16
  }
}

// -----

// tile-C30
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.store_box' op expected an acc fragment and a multiple of 64 columns that divides its own, got '!tile.fragment<64x128xf32, acc>' and 0 (tile-C30)}}
    tile.store_box %a to %mo[%group, %group] columns(0) : !tile.fragment<64x128xf32, acc> as f16
  }
}

// -----

// tile-C30
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x128xf32, acc>
    // expected-error @+1 {{'tile.store_box' op expected to store f16 or bf16, got 'f32' (tile-C30)}}
    tile.store_box %a to %mo[%group, %group] columns(64) : !tile.fragment<64x128xf32, acc> as f32
  }
}

// -----

// tile-C11
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %a = tile.fill %f : f32 -> !tile.fragment<64x64xf32, acc>
    scf.while (%m = %mo) : (!tile.tensor_map) -> (!tile.tensor_map) {
      %d = arith.constant false
      scf.condition(%d) %m : !tile.tensor_map
    } do {
    ^bb0(%m: !tile.tensor_map):
      // expected-error @+1 {{'tile.store_box' op expected a tensor map that is an argument of the kernel (tile-C11)}}
      tile.store_box %a to %m[%group, %group] columns(64) : !tile.fragment<64x64xf32, acc> as bf16
      scf.yield %m : !tile.tensor_map
    }
  }
}

// -----

// tile-C31
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %v = tile.ring arrivals(8) : !tile.ring<2 x 160x64xbf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    // expected-error @+1 {{'tile.hide' op takes a word for every 128 rows, 2 for 160 rows, got 1 (tile-C31)}}
    tile.hide %v[%group] keep %group : !tile.ring<2 x 160x64xbf16>
  }
}

// -----

// tile-C31
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %v = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    // expected-error @+1 {{'tile.hide' op takes a word for every 128 rows, 1 for 128 rows, got 2 (tile-C31)}}
    tile.hide %v[%group] keep %group, %group : !tile.ring<2 x 128x64xbf16>
  }
}

// -----

tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 1.0 : f64
    // expected-error @+1 {{'tile.rcp' op operand #0 must be 32-bit float, but got 'f64'}}
    %r = "tile.rcp"(%f) : (f64) -> f64
  }
}
