// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Asynchronous Warpgroup Level Matrix Instructions". Each warp of a warpgroup does the 16
// rows of the product that are its own, once all four have issued it.
#include "Handlers.h"
#include "Lanes.h"
#include "Machine.h"

#include <cmath>

using namespace attn::sim;

using Type = WgmmaShape::Type;

namespace {

/// A matrix in shared memory as its descriptor says; see "Matrix Descriptor Format".
struct Matrix {
  uint32_t start, leading, stride;
  uint32_t span; ///< bytes of a swizzled row, or 0
  bool transposed;
  int elementBytes;

  Matrix(uint64_t descriptor, bool transposed, int elementBytes)
      : start((descriptor & 0x3FFF) << 4), leading((descriptor >> 16 & 0x3FFF) << 4),
        stride((descriptor >> 32 & 0x3FFF) << 4), transposed(transposed),
        elementBytes(elementBytes) {
    static constexpr uint32_t spans[] = {0, 128, 64, 32};
    span = spans[descriptor >> 62];
  }

  /// Address of the 16 bytes that hold element `k` of row (or column) `mn`: along k, or along mn if
  /// transposed.
  uint32_t chunk(uint32_t mn, uint32_t k) const {
    uint32_t at = start;
    if (!transposed) {
      const uint32_t byte = k * elementBytes;
      at += mn / 8 * stride;
      at += span ? mn % 8 * span + byte : mn % 8 * 16 + byte / 16 * leading;
    } else if (span) {
      const uint32_t across = span / elementBytes;
      at += mn / across * leading + k / 8 * stride + k % 8 * span + mn % across * elementBytes;
    } else {
      at += mn / 8 * stride + k / 8 * leading + k % 8 * 16;
    }
    at &= 0x3FFF0;
    return span ? at ^ (at >> 3 & (span - 16)) : at;
  }
};

/// `f(mn, k, address)` for every 16-byte chunk of `count` rows from `first`.
template <class F>
void forChunks(const Matrix &matrix, int first, int count, int depth, F f) {
  const int step = 16 / matrix.elementBytes;
  for (int mn = first; mn < first + count; mn += matrix.transposed ? step : 1)
    for (int k = 0; k < depth; k += matrix.transposed ? 1 : step)
      f(mn, k, matrix.chunk(mn, k));
}

float toFloat8(uint8_t bits, int exponentBits, int bias) {
  const int mantissaBits = 7 - exponentBits;
  const int exponent = bits >> mantissaBits & ((1 << exponentBits) - 1);
  const int mantissa = bits & ((1 << mantissaBits) - 1);
  float value;
  if (exponentBits == 5 && exponent == 31)
    value = mantissa ? NAN : INFINITY;
  else if (exponentBits == 4 && (bits & 0x7F) == 0x7F)
    value = NAN;
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissaBits);
  else
    value = std::ldexp(static_cast<float>(mantissa + (1 << mantissaBits)),
                       exponent - bias - mantissaBits);
  return bits & 0x80 ? -value : value;
}

/// The 16-byte chunk as floats; returns how many.
int widen(const uint8_t *chunk, Type type, bool negate, float *to) {
  const bool half = type == Type::F16 || type == Type::BF16;
  const int count = half ? 8 : 16;
  uint16_t words[8];
  std::memcpy(words, chunk, 16);
  if (type == Type::BF16)
    for (int i = 0; i < 8; ++i)
      to[i] = toFloat(BF16{words[i]});
  else if (type == Type::F16)
    for (int i = 0; i < 8; ++i)
      to[i] = toFloat(F16{words[i]});
  else
    for (int i = 0; i < 16; ++i)
      to[i] = type == Type::E4M3 ? toFloat8(chunk[i], 4, 7) : toFloat8(chunk[i], 5, 15);
  if (negate)
    for (int i = 0; i < count; ++i)
      to[i] = -to[i];
  return count;
}

int elementBytes(Type type) { return type == Type::F16 || type == Type::BF16 ? 2 : 1; }

using Tiles = ProductTiles;
constexpr int kRows = Tiles::kRows;

/// Rows of A out of registers: see the figures of fragment A in the ISA. Four registers hold the
/// rows lane / 4 and 8 more, for the low and the high half of k.
void loadRegistersA(const Warp &warp, const WgmmaShape &shape, const int32_t *list, Tiles &tiles) {
  const int perRegister = 4 / elementBytes(shape.a);
  for (int r = 0; r < 4; ++r)
    for (int lane = 0; lane < 32; ++lane) {
      uint8_t chunk[16] = {};
      float values[16];
      std::memcpy(chunk, &warp.words(list[r])[lane], 4);
      widen(chunk, shape.a, shape.negateA, values);
      const int row = lane / 4 + r % 2 * 8;
      const int k = r / 2 * shape.k / 2 + lane % 4 * perRegister;
      for (int i = 0; i < perRegister; ++i)
        tiles.a[row][k + i] = values[i];
    }
}

