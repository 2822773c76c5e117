// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of the CTAs of a cluster, which run together. Every lane has a program counter; a warp
// runs the lanes at the lowest rank (Reconverge.cpp), which brings them together again.
// Asynchronous operations wait in queues until the policy, or a warp that needs them, lets them
// take effect.
#ifndef ATTN_SIM_MACHINE_H
#define ATTN_SIM_MACHINE_H

#include "Clock.h"
#include "Program.h"
#include "Shadow.h"
#include "TensorCore.h"

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

struct Cta;

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

/// Bulk copies of one warp that no wait of their lane has covered.
struct BulkOp {
  uint32_t number;
  int lane;
  uint32_t group; ///< of the lane, from 1; 0: not committed
};

/// A load of shared memory whose registers nobody has used: when it reads is not known yet.
struct SharedLoad {
  uint64_t serial = 0;    ///< of the warp; 0: none is here
  uint32_t registers = 0; ///< that hold what it read
  uint32_t lanes = 0;     ///< that read
  uint32_t time = 0;      ///< of the warp, when it was issued
  uint32_t fenced = 0;    ///< at its first proxy fence since, 0: none
  int32_t line = 0;
  uint32_t bytes = 0; ///< a lane
  uint32_t addresses[32];
  Cta *owners[32];
  /// A copy that may have come first: a fault once the registers are used.
  Cta *copier = nullptr;
  Access copy;
  uint32_t copied = 0; ///< its first byte that was to be read
};

/// Where what a register holds comes from.
struct LoadTag {
  uint32_t load = 0;   ///< its place among the warp's
  uint64_t serial = 0; ///< 0: from elsewhere
};

struct MemoryAccess;

struct Warp {
  enum class Wait : uint8_t { None, Named, Products, Registers };
  /// What parked lanes wait for.
  enum class Parked : uint8_t { Mbarrier, Cluster };

  Cta *cta = nullptr;
  int index = 0;      ///< in the CTA
  uint32_t agent = 0; ///< of clocks
  uint32_t lanes = 0; ///< that exist
  uint32_t live = 0;
  uint32_t parked = 0;   ///< lanes that wait for a barrier, or for other lanes: `gathered`
  uint32_t gathered = 0; ///< at an instruction that others must reach
  bool converged = true; ///< all live lanes are at `pc`
  int32_t pc = 0;
  int32_t pcs[32] = {};
  uint8_t *registers = nullptr;
  const uint8_t *constants = nullptr;

  Clock clock, proxy;
  /// Release of everything before the last fence, and what relaxed reads saw since (fences).
  Clock fenceRelease, pendingAcquire;

  Wait wait = Wait::None;
  bool resumed = false; ///< what the warp waited for has come; the handler runs again
  Parked parkedFor = Parked::Mbarrier;
  uint32_t waitAddress = 0; ///< of the mbarrier
  uint32_t waitNamed = 0;   ///< number of the named barrier
  uint64_t failedKey = 0;   ///< place and barrier state of the last wait that failed

  // barrier.cluster: lanes that have arrived and not waited yet, and the phase they arrived in.
  uint32_t clusterArrived = 0, clusterPhase = 0;
  int32_t clusterLine = 0;

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

  std::vector<SharedLoad> loads; ///< as many as were ever under way together
  std::vector<LoadTag> loadTags; ///< a register that holds what a load read
  uint32_t loadsUnderWay = 0;
  uint64_t lastLoad = 0; ///< serial

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
  uint64_t effective(const Address &address, int lane) const {
    const uint64_t sum =
        value(address.base, address.wide, lane) + static_cast<uint64_t>(address.offset);
    return address.wide ? sum : static_cast<uint32_t>(sum);
  }
  void unpark() { parked = gathered = 0; }
  /// What follows is not ordered by releases so far.
  void tick() { clock.raise(agent, clock.get(agent) + 1); }
  bool runnable() const { return wait == Wait::None && (live & ~parked) != 0; }
};

