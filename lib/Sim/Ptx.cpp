// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Sim/Ptx.h"
#include "PtxParser.h"

namespace attn::sim {

int64_t byteSize(PtxType type) {
  switch (type) {
  case PtxType::Pred:
  case PtxType::B8:
  case PtxType::U8:
  case PtxType::S8:
    return 1;
  case PtxType::B16:
  case PtxType::U16:
  case PtxType::S16:
  case PtxType::F16:
  case PtxType::BF16:
    return 2;
  case PtxType::B32:
  case PtxType::U32:
  case PtxType::S32:
  case PtxType::F32:
    return 4;
  case PtxType::B64:
  case PtxType::U64:
  case PtxType::S64:
  case PtxType::F64:
    return 8;
  case PtxType::B128:
    return 16;
  }
  return 0;
}

std::string PtxInstruction::mnemonic() const {
  std::string result = opcode;
  for (const std::string &modifier : modifiers)
    result.append(1, '.').append(modifier);
  return result;
}

const PtxKernel *PtxModule::find(std::string_view name) const {
  for (const PtxKernel &kernel : kernels)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

core::Result<PtxModule> parsePtx(std::string_view text) {
  if (text.size() > INT32_MAX)
    return core::Error{"PTX of " + std::to_string(text.size()) + " bytes, at most " +
                       std::to_string(INT32_MAX) + " are supported"};
  return PtxParser(text).parse();
}

} // namespace attn::sim
