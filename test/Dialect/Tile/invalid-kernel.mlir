// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -split-input-file -verify-diagnostics

// tile-C5
// expected-error @+1 {{'tile.kernel' op words is expected to be 1 to 4031, got 0 (tile-C5)}}
tile.kernel @f words(0) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C5
// expected-error @+1 {{'tile.kernel' op words is expected to be 1 to 4031, got -1 (tile-C5)}}
tile.kernel @f words(-1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C5
// expected-error @+1 {{'tile.kernel' op words is expected to be 1 to 4031, got 4032 (tile-C5)}}
tile.kernel @f words(4032) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C5
// expected-error @+1 {{'tile.kernel' op expected arguments (!tile.tensor_map, !tile.tensor_map, !tile.tensor_map, !tile.tensor_map, !llvm.ptr), got () (tile-C5)}}
tile.kernel @f words(15) {
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C5
// expected-error @+1 {{'tile.kernel' op expected arguments (!tile.tensor_map, !tile.tensor_map, !tile.tensor_map, !tile.tensor_map, !llvm.ptr), got ('!tile.tensor_map', '!tile.tensor_map', '!tile.tensor_map', '!tile.tensor_map', '!llvm.ptr<1>') (tile-C5)}}
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr<1>):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C6
// expected-error @+1 {{'tile.kernel' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
}

// -----

// tile-C6
// expected-error @+1 {{'tile.kernel' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
}

// -----

// tile-C6
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.consumers' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C6
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.producer' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C6
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
  // expected-error @+1 {{'tile.consumers' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C6
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.ring' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
  %r = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C6
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'arith.constant' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
  %c = arith.constant 0 : i32
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C8
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.ring' op arrivals is expected to be 1 to 1048575, got 0 (tile-C8)}}
  %r = tile.ring arrivals(0) : !tile.ring<2 x 64x64xbf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C8
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.ring' op arrivals is expected to be 1 to 1048575, got 1048576 (tile-C8)}}
  %r = tile.ring arrivals(1048576) : !tile.ring<2 x 64x64xbf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C8
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.ring' op arrivals is expected to be 1 to 1048575, got -4 (tile-C8)}}
  %r = tile.ring arrivals(-4) : !tile.ring<2 x 64x64xbf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C9
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.producer' op registers is expected to be a multiple of 8 from 24 to 256, got 16 (tile-C9)}}
  tile.producer registers(16) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C9
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.producer' op registers is expected to be a multiple of 8 from 24 to 256, got 28 (tile-C9)}}
  tile.producer registers(28) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C9
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.producer' op registers is expected to be a multiple of 8 from 24 to 256, got 264 (tile-C9)}}
  tile.producer registers(264) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C9
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.producer' op registers is expected to be a multiple of 8 from 24 to 256, got -8 (tile-C9)}}
  tile.producer registers(-8) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C9
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.consumers' op registers is expected to be a multiple of 8 from 24 to 256, got 241 (tile-C9)}}
  tile.consumers groups(2) registers(241) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C9
// expected-error @+1 {{'tile.kernel' op the roles want 512 registers a thread of each warpgroup together, 504 are there (tile-C9)}}
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(32) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C9
// expected-error @+1 {{'tile.kernel' op the roles want 520 registers a thread of each warpgroup together, 512 are there (tile-C9)}}
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(40) {
  }
  tile.consumers groups(3) registers(160) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C10
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.consumers' op groups is expected to be 1 to 7, got 0 (tile-C10)}}
  tile.consumers groups(0) registers(24) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C10
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.consumers' op groups is expected to be 1 to 7, got 8 (tile-C10)}}
  tile.consumers groups(8) registers(24) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C10
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.consumers' op groups is expected to be 1 to 7, got -1 (tile-C10)}}
  tile.consumers groups(-1) registers(24) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C10
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.consumers' op expected one argument of type i32 (tile-C10)}}
  tile.consumers groups(2) registers(24) {
  }
}

// -----

// tile-C10
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.consumers' op expected one argument of type i32 (tile-C10)}}
  tile.consumers groups(2) registers(24) {
  ^bb0(%group: index):
  }
}

// -----

