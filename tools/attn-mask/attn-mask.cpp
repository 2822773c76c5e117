// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shows the mask of a kernel on a batch, and its tiles, as text or as a picture.

#include "Limits.h"
#include "Png.h"
#include "View.h"

#include "attn/Compiler/Compiler.h"
#include "attn/Config.h"
#include "attn/Runtime/BatchIO.h"
#include "attn/Support/LlvmTool.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace cl = llvm::cl;
using namespace attn;

static cl::OptionCategory category("attn-mask options");
static cl::opt<std::string> input(cl::Positional, cl::desc("SPEC.mlir or ARTIFACT"), cl::init(""),
                                  cl::cat(category));
static cl::opt<std::string> batchFile("batch", cl::value_desc("file"),
                                      cl::desc("Batch JSON (docs/batch.md)"), cl::cat(category));
static cl::opt<std::string>
    png("png", cl::value_desc("file"),
        cl::desc("Also write a picture (at most 2^24 tiles and 2^27 pixels)"), cl::cat(category));
static cl::opt<std::string> tileText("tile", cl::value_desc("QxK"), cl::init("128x80"),
                                     cl::desc("Queries x keys of a tile (default 128x80)"),
                                     cl::cat(category));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("name"),
                                       cl::desc("Which kernel, where there are several"),
                                       cl::cat(category));
static cl::opt<int> requestNumber("request", cl::value_desc("b"), cl::init(-1),
                                  cl::desc("Draw one request only (default: all)"),
                                  cl::cat(category));
static cl::opt<int> headNumber("head", cl::value_desc("h"), cl::init(0),
                               cl::desc("Head to draw, for masks that differ by head (default 0)"),
                               cl::cat(category));

/// Cells of a drawing: what fits a terminal, and a picture that can be looked at.
static constexpr int64_t kTextRows = 48, kTextColumns = 96, kPngCells = 1536;
/// Below this many cells a side every pair is drawn.
static constexpr int64_t kPairwiseLimit = 96;

static int fail(const llvm::Twine &text) {
  llvm::errs() << "attn-mask: error: " << text << "\n";
  return tool::kBadInput;
}

/// Specs of a spec file or an artifact, told apart by their contents.
static core::Result<std::vector<core::KernelSpec>> readSpecs(const std::string &path) {
  auto bytes = core::readFile(path);
  if (!bytes)
    return bytes.takeError();
  llvm::StringRef text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  std::vector<core::KernelSpec> specs;
  if (text.starts_with("ATTNART")) {
    auto artifact = core::parseArtifact(bytes->data(), bytes->size());
    if (!artifact)
      return core::Error{path + ": " + artifact.message()};
    for (core::Kernel &kernel : artifact->kernels)
      specs.push_back(std::move(kernel.spec));
    return specs;
  }
  auto parsed = compiler::readSpecs(text, path);
  if (!parsed)
    return core::Error{llvm::toString(parsed.takeError())};
  return std::move(*parsed);
}

static core::Result<core::KernelSpec> chooseKernel(std::vector<core::KernelSpec> specs) {
  std::string names;
  for (core::KernelSpec &spec : specs) {
    if (spec.name == kernelName || (kernelName.empty() && specs.size() == 1))
      return std::move(spec);
    names += (names.empty() ? "" : ", ") + spec.name;
  }
  if (kernelName.empty())
    return core::Error{"--kernel is needed, one of: " + names};
  return core::Error{"no kernel is named '" + kernelName + "', expected one of: " + names};
}

static bool parseTile(llvm::StringRef text, rt::TileShape &tile) {
  auto [queries, keys] = text.split('x');
  return !queries.getAsInteger(10, tile.queries) && !keys.getAsInteger(10, tile.keys) &&
         tile.queries > 0 && tile.keys > 0 && tile.queries <= core::kPositionLimit &&
         tile.keys <= core::kPositionLimit;
}

