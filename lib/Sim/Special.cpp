// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Special.h"

namespace attn::sim {

const SpecialName *findSpecial(std::string_view name) {
  static constexpr SpecialName kNames[] = {{"%tid", Special::Tid, true},
                                           {"%ntid", Special::Ntid, true},
                                           {"%ctaid", Special::Ctaid, true},
                                           {"%nctaid", Special::Nctaid, true},
                                           {"%clusterid", Special::Clusterid, true},
                                           {"%nclusterid", Special::Nclusterid, true},
                                           {"%cluster_ctaid", Special::ClusterCtaid, true},
                                           {"%cluster_nctaid", Special::ClusterNctaid, true},
                                           {"%laneid", Special::LaneId},
                                           {"%warpid", Special::WarpId},
                                           {"%nwarpid", Special::NumWarps},
                                           {"%cluster_ctarank", Special::ClusterRank},
                                           {"%cluster_nctarank", Special::ClusterSize},
                                           {"%is_explicit_cluster", Special::ExplicitCluster},
                                           {"%lanemask_eq", Special::MaskEq},
                                           {"%lanemask_le", Special::MaskLe},
                                           {"%lanemask_lt", Special::MaskLt},
                                           {"%lanemask_ge", Special::MaskGe},
                                           {"%lanemask_gt", Special::MaskGt},
                                           {"%total_smem_size", Special::TotalShared},
                                           {"%dynamic_smem_size", Special::DynamicShared},
                                           {"%aggr_smem_size", Special::Unsupported},
                                           {"%smid", Special::Unsupported},
                                           {"%nsmid", Special::Unsupported},
                                           {"%gridid", Special::Unsupported},
                                           {"%clock", Special::Unsupported},
                                           {"%clock_hi", Special::Unsupported},
                                           {"%clock64", Special::Unsupported},
                                           {"%globaltimer", Special::Unsupported},
                                           {"%globaltimer_lo", Special::Unsupported},
                                           {"%globaltimer_hi", Special::Unsupported}};
  for (const SpecialName &entry : kNames)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

} // namespace attn::sim
