// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of one CTA. Every lane has a program counter; a warp runs the lanes at the lowest rank
// (Reconverge.cpp), which brings them together again. Asynchronous operations wait in queues until
// the policy, or a warp that needs them, lets them take effect.
#ifndef ATTN_SIM_MACHINE_H
#define ATTN_SIM_MACHINE_H

#include "Clock.h"
#include "Program.h"
#include "Shadow.h"

#include "attn/Sim/Sim.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace attn::sim {

class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t bound) { return next() % bound; }

private:
  uint64_t state;
};

/// A product of one warp: its 16 rows of the warpgroup's 64.
struct Product {
  const Instr *instr = nullptr;
  uint32_t number = 0; ///< in the stream of the warp, from 1
  uint64_t a = 0, b = 0;
  bool accumulate = true;
};

/// Operands and sums of one product, as floats.
struct ProductTiles {
  static constexpr int kRows = 16, kMostColumns = 256, kMostDepth = 32;
  float a[kRows][kMostDepth];
  float b[kMostDepth][kMostColumns];
  float sum[kRows][kMostColumns];
};

/// Bulk copies of one warp that no wait of their lane has covered.
struct BulkOp {
  uint32_t number;
  int lane;
  uint32_t group; ///< of the lane, from 1; 0: not committed
};

struct Warp {
  enum class Wait : uint8_t { None, Mbarrier, Named, Products, Registers };

  int index = 0;
  uint32_t lanes = 0; ///< that exist
  uint32_t live = 0;
  uint32_t parked = 0;   ///< lanes that wait for an mbarrier
  bool converged = true; ///< all live lanes are at `pc`
  int32_t pc = 0;
  int32_t pcs[32] = {};
  uint8_t *registers = nullptr;
  const uint8_t *constants = nullptr;

  Clock clock, proxy;
  /// Release of everything before the last fence, and what relaxed reads saw since (fences).
  Clock fenceRelease, pendingAcquire;

  Wait wait = Wait::None;
  bool resumed = false;     ///< what the warp waited for has come; the handler runs again
  uint32_t waitAddress = 0; ///< of the mbarrier
  uint32_t waitPhase = 0;   ///< parity, or number of the named barrier
  uint64_t failedKey = 0;   ///< place and barrier state of the last wait that failed
  bool polling = false;     ///< parked by a test, which does not wait by itself

  uint32_t registerCount = 0; ///< a thread, for setmaxnreg

  // Products. A register is in flight if the number is past `productsRetired`.
  std::deque<Product> products;
  uint32_t productsIssued = 0, productsRetired = 0, productsDone = 0;
  int32_t lastProductLine = 0;
  std::deque<uint32_t> productGroups; ///< last number of each open group
  std::vector<uint32_t> flight;       ///< a register: number of the product that uses it
  std::vector<int32_t> flightLine;
  std::vector<uint32_t> flightUse; ///< accumulator of n columns: n; A: 0
  uint64_t now = 1, wgmmaFence = 0;
  std::vector<uint64_t> touched; ///< a register: last time a plain instruction used it
  std::vector<int32_t> touchedLine;

  int32_t lastCopyLine = 0;
  uint32_t bulkIssued = 0;
  uint32_t bulkCommitted[32] = {};
  std::vector<BulkOp> bulkOpen;
  uint32_t cpIssued = 0, cpCommitted = 0;
  std::deque<uint32_t> cpGroups;

  uint8_t *operand(int32_t offset) const {
    return offset >= 0 ? registers + offset : const_cast<uint8_t *>(constants) + ~offset;
  }
  uint32_t *words(int32_t offset) const { return reinterpret_cast<uint32_t *>(operand(offset)); }
  uint64_t *longs(int32_t offset) const { return reinterpret_cast<uint64_t *>(operand(offset)); }
  uint64_t value(int32_t offset, bool wide, int lane) const {
    return wide ? longs(offset)[lane] : words(offset)[lane];
  }
  /// What follows is not ordered by releases so far.
  void tick() { clock.raise(index, clock.get(index) + 1); }
  bool runnable() const { return wait == Wait::None && (live & ~parked) != 0; }
};

struct Mbarrier {
  bool live = false;
  uint32_t offset = 0; ///< in shared memory
  uint32_t agent = 0;  ///< of its copies; time: number of the phase + 1
  int64_t expected = 0, pending = 0, tx = 0;
  uint32_t phase = 0; ///< that runs
  Clock arriving, arrivingProxy, completed, completedProxy;
  uint32_t initAgent = 0, initTime = 0;
  int32_t initLine = 0;
  bool initFenced = false;
  int copies = 0; ///< issued, not complete
  int32_t lastCopyLine = 0;
  uint32_t lastCopyTime = 0; ///< time at which the last copy is complete
  std::vector<int64_t> seen; ///< a warp: phase of its last successful wait, -2: none
};

struct NamedBarrier {
  int64_t expected = 0; ///< threads; 0: idle
  bool everybody = false;
  int64_t arrived = 0;
  int32_t line = 0;
  Clock clock, proxy;
  std::vector<int> waiters;
};

struct LaneCopy {
  uint32_t offset;
  uint64_t from;
  uint32_t bytes, fromBytes;
};

/// A copy under way.
struct Copy {
  enum class Kind : uint8_t { TensorLoad, TensorStore, BulkLoad, BulkStore, CpAsync, CpArrive };
  Kind kind = Kind::BulkLoad;
  int warp = 0;
  uint32_t number = 0; ///< in the stream of the warp (bulk or cp.async)
  int32_t line = 0;
  int barrier = -1; ///< of loads
  TensorMap map;
  std::array<int64_t, 5> at{};
  uint32_t offset = 0;
  uint64_t global = 0;
  uint32_t bytes = 0;
  uint32_t done = 0, steps = 1; ///< rows, or pieces
  std::vector<LaneCopy> lanes;
  bool load() const { return kind == Kind::TensorLoad || kind == Kind::BulkLoad; }
};