static void printRequest(core::MaskEvaluator &evaluator, const core::Batch &batch,
                         core::RequestIndex b, const rt::TileShape &tile) {
  int64_t queries = batch.shape.queryLen(b), keys = batch.shape.seqLen[b.value];
  core::HeadIndex h(headNumber);
  llvm::outs() << llvm::formatv("\nrequest {0}: {1} queries from position {2}, {3} keys", b.value,
                                queries, batch.shape.contextLen[b.value], keys);
  if (queries == 0 || keys == 0) {
    llvm::outs() << "\n";
    return;
  }
  int64_t kept = mask::countKept(evaluator, batch, b, h);
  llvm::outs() << llvm::formatv(", {0} of {1} pairs kept ({2:F1} %)\n", kept, queries * keys,
                                100.0 * static_cast<double>(kept) /
                                    (static_cast<double>(queries) * static_cast<double>(keys)));
  bool pairwise = queries <= kTextRows && keys <= kPairwiseLimit;
  mask::Grid grid = mask::gridShape(batch, b, pairwise ? 1 : tile.queries, pairwise ? 1 : tile.keys,
                                    kTextRows, kTextColumns);
  mask::fillGrid(grid, evaluator, batch, b, h);
  llvm::outs() << llvm::formatv("  a character: {0} x {1} pairs; # all kept, + some, . none\n",
                                grid.cellQueries, grid.cellKeys)
               << mask::drawText(grid);
}

static void printCounts(const core::KernelSpec &spec, const core::Batch &batch,
                        const rt::TileShape &tile) {
  auto records = rt::buildTileRecords(spec.program, batch, tile);
  rt::TileCounts counts = rt::countTiles(records, batch, tile);
  double saved = counts.rectangle ? 100.0 * static_cast<double>(counts.rectangle - counts.visited) /
                                        static_cast<double>(counts.rectangle)
                                  : 0;
  llvm::outs() << llvm::formatv("tiles {0}x{1}: {2} visited ({3} full, {4} partial) of {5} in the "
                                "rectangle, {6:F1} % saved\n",
                                tile.queries, tile.keys, counts.visited, counts.full,
                                counts.visited - counts.full, counts.rectangle, saved);
}

/// Shapes of the pictures of --png, one for each request with queries and keys.
static core::Result<std::vector<mask::Picture>>
planPictures(const core::Batch &batch, std::vector<int64_t> &requests, const rt::TileShape &tile) {
  std::vector<mask::Picture> pictures;
  llvm::erase_if(requests, [&](int64_t b) {
    return batch.shape.queryLen(core::RequestIndex(b)) == 0 || batch.shape.seqLen[b] == 0;
  });
  for (int64_t number : requests) {
    core::RequestIndex b(number);
    int64_t cells = std::max<int64_t>(64, kPngCells / static_cast<int64_t>(requests.size()));
    mask::Picture picture;
    picture.fine = mask::gridShape(batch, b, 1, 1, cells, cells);
    picture.tiles = mask::gridShape(batch, b, tile.queries, tile.keys, core::kPositionLimit,
                                    core::kPositionLimit);
    pictures.push_back(std::move(picture));
  }
  if (pictures.empty())
    return core::Error{"no request has queries and keys to draw"};
  if (core::Status fits = mask::checkPicture(pictures); !fits)
    return core::Error{fits.message()};
  return pictures;
}

/// Prints and draws the requests `numbers`.
static int draw(core::MaskEvaluator &evaluator, const core::KernelSpec &spec,
                const core::Batch &batch, const std::vector<int64_t> &numbers,
                const rt::TileShape &tile) {
  std::vector<int64_t> drawn = numbers;
  core::Result<std::vector<mask::Picture>> pictures{std::vector<mask::Picture>()};
  if (!png.empty())
    pictures = planPictures(batch, drawn, tile);
  if (!pictures)
    return fail(pictures.message());
  llvm::outs() << "kernel " << spec.name << "\nkeep: "
               << (spec.program.mask < 0 ? "every key"
                                         : core::toFormula(spec.program, spec.program.mask))
               << "\n";
  if (spec.program.score >= 0)
    llvm::outs() << "score: " << core::toFormula(spec.program, spec.program.score) << "\n";
  printCounts(spec, batch, tile);
  for (int64_t b : numbers)
    printRequest(evaluator, batch, core::RequestIndex(b), tile);
  if (!png.empty())
    llvm::outs() << "\npicture: " << png << "\n";
  // Before the picture is written, so that a failure leaves no file.
  if (std::string why = tool::flushOutput(); !why.empty())
    return fail(why);
  if (png.empty())
    return tool::kDone;
  for (size_t i = 0; i < drawn.size(); ++i) {
    core::RequestIndex b(drawn[i]);
    mask::fillGrid((*pictures)[i].fine, evaluator, batch, b, core::HeadIndex(headNumber));
    mask::fillGrid((*pictures)[i].tiles, evaluator, batch, b, core::HeadIndex(headNumber));
  }
  if (core::Status status = mask::writePng(png, *pictures); !status)
    return fail(status.message());
  return tool::kDone;
}