// tile-C10
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.producer' op takes no argument, got 1 (tile-C10)}}
  tile.producer registers(24) {
  ^bb0(%lane: i32):
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C6
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.loader {
  }
  tile.loader {
  }
  tile.loader {
  }
  // expected-error @+1 {{'tile.loader' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
  tile.loader {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C6
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.loader' op a kernel holds rings and queues, then one tile.producer, then up to three tile.loader, then one tile.consumers (tile-C6)}}
  tile.loader {
  }
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C10
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  // expected-error @+1 {{'tile.loader' op takes no argument, got 1 (tile-C10)}}
  tile.loader {
  ^bb0(%warp: i32):
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C7
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %n = tile.queue arrivals(8) : !tile.queue<2 x 4>
  tile.producer registers(24) {
    %c = arith.constant 0 : i32
    // expected-error @+1 {{'tile.front' op must stand in a tile.loader or a tile.consumers and not in a map (tile-C7)}}
    tile.front %n[%c] : !tile.queue<2 x 4>
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C7
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.loader {
    %c = arith.constant 1 : i32
    // expected-error @+1 {{'tile.claim' op must stand in a tile.producer (tile-C7)}}
    %n = tile.claim %args of %c : !llvm.ptr
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C7
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    // expected-error @+1 {{'tile.from_lane' op must stand in a tile.producer or a tile.loader (tile-C7)}}
    %x = tile.from_lane %group of %group : i32
  }
}

// -----

// tile-C7
// expected-error @+1 {{'tile.block_id' op must stand in a tile.producer, a tile.loader or a tile.consumers (tile-C7)}}
%b = tile.block_id : i32

// -----

// tile-C7
%f = arith.constant 0.0 : f32
// expected-error @+1 {{'tile.ex2' op must stand in a tile.producer, a tile.loader or a tile.consumers (tile-C7)}}
%b = tile.ex2 %f : f32

// -----

// tile-C7
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
    %c = arith.constant 0 : i32
    // expected-error @+1 {{'tile.wait' op must stand in a tile.consumers and not in a map (tile-C7)}}
    tile.wait %k[%c] : !tile.ring<2 x 128x64xbf16>
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C7
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
    // expected-error @+1 {{'tile.acquire' op must stand in a tile.producer or a tile.loader (tile-C7)}}
    tile.acquire %k[%group] : !tile.ring<2 x 128x64xbf16>
  }
}

// -----

// tile-C7
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
    %s = tile.map_rows %r : !tile.rows<f32> -> !tile.rows<f32> {
    ^bb0(%x: f32, %row: i32):
      // expected-error @+1 {{'tile.fill' op must stand in a tile.consumers and not in a map (tile-C7)}}
      %t = tile.fill %x : f32 -> !tile.rows<f32>
      tile.yield %x : f32
    }
  }
}

// -----

// tile-C11
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
    scf.while (%r = %k) : (!tile.ring<2 x 128x64xbf16>) -> (!tile.ring<2 x 128x64xbf16>) {
      %c = arith.constant false
      scf.condition(%c) %r : !tile.ring<2 x 128x64xbf16>
    } do {
    ^bb0(%r: !tile.ring<2 x 128x64xbf16>):
      // expected-error @+1 {{'tile.wait' op expected a ring that is the result of a tile.ring (tile-C11)}}
      tile.wait %r[%group] : !tile.ring<2 x 128x64xbf16>
      scf.yield %r : !tile.ring<2 x 128x64xbf16>
    }
  }
}

// -----

// tile-C11
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !tile.ring<2 x 64x64xbf16>
  %k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
  %h = tile.ring arrivals(8) : !tile.ring<2 x 128x128xf16>
  tile.producer registers(24) {
    %c = arith.constant 0 : i32
    scf.while (%m = %mq) : (!tile.tensor_map) -> (!tile.tensor_map) {
      %d = arith.constant false
      scf.condition(%d) %m : !tile.tensor_map
    } do {
    ^bb0(%m: !tile.tensor_map):
      // expected-error @+1 {{'tile.copy' op expected a tensor map that is an argument of the kernel (tile-C11)}}
      tile.copy %m[%c, %c, %c, %c] to %k[%c] at %c : !tile.ring<2 x 128x64xbf16>
      scf.yield %m : !tile.tensor_map
    }
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C8
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // expected-error @+1 {{'tile.queue' op arrivals is expected to be 1 to 1048575, got 0 (tile-C8)}}
  %n = tile.queue arrivals(0) : !tile.queue<2 x 4>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C11
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %n = tile.queue arrivals(8) : !tile.queue<2 x 4>
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    scf.while (%r = %n) : (!tile.queue<2 x 4>) -> (!tile.queue<2 x 4>) {
      %c = arith.constant false
      scf.condition(%c) %r : !tile.queue<2 x 4>
    } do {
    ^bb0(%r: !tile.queue<2 x 4>):
      // expected-error @+1 {{'tile.pop' op expected a queue that is the result of a tile.queue (tile-C11)}}
      tile.pop %r[%group] : !tile.queue<2 x 4>
      scf.yield %r : !tile.queue<2 x 4>
    }
  }
}

// -----

// tile-C29
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %n = tile.queue arrivals(8) : !tile.queue<2 x 1>
  tile.producer registers(24) {
    %i = arith.constant 1 : i32
    // expected-error @+1 {{'tile.push' op expected a multiple of four values, up to 4 for the rows of a stage, got 3 (tile-C29)}}
    tile.push %i, %i, %i and %i rows of %args to %n[%i] : !llvm.ptr, !tile.queue<2 x 1>
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C29
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %n = tile.queue arrivals(8) : !tile.queue<2 x 1>
  tile.producer registers(24) {
    %i = arith.constant 1 : i32
    // expected-error @+1 {{'tile.push' op expected a multiple of four values, up to 4 for the rows of a stage, got 8 (tile-C29)}}
    tile.push %i, %i, %i, %i, %i, %i, %i, %i and %i rows of %args to %n[%i] : !llvm.ptr, !tile.queue<2 x 1>
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}

// -----

// tile-C29
tile.kernel @f words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %n = tile.queue arrivals(8) : !tile.queue<2 x 34>
  tile.producer registers(24) {
    %i = arith.constant 1 : i32
    // expected-error @+1 {{'tile.push' op copies up to 32 rows, the stage has room for 33 (tile-C29)}}
    tile.push %i, %i, %i, %i and %i rows of %args to %n[%i] : !llvm.ptr, !tile.queue<2 x 34>
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
  }
}
