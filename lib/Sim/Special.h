// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Special registers (PTX ISA, "Special registers"), named once for parser, decoder and machine.
#ifndef ATTN_LIB_SIM_SPECIAL_H
#define ATTN_LIB_SIM_SPECIAL_H

#include <cstdint>
#include <string_view>

namespace attn::sim {

enum class Special : uint8_t {
  Tid,
  Ntid,
  Ctaid,
  Nctaid,
  Clusterid,
  Nclusterid,
  ClusterCtaid,
  ClusterNctaid,
  LaneId,
  WarpId,
  NumWarps,
  ClusterRank,
  ClusterSize,
  ExplicitCluster,
  MaskEq,
  MaskLe,
  MaskLt,
  MaskGe,
  MaskGt,
  TotalShared,
  DynamicShared,
  Unsupported ///< time, and where on the device a thread runs
};

struct SpecialName {
  std::string_view name;
  Special id;
  bool axes = false; ///< has parts .x, .y and .z
};
/// Null: there is no such register.
const SpecialName *findSpecial(std::string_view name);

} // namespace attn::sim

#endif // ATTN_LIB_SIM_SPECIAL_H