struct Mbarrier {
  bool live = false;
  uint32_t offset = 0; ///< in shared memory
  uint32_t agent = 0;  ///< of its copies; time: number of the phase + 1
  int64_t expected = 0, pending = 0, tx = 0;
  uint32_t phase = 0; ///< that runs
  /// What arrivals of this phase and of those that are over bring; [1]: those of the own CTA alone,
  /// for waits of .cta scope, where there are others.
  Clock arriving[2], arrivingProxy[2], completed[2], completedProxy[2];
  uint32_t initAgent = 0, initTime = 0;
  int initWarp = 0;
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

/// A place in the shared memory of a CTA.
struct Place {
  Cta *cta = nullptr; ///< null after a report
  uint32_t offset = 0;
  uint8_t *bytes = nullptr;
  explicit operator bool() const { return cta != nullptr; }
};

/// An access of another CTA to the shared memory of this one.
struct RemoteUse {
  uint32_t time = 0;
  const Warp *warp = nullptr;
  int32_t line = 0;
  uint32_t phase = 0; ///< of arrivals: the end of this phase of the barrier orders it, too
};

struct LaneCopy {
  uint32_t offset;
  uint64_t from;
  uint32_t bytes, fromBytes;
};

/// A copy under way.
struct Copy {
  enum class Kind : uint8_t {
    TensorLoad,
    TensorStore,
    BulkLoad,
    BulkStore,
    BulkShared, ///< from shared memory to that of another CTA
    CpAsync,
    CpArrive
  };
  Kind kind = Kind::BulkLoad;
  int warp = 0;
  uint32_t number = 0; ///< in the stream of the warp (bulk or cp.async)
  int32_t line = 0;
  Cta *to = nullptr;  ///< whose shared memory it writes, and whose barriers it knows
  int barrier = -1;   ///< of what it completes on
  bool counts = true; ///< false: another CTA counts what a multicast reads
  TensorMap map;
  std::array<int64_t, 5> at{};
  uint32_t offset = 0;
  uint64_t global = 0;
  uint32_t bytes = 0;
  uint32_t done = 0, steps = 1; ///< rows, or pieces
  std::vector<LaneCopy> lanes;
  /// Completes on an mbarrier.
  bool load() const {
    return kind == Kind::TensorLoad || kind == Kind::BulkLoad || kind == Kind::BulkShared;
  }
};

/// What the CTAs of a launch share.
struct Grid {
  Grid(const Launch &launch, const Program &program) : launch(launch), program(program) {}

  const Launch &launch;
  const Program &program;
  std::vector<GlobalBuffer> buffers; ///< by address
  std::vector<uint8_t> params;
  std::array<uint32_t, 3> cluster{1, 1, 1};
  bool explicitCluster = false;
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> reportCount{0};
  std::atomic<bool> stop{false};
  std::mutex atomics; ///< on global memory

  /// Host memory of [address, address + bytes) or null.
  uint8_t *find(uint64_t address, uint64_t bytes, bool write, size_t &hint) const;
  std::string describe(uint64_t address) const;
};

/// CTAs that run together.
struct Cluster {
  Cluster(Grid &grid, int64_t number);

  Grid &grid;
  std::array<uint32_t, 3> id{};
  std::vector<std::unique_ptr<Cta>> ctas; ///< by rank
  uint32_t agents = 0;                    ///< of clocks, given out so far
  Random random;
  std::vector<Report> reports;
  std::set<std::tuple<Report::Kind, int32_t, int32_t>> reported;
  bool stopped = false; ///< nothing more can be learned
  bool finished = false;
  uint64_t progress = 0; ///< counts what somebody who polls may wait for

  // barrier.cluster
  uint32_t phase = 0;
  Clock arriving, arrivingProxy, completed, completedProxy;

  void run();
  /// Completes barrier.cluster if everybody is there.
  void checkBarrier();
  /// Live lanes that have not arrived at it.
  int64_t missing() const;
  /// Where each warp is, and what it waits for.
  std::string positions() const;

private:
  /// Lets a copy take effect because nobody can run; false: there is none.
  bool forceOne();
  void forceRandom();
  bool wakePolls();
  uint64_t pollState() const;
  void deadlock();
  void finish();

  std::vector<Warp *> warps;    ///< of all CTAs
  std::vector<Warp *> runnable; ///< scratch
  uint64_t lastPollState = 0, polls = 0;
};

struct Cta {
  Cta(Cluster &cluster, uint32_t rank);

  Cluster &cluster;
  Grid &grid;
  const Program &program;
  uint32_t rank;     ///< in the cluster
  int32_t index = 0; ///< in the grid
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
  std::vector<Copy> copies;                                 ///< that its warps issued
  std::map<uint32_t, std::pair<Clock, Clock>> strongClocks; ///< atomics on shared memory
  int64_t registerPool = 0;
  std::vector<uint8_t> constants; ///< of CTAs after the first of a cluster
  std::map<std::pair<uint32_t, int>, RemoteUse> remoteUses; ///< by agent and barrier, or -1
  /// Line and operands of the products of every warpgroup, by number, while some warp lacks them.
  std::vector<std::deque<std::tuple<uint32_t, int32_t, uint64_t, uint64_t>>> issuedProducts;
  Counters counters;
  uint64_t classes[kNumClasses] = {};
  size_t bufferHint = 0;
  std::unique_ptr<ProductTiles> tiles = std::make_unique<ProductTiles>();

