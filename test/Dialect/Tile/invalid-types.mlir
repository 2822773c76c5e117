// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -split-input-file -verify-diagnostics

// tile-C1
// expected-error @+1 {{a fragment has 64 rows, got 32 (tile-C1)}}
llvm.mlir.global external @g() {type = !tile.fragment<32x64xf32, acc>} : i32

// -----

// tile-C1
// expected-error @+1 {{columns of an acc fragment are a multiple of 8 up to 256, got 12 (tile-C1)}}
llvm.mlir.global external @g() {type = !tile.fragment<64x12xf32, acc>} : i32

// -----

// tile-C1
// expected-error @+1 {{columns of an acc fragment are a multiple of 8 up to 256, got 0 (tile-C1)}}
llvm.mlir.global external @g() {type = !tile.fragment<64x0xf32, acc>} : i32

// -----

// tile-C1
// expected-error @+1 {{columns of an acc fragment are a multiple of 8 up to 256, got 264 (tile-C1)}}
llvm.mlir.global external @g() {type = !tile.fragment<64x264xf32, acc>} : i32

// -----

// tile-C1
// expected-error @+1 {{columns of an operand fragment are a multiple of 16 up to 256, got 24 (tile-C1)}}
llvm.mlir.global external @g() {type = !tile.fragment<64x24xbf16, operand>} : i32

// -----

// tile-C1
// expected-error @+1 {{elements of an acc fragment are f32, got 'bf16' (tile-C1)}}
llvm.mlir.global external @g() {type = !tile.fragment<64x64xbf16, acc>} : i32

// -----

// tile-C1
// expected-error @+1 {{elements of an operand fragment are f16 or bf16, got 'f32' (tile-C1)}}
llvm.mlir.global external @g() {type = !tile.fragment<64x64xf32, operand>} : i32

// -----

// tile-C2
// expected-error @+1 {{values of rows are f32, index, i1, i8, i16, i32 or i64, got 'f64' (tile-C2)}}
llvm.mlir.global external @g() {type = !tile.rows<f64>} : i32

// -----

// tile-C2
// expected-error @+1 {{values of partial rows are f32, got 'i32' (tile-C2)}}
llvm.mlir.global external @g() {type = !tile.rows<i32, partial>} : i32

// -----

// tile-C3
// expected-error @+1 {{bits have 64 rows, got 128 (tile-C3)}}
llvm.mlir.global external @g() {type = !tile.bits<128x64>} : i32

// -----

// tile-C3
// expected-error @+1 {{columns of bits are a multiple of 8 up to 256, got 257 (tile-C3)}}
llvm.mlir.global external @g() {type = !tile.bits<64x257>} : i32

// -----

// tile-C4
// expected-error @+1 {{a ring has 1 to 32 stages, got 0 (tile-C4)}}
llvm.mlir.global external @g() {type = !tile.ring<0 x 64x64xbf16>} : i32

// -----

// tile-C4
// expected-error @+1 {{rows of a ring are a multiple of 8 up to 256, got 4 (tile-C4)}}
llvm.mlir.global external @g() {type = !tile.ring<1 x 4x64xbf16>} : i32

// -----

// tile-C4
// expected-error @+1 {{columns of a ring are a multiple of 64 up to 512, got 96 (tile-C4)}}
llvm.mlir.global external @g() {type = !tile.ring<1 x 64x96xbf16>} : i32

// -----

// tile-C4
// expected-error @+1 {{elements of a ring are f16 or bf16, got 'f32' (tile-C4)}}
llvm.mlir.global external @g() {type = !tile.ring<1 x 64x64xf32>} : i32

// -----

// tile-C26
// expected-error @+1 {{a queue has 1 to 32 stages, got 0 (tile-C26)}}
llvm.mlir.global external @g() {type = !tile.queue<0 x 4>} : i32

// -----

// tile-C26
// expected-error @+1 {{a stage of a queue has 1 to 64 rows, got 65 (tile-C26)}}
llvm.mlir.global external @g() {type = !tile.queue<2 x 65>} : i32

// -----

// shape
// expected-error @+1 {{expected rows x columns, got 1 dimensions}}
llvm.mlir.global external @g() {type = !tile.bits<64>} : i32