/// Accumulators between registers and rows: register 4j + i of a lane has row lane / 4 + (i / 2) *
/// 8 and column 8j + lane % 4 * 2 + i % 2.
template <bool store>
void moveAccumulators(Warp &warp, const WgmmaShape &shape, const int32_t *list, Tiles &tiles) {
  for (int r = 0; r < shape.n / 2; ++r) {
    if (list[r] == kNoOperand)
      continue;
    uint32_t *words = warp.words(list[r]);
    for (int lane = 0; lane < 32; ++lane) {
      float &value = tiles.sum[lane / 4 + (r >> 1 & 1) * 8][r / 4 * 8 + lane % 4 * 2 + (r & 1)];
      if (store)
        std::memcpy(&words[lane], &value, 4);
      else
        std::memcpy(&value, &words[lane], 4);
    }
  }
}

} // namespace

bool Cta::productReady(const Warp &warp) const {
  if (warp.products.empty())
    return false;
  const int first = warp.index / 4 * 4;
  for (int i = first; i < first + 4; ++i)
    if (warps[i].productsIssued < warp.products.front().number)
      return false;
  return true;
}

void Cta::runProduct(Warp &warp) {
  const Product product = warp.products.front();
  warp.products.pop_front();
  warp.productsDone = product.number;
  const WgmmaShape &shape = program.shapes[product.instr->imm];
  const int32_t *list = &program.lists[product.instr->listBegin];
  Tiles &rows = *tiles;
  auto bytesAt = [&](uint32_t address) {
    static const uint8_t outside[16] = {};
    const uint64_t offset = uint64_t(address) - kSharedBase;
    return address >= kSharedBase && offset + 16 <= sharedBytes ? &shared[offset] : outside;
  };
  if (shape.registersA) {
    loadRegistersA(warp, shape, list + shape.n / 2, rows);
  } else {
    const Matrix a(product.a, shape.transposeA, elementBytes(shape.a));
    const int first = warp.index % 4 * kRows;
    forChunks(a, first, kRows, shape.k, [&](int m, int k, uint32_t address) {
      float values[16];
      const int count = widen(bytesAt(address), shape.a, shape.negateA, values);
      for (int i = 0; i < count; ++i)
        rows.a[m - first + (a.transposed ? i : 0)][k + (a.transposed ? 0 : i)] = values[i];
    });
  }
  const Matrix b(product.b, shape.transposeB, elementBytes(shape.b));
  forChunks(b, 0, shape.n, shape.k, [&](int n, int k, uint32_t address) {
    float values[16];
    const int count = widen(bytesAt(address), shape.b, shape.negateB, values);
    for (int i = 0; i < count; ++i)
      rows.b[k + (b.transposed ? 0 : i)][n + (b.transposed ? i : 0)] = values[i];
  });
  if (product.accumulate)
    moveAccumulators<false>(warp, shape, list, rows);
  else
    for (auto &row : rows.sum)
      std::fill(row, row + shape.n, 0.0f);
  multiply(shape, rows);
  moveAccumulators<true>(warp, shape, list, rows);
}

/// Registers that somebody else still uses, or that no fence has handed over.
static void checkRegisters(Cta &cta, Warp &warp, const Instr &in, const WgmmaShape &shape) {
  const uint32_t number = warp.productsIssued + 1;
  bool told = false;
  for (uint32_t i = 0; i < in.touchCount; ++i) {
    const int32_t reg = cta.program.touches[in.touchBegin + i];
    const uint32_t use = i < uint32_t(shape.n) / 2 ? shape.n : 0;
    if (warp.flight[reg] > warp.productsRetired && warp.flightUse[reg] != use)
      cta.report(Report::Kind::RegisterInFlight, warp.index, in.line, warp.flightLine[reg], 0,
                 std::string("uses ") + (use ? "an accumulator" : "a register of A") +
                     " that the product of line " + std::to_string(warp.flightLine[reg]) +
                     " uses otherwise: no wgmma.wait_group is between");
    if (!told && (warp.wgmmaFence == 0 || warp.touched[reg] > warp.wgmmaFence)) {
      told = true;
      cta.report(Report::Kind::MissingWgmmaFence, warp.index, in.line, warp.touchedLine[reg], 0,
                 warp.wgmmaFence == 0
                     ? std::string("issues its first product without a wgmma.fence")
                     : std::string("issues a product that uses a register which line ") +
                           std::to_string(warp.touchedLine[reg]) +
                           " uses: no wgmma.fence is between");
    }
    warp.flight[reg] = number;
    warp.flightUse[reg] = use;
    warp.flightLine[reg] = in.line;
  }
}

