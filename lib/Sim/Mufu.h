// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What Hopper's special function unit (MUFU in SASS) computes, bit for bit. Each takes subnormal
// numbers as 0 and gives none, except tanh.
#ifndef ATTN_SIM_MUFU_H
#define ATTN_SIM_MUFU_H

namespace attn::sim::mufu {

float ex2(float x);
float lg2(float x);
float rcp(float x);
float rsqrt(float x);
float sqrt(float x);
float tanh(float x);

} // namespace attn::sim::mufu

#endif // ATTN_SIM_MUFU_H