  void runWarp(Warp &warp, uint64_t limit);
  Counters allCounters() const;
  bool alone() const { return cluster.ctas.size() == 1; }

  // Agents of the clocks; an mbarrier gets its own when it is first initialised.
  uint32_t productAgent(int warp) const { return warps[warp].agent + numWarps; }
  uint32_t bulkAgent(int warp) const { return warps[warp].agent + 2 * numWarps; }
  uint32_t cpAgent(int warp) const { return warps[warp].agent + 3 * numWarps; }
  Access access(const Warp &warp, const Instr &in) const;

  void report(Report::Kind kind, int warp, int32_t line, int32_t other, uint64_t address,
              const std::string &text);
  /// As report, and the CTA ends.
  void fail(Report::Kind kind, int warp, int32_t line, const std::string &text);

  /// Waits until the lanes of `wanted` are at the instruction where those of `here` are. False: run
  /// it again. A lane that cannot come is a report.
  bool gather(Warp &warp, const Instr &in, uint32_t wanted, uint32_t here);

  // Mbarriers of this CTA; `by`: a warp of the cluster, which is told what is wrong.
  int mbarrierAt(const Warp &by, const Instr &in, uint32_t offset, bool forCopy);
  std::string nameOf(const Mbarrier &barrier, const Warp &by) const;
  void arrive(int barrier, const Warp &by, const Instr &in, int64_t count);
  void arriveNow(int barrier, const Warp &by, int32_t line, int64_t count);
  void expectTx(int barrier, const Warp &by, int32_t line, int64_t bytes);
  void completeTx(int barrier, const Warp &by, int32_t line, int64_t bytes);
  void checkPhase(int barrier, const Warp &by, int32_t line);

  // Other synchronisation (Barriers.cpp).
  void checkNamed(int id);
  void wakeRegisters();
  void exitLanes(Warp &warp, uint32_t mask);
  /// `by` uses shared memory of this CTA, which must not end before that is over.
  void noteRemote(const Warp &by, int32_t line, int barrier = -1);

  // Asynchronous operations.
  void start(Copy &&copy, Warp &warp, const Instr &in, int lane);
  /// To CTA `to`, at the place and with the barrier at the offsets given.
  void startLoad(Copy copy, Warp &warp, const Instr &in, Cta &to, uint32_t barrierOffset);
  void startStore(Copy &&copy, Warp &warp, const Instr &in, int lane);
  void issue(Copy &&copy); ///< takes effect as the policy says
  /// Does `steps` pieces of copy `i`; removes it when it is complete.
  void advance(size_t i, uint32_t steps);
  void moveRows(Copy &copy, uint32_t steps);
  /// Effects of copies of a stream up to `number`.
  void force(int warp, Copy::Kind a, Copy::Kind b, uint32_t number);
  bool productReady(const Warp &warp) const; ///< the oldest one
  void runProduct(Warp &warp);
  void issuedProduct(Warp &warp);

  // Loads of shared memory under way (SharedLoads.cpp).
  void beginLoad(Warp &warp, const Instr &in, const MemoryAccess &access, uint32_t bytes);
  void useLoads(Warp &warp, const Instr &in);
  void useLoad(Warp &warp, SharedLoad &load);
  void fenceLoads(Warp &warp);
  /// Loads that a copy of `by` into this CTA may come before.
  void checkLoads(const Warp &by, const Access &copy, uint32_t offset, uint32_t bytes);

  // Memory.
  /// Shared memory of the cluster at an address of a space.
  Place sharedAt(const Warp &warp, const Instr &in, Space space, uint64_t address, uint32_t bytes,
                 uint32_t align, const char *verb);
  uint8_t *globalAt(int warp, int32_t line, uint64_t address, uint32_t bytes, bool write,
                    const char *what);

  std::string waitText(const Warp &warp) const;
  /// Everything has returned: is all that was started known to be complete?
  void finish();

private:
  uint32_t pick(Warp &warp);
  void jump(Warp &warp, const Instr &in, uint32_t mask, uint32_t taken);
  void stay(Warp &warp, uint32_t mask, uint32_t waiting);
  void touch(Warp &warp, const Instr &in);
  uint32_t special(const SpecialRegister &which, uint32_t thread) const;
};

Counters sum(const Counters &a, const Counters &b);

std::string hexText(uint64_t value);
std::string sharedText(uint64_t offset); ///< "shared+0x400"

/// A tensor map out of the bytes of a parameter; false: those are none.
bool decodeTensorMap(const uint8_t *bytes, TensorMap &map);
uint32_t boxBytes(const TensorMap &map);

} // namespace attn::sim

#endif // ATTN_SIM_MACHINE_H