/// What the CTAs of a launch share.
struct Grid {
  Grid(const Launch &launch, const Program &program) : launch(launch), program(program) {}

  const Launch &launch;
  const Program &program;
  std::vector<GlobalBuffer> buffers; ///< by address
  std::vector<uint8_t> params;
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> reportCount{0};
  std::atomic<bool> stop{false};
  std::mutex atomics; ///< on global memory

  /// Host memory of [address, address + bytes) or null.
  uint8_t *find(uint64_t address, uint64_t bytes, bool write, size_t &hint) const;
  std::string describe(uint64_t address) const;
};

struct Cta {
  Cta(Grid &grid, int32_t index);

  Grid &grid;
  const Program &program;
  int32_t index;
  std::array<uint32_t, 3> id{};
  int numWarps;
  std::vector<Warp> warps;
  std::vector<uint8_t> registerFile;
  uint32_t sharedBytes;
  std::vector<uint8_t> shared, local;
  Shadow shadow;
  std::vector<Mbarrier> barriers;
  std::map<uint32_t, int> barrierAt; ///< by offset, dead ones included
  NamedBarrier named[16];
  std::vector<Copy> copies;
  std::map<uint32_t, std::pair<Clock, Clock>> strongClocks; ///< atomics on shared memory
  int64_t registerPool = 65536;
  /// Line and operands of the products of every warpgroup, by number, while some warp lacks them.
  std::vector<std::deque<std::tuple<uint32_t, int32_t, uint64_t, uint64_t>>> issuedProducts;
  Counters counters;
  uint64_t classes[kNumClasses] = {};
  std::vector<Report> reports;
  std::set<std::tuple<Report::Kind, int32_t, int32_t>> reported;
  Random random;
  bool stopped = false; ///< nothing more can be learned
  bool finished = false;
  uint64_t progress = 0; ///< counts changes of barriers, for polls
  size_t bufferHint = 0;
  std::vector<Warp *> runnable; ///< scratch
  std::unique_ptr<ProductTiles> tiles = std::make_unique<ProductTiles>();

  void run();
  Counters allCounters() const;

  // Agents of the clocks.
  uint32_t productAgent(int warp) const { return numWarps + warp; }
  uint32_t bulkAgent(int warp) const { return 2 * numWarps + warp; }
  uint32_t cpAgent(int warp) const { return 3 * numWarps + warp; }
  uint32_t barrierAgent(int barrier) const { return 4 * numWarps + barrier; }
  Access access(const Warp &warp, const Instr &in) const;

  void report(Report::Kind kind, int warp, int32_t line, int32_t other, uint64_t address,
              const std::string &text);
  /// As report, and the CTA ends.
  void fail(Report::Kind kind, int warp, int32_t line, const std::string &text);

  // Synchronisation (Barriers.cpp).
  int barrierOf(Warp &warp, const Instr &in, uint64_t address, bool forCopy);
  void arrive(int barrier, Warp &warp, int32_t line, int64_t count, bool release);
  void expectTx(int barrier, Warp &warp, int32_t line, int64_t bytes);
  void completeTx(int barrier, int warp, int32_t line, int64_t bytes);
  void checkPhase(int barrier, int warp, int32_t line);
  void checkNamed(int id);
  void wakeRegisters();
  void exitLanes(Warp &warp, uint32_t mask, int32_t line);

  // Asynchronous operations.
  void start(Copy &&copy, Warp &warp, const Instr &in, int lane);
  void issue(Copy &&copy); ///< takes effect as the policy says
  /// Does `steps` pieces of copy `i`; removes it when it is complete.
  void advance(size_t i, uint32_t steps);
  void moveRows(Copy &copy, uint32_t steps);
  /// Effects of copies of a stream up to `number`.
  void force(int warp, Copy::Kind a, Copy::Kind b, uint32_t number);
  bool productReady(const Warp &warp) const; ///< the oldest one
  void runProduct(Warp &warp);
  void issuedProduct(Warp &warp);

  // Memory.
  /// Bytes of shared memory at `address`, or null after a report.
  uint8_t *sharedAt(Warp &warp, const Instr &in, uint64_t address, uint32_t bytes, uint32_t align,
                    const char *verb);
  uint8_t *globalAt(int warp, int32_t line, uint64_t address, uint32_t bytes, bool write,
                    const char *what);

private:
  void runWarp(Warp &warp, uint64_t limit);
  uint32_t pick(Warp &warp);
  void jump(Warp &warp, const Instr &in, uint32_t mask, uint32_t taken);
  void stay(Warp &warp, uint32_t mask, uint32_t waiting);
  void touch(Warp &warp, const Instr &in);
  bool forceOne();
  void forceRandom();
  bool wakePolls();
  void deadlock();
  void finish();
  std::string waitText(const Warp &warp) const;
};

Counters sum(const Counters &a, const Counters &b);

std::string hexText(uint64_t value);
std::string sharedText(uint64_t offset); ///< "shared+0x400"

/// A tensor map out of the bytes of a parameter; false: those are none.
bool decodeTensorMap(const uint8_t *bytes, TensorMap &map);
uint32_t boxBytes(const TensorMap &map);

} // namespace attn::sim

#endif // ATTN_SIM_MACHINE_H
