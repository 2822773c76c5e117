// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types: names and exact conversions.
#include "attn/Core/Tensor.h"

#include <cstring>

namespace attn::core {

std::string_view toString(DType type) {
  switch (type) {
  case DType::F32:
    return "f32";
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  }
  return "";
}

std::optional<DType> parseDType(std::string_view text) {
  for (DType type : {DType::F32, DType::F16, DType::BF16})
    if (toString(type) == text)
      return type;
  return std::nullopt;
}

int64_t byteSize(DType type) { return type == DType::F32 ? 4 : 2; }

static float floatOf(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}

static uint32_t bitsOf(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  return bits;
}

static float fromHalf(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  uint32_t exponent = (h >> 10) & 31, fraction = h & 0x3FF;
  if (exponent == 31)
    return floatOf(sign | 0x7F800000 | (fraction << 13));
  if (exponent > 0)
    return floatOf(sign | ((exponent + 112) << 23) | (fraction << 13));
  // Subnormal: fraction * 2^-24 is exact in f32.
  float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return floatOf(sign | bitsOf(magnitude));
}

/// `value >> shift`, rounded to nearest, ties to even; 1 <= shift <= 31.
static uint32_t shiftRounded(uint32_t value, int shift) {
  uint32_t kept = value >> shift, rest = value & ((uint32_t(1) << shift) - 1);
  uint32_t half = uint32_t(1) << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint16_t toHalf(float f) {
  uint32_t bits = bitsOf(f);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) // NaN: keep the top of the payload, and stay a NaN.
    return static_cast<uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF));
  if (magnitude >= 0x47800000) // 2^16 and above, infinity included.
    return sign | 0x7C00;
  if (magnitude >= 0x38800000) // Normal in half; a carry out of the fraction may give infinity.
    return static_cast<uint16_t>(sign + shiftRounded(magnitude - (uint32_t(112) << 23), 13));
  int exponent = static_cast<int>(magnitude >> 23);
  if (exponent < 102) // Below half of the smallest subnormal.
    return sign;
  uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
  return static_cast<uint16_t>(sign | shiftRounded(fraction, 126 - exponent));
}

static uint16_t toBFloat(float f) {
  uint32_t bits = bitsOf(f);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>(shiftRounded(bits, 16));
}

float loadElement(const void *data, DType type, int64_t index) {
  const char *at = static_cast<const char *>(data) + index * byteSize(type);
  if (type == DType::F32) {
    float f;
    std::memcpy(&f, at, sizeof(f));
    return f;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return type == DType::F16 ? fromHalf(bits) : floatOf(static_cast<uint32_t>(bits) << 16);
}

void storeElement(void *data, DType type, int64_t index, float value) {
  char *at = static_cast<char *>(data) + index * byteSize(type);
  if (type == DType::F32) {
    std::memcpy(at, &value, sizeof(value));
    return;
  }
  uint16_t bits = type == DType::F16 ? toHalf(value) : toBFloat(value);
  std::memcpy(at, &bits, sizeof(bits));
}

} // namespace attn::core