static int show(const core::KernelSpec &spec, const core::Batch &batch, const rt::TileShape &tile) {
  if (headNumber < 0 || headNumber >= spec.numHeads)
    return fail("--head is expected to be 0 to " + llvm::Twine(spec.numHeads - 1) + ", got " +
                llvm::Twine(headNumber));
  int64_t requests = batch.shape.numReqs();
  bool oneRequest = requestNumber.getNumOccurrences() > 0;
  if (oneRequest && (requestNumber < 0 || requestNumber >= requests))
    return fail("--request is expected to be 0 to " + llvm::Twine(requests - 1) + ", got " +
                llvm::Twine(requestNumber));
  std::vector<int64_t> numbers;
  for (int64_t b = 0; b < requests; ++b)
    if (!oneRequest || b == requestNumber)
      numbers.push_back(b);

  core::MaskEvaluator evaluator(spec.program, batch);
  mask::Work work = mask::workOf(evaluator, spec, batch, tile);
  if (core::Status fits = mask::checkWork(work); !fits)
    return fail(batchFile + ": " + fits.message());
  if (work.seconds() > 60)
    llvm::errs() << llvm::formatv("attn-mask: {0:F0} (query, key) pairs in {1} rows, expected to "
                                  "take about {2:F0} minutes\n",
                                  work.pairs, work.rows, std::ceil(work.seconds() / 60));
  return draw(evaluator, spec, batch, numbers, tile);
}

/// What is wrong with the command line, or nothing.
static std::string checkOptions(rt::TileShape &tile) {
  if (std::string empty = tool::emptyOption({&batchFile, &png, &tileText, &kernelName});
      !empty.empty())
    return empty + ": expected a value, got ''";
  if (input.empty())
    return "no spec or artifact is given, see --help";
  if (batchFile.empty())
    return "no batch is given, expected --batch FILE";
  if (png == "-")
    return "--png: '-' would mix the picture with the text on standard output, expected a file "
           "(./- for one of that name)";
  if (!parseTile(tileText, tile))
    return "--tile is expected as QUERIESxKEYS, as in 128x80, got '" + tileText + "'";
  return "";
}

int main(int argc, char **argv) {
  tool::installFatalErrorHandler("attn-mask");
  cl::HideUnrelatedOptions(category);
  cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "attn-mask " << ATTN_VERSION << "\n"; });
  std::string overview =
      "attn-mask: shows which keys each query keeps, and the tiles a kernel visits\n\n"
      "  attn-mask SPEC.mlir --batch BATCH.json [--png OUT.png] [--tile=128x80]\n\n"
      "A mask has at most 2^26 rows; one that is not made of intervals 2^36 pairs and 2^32 "
      "tiles.\n";
  if (!tool::parseCommandLine(argc, argv, overview + tool::kExitStatusHelp))
    return tool::kBadInput;
  rt::TileShape tile;
  if (std::string wrong = checkOptions(tile); !wrong.empty())
    return fail(wrong);
  auto specs = readSpecs(input);
  if (!specs)
    return fail(specs.message());
  auto spec = chooseKernel(std::move(*specs));
  if (!spec)
    return fail(spec.message());
  auto json = core::readFile(batchFile);
  if (!json)
    return fail(json.message());
  auto file = rt::readBatch(
      std::string_view(reinterpret_cast<const char *>(json->data()), json->size()), *spec);
  if (!file)
    return fail(batchFile + ": " + file.message());
  auto bound = rt::bindBatch(*spec, std::move(file->input));
  if (!bound)
    return fail(batchFile + ": " + bound.message());
  if (core::Status exact = rt::requireExactLengths(*bound, "attn-mask"); !exact)
    return fail(batchFile + ": " + exact.message());
  return show(*spec, bound->batch, tile);
}