/// All four warps must issue the same products.
static void checkGroup(Cta &cta, Warp &warp, const Instr &in, const Product &product) {
  auto &issued = cta.issuedProducts[warp.index / 4];
  for (const auto &[number, line, a, b] : issued) {
    if (number != product.number)
      continue;
    if (line != in.line || a != product.a || b != product.b)
      cta.fail(Report::Kind::DivergentBarrier, warp.index, in.line,
               line != in.line
                   ? "issues a product where another warp of its warpgroup issued that of line " +
                         std::to_string(line)
                   : "issues a product with other descriptors than the warps of its warpgroup");
    return;
  }
  issued.emplace_back(product.number, in.line, product.a, product.b);
  uint32_t least = product.number;
  for (int i = warp.index / 4 * 4; i < warp.index / 4 * 4 + 4; ++i)
    least = std::min(least, cta.warps[i].productsIssued);
  while (std::get<0>(issued.front()) < least)
    issued.pop_front();
}

static void watchOperands(Cta &cta, Warp &warp, const Instr &in, const WgmmaShape &shape,
                          const Product &product) {
  Access self = cta.access(warp, in);
  self.what = Access::What::Product;
  self.agent = cta.productAgent(warp.index);
  self.time = product.number;
  cta.shadow.begin(self, warp.clock, warp.proxy);
  bool outside = false;
  auto read = [&](int, int, uint32_t address) {
    if (address < kSharedBase || uint64_t(address) - kSharedBase + 16 > cta.sharedBytes)
      outside = true;
    else
      cta.shadow.read(cta, address - kSharedBase, 16);
  };
  if (!shape.registersA)
    forChunks(Matrix(product.a, shape.transposeA, elementBytes(shape.a)), warp.index % 4 * kRows,
              kRows, shape.k, read);
  forChunks(Matrix(product.b, shape.transposeB, elementBytes(shape.b)), 0, shape.n, shape.k, read);
  if (outside)
    cta.report(Report::Kind::OutOfBounds, warp.index, in.line, 0, 0,
               "issues a product whose operands reach outside shared memory");
}

bool attn::sim::executeWgmma(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  const WgmmaShape &shape = cta.program.shapes[in.imm];
  if (mask != ~0u || warp.index / 4 * 4 + 4 > cta.numWarps) {
    cta.fail(Report::Kind::DivergentBarrier, warp.index, in.line,
             "issues a product without a whole warpgroup of threads");
    return true;
  }
  Product product;
  product.instr = &in;
  product.number = warp.productsIssued + 1;
  const uint32_t predicate = *warp.words(in.src[2]) ^ (in.negated ? ~0u : 0u);
  product.accumulate = predicate != 0;
  bool same = predicate == 0 || predicate == ~0u;
  for (int operand = 0; operand < 2; ++operand) {
    if (in.src[operand] == kNoOperand)
      continue;
    const uint64_t *values = warp.longs(in.src[operand]);
    (operand ? product.b : product.a) = values[0];
    for (int lane = 1; lane < 32; ++lane)
      same &= values[lane] == values[0];
    if (values[0] >> 49 & 7)
      cta.report(Report::Kind::Unsupported, warp.index, in.line, 0, 0,
                 "issues a product with a base offset in a descriptor");
  }
  if (!same) {
    cta.fail(Report::Kind::DivergentBarrier, warp.index, in.line,
             "issues a product whose lanes disagree on a descriptor or on scale-d");
    return true;
  }
  checkRegisters(cta, warp, in, shape);
  checkGroup(cta, warp, in, product);
  watchOperands(cta, warp, in, shape, product);
  warp.products.push_back(product);
  warp.productsIssued = product.number;
  warp.lastProductLine = in.line;
  cta.issuedProduct(warp);
  if (warp.index % 4 == 0) {
    ++cta.counters.wgmmas;
    cta.counters.mmaFlops += 2.0 * 64 * shape.n * shape.k;
  }
  return true;
}

void Cta::issuedProduct(Warp &warp) {
  const int first = warp.index / 4 * 4;
  for (int i = first; i < first + 4; ++i) {
    if (warps[i].wait == Warp::Wait::Products)
      warps[i].wait = Warp::Wait::None;
    while (grid.launch.policy.kind == Policy::Kind::Earliest && productReady(warps[i]))
      runProduct(warps[i]);
  }
}

bool attn::sim::executeWgmmaFence(Cta &, Warp &warp, const Instr &, uint32_t) {
  warp.wgmmaFence = warp.now++;
  return true;
}

bool attn::sim::executeWgmmaCommit(Cta &, Warp &warp, const Instr &, uint32_t) {
  warp.productGroups.push_back(warp.productsIssued);
  return true;
}

bool attn::sim::executeWgmmaWait(Cta &cta, Warp &warp, const Instr &in, uint32_t) {
  const size_t keep = static_cast<size_t>(in.imm);
  if (warp.productGroups.size() <= keep)
    return true;
  const uint32_t number = warp.productGroups[warp.productGroups.size() - 1 - keep];
  while (warp.productsDone < number) {
    if (!cta.productReady(warp)) {
      warp.wait = Warp::Wait::Products;
      return false;
    }
    cta.runProduct(warp);
  }
  warp.productsRetired = std::max(warp.productsRetired, number);
  warp.clock.raise(cta.productAgent(warp.index), number);
  while (warp.productGroups.size() > keep)
    warp.productGroups.pop_front();
  return true;
}
