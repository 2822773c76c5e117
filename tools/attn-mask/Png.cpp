// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Png.h"

#include "attn/Core/Manifest.h"

#include <png.h>

#include <algorithm>

using namespace attn;
using core::TileClass;

namespace {

struct Color {
  uint8_t r, g, b;
};

constexpr int64_t kMargin = 8;       ///< pixels around and between pictures
constexpr int64_t kMaxScale = 12;    ///< pixels a cell at most, so that tiny masks can be seen
constexpr int64_t kTargetSide = 768; ///< cells are enlarged up to about this many pixels
constexpr int64_t kMinBorder = 6;    ///< tiles narrower than this get no border

class Canvas {
public:
  Canvas(int64_t width, int64_t height)
      : width(width), height(height), pixels(static_cast<size_t>(width * height), {255, 255, 255}) {
  }

  void set(int64_t x, int64_t y, Color color) {
    pixels[static_cast<size_t>(y * width + x)] = color;
  }

  int64_t width, height;
  std::vector<Color> pixels;
};

Color groundOf(TileClass cls) {
  switch (cls) {
  case TileClass::Skip:
    return {250, 250, 250};
  case TileClass::Partial:
    return {255, 224, 160};
  case TileClass::Full:
    return {190, 230, 190};
  }
  return {255, 0, 255};
}

/// Kept cells are drawn over the ground; cells kept in part are mixed with it.
Color blend(Color ground, TileClass fine) {
  constexpr Color ink = {40, 60, 120};
  int weight = fine == TileClass::Full ? 3 : fine == TileClass::Partial ? 1 : 0;
  auto mix = [&](uint8_t a, uint8_t b) {
    return static_cast<uint8_t>((a * (4 - weight) + b * weight) / 4);
  };
  return {mix(ground.r, ink.r), mix(ground.g, ink.g), mix(ground.b, ink.b)};
}

int64_t scaleOf(const mask::Grid &fine) {
  int64_t side = std::max({fine.rows, fine.columns, int64_t(1)});
  return std::clamp<int64_t>(kTargetSide / side, 1, kMaxScale);
}

void draw(Canvas &canvas, const mask::Picture &picture, int64_t top) {
  const mask::Grid &fine = picture.fine, &tiles = picture.tiles;
  int64_t scale = scaleOf(fine);
  bool borders = tiles.cellKeys / fine.cellKeys * scale >= kMinBorder &&
                 tiles.cellQueries / fine.cellQueries * scale >= kMinBorder;
  for (int64_t y = 0; y < fine.rows * scale; ++y)
    for (int64_t x = 0; x < fine.columns * scale; ++x) {
      int64_t row = y / scale, column = x / scale;
      int64_t tileRow = row * fine.cellQueries / tiles.cellQueries;
      int64_t tileColumn = column * fine.cellKeys / tiles.cellKeys;
      Color color = blend(groundOf(tiles.at(tileRow, tileColumn)), fine.at(row, column));
      bool edge = (x % scale == 0 && column * fine.cellKeys % tiles.cellKeys < fine.cellKeys) ||
                  (y % scale == 0 && row * fine.cellQueries % tiles.cellQueries < fine.cellQueries);
      canvas.set(kMargin + x, top + y, borders && edge ? Color{170, 170, 170} : color);
    }
}

} // namespace

mask::PictureSize mask::sizeOf(const std::vector<Picture> &pictures) {
  int64_t width = 1, height = kMargin;
  for (const Picture &picture : pictures) {
    int64_t scale = scaleOf(picture.fine);
    width = std::max(width, picture.fine.columns * scale);
    height += picture.fine.rows * scale + kMargin;
  }
  return {width + 2 * kMargin, height};
}

core::Status mask::writePng(const std::string &path, const std::vector<Picture> &pictures) {
  const PictureSize size = sizeOf(pictures);
  Canvas canvas(size.width, size.height);
  int64_t top = kMargin;
  for (const Picture &picture : pictures) {
    draw(canvas, picture, top);
    top += picture.fine.rows * scaleOf(picture.fine) + kMargin;
  }

  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(canvas.width);
  image.height = static_cast<png_uint_32>(canvas.height);
  image.format = PNG_FORMAT_RGB;
  static_assert(sizeof(Color) == 3, "pixels are packed");
  png_alloc_size_t count = 0;
  if (!png_image_write_to_memory(&image, nullptr, &count, 0, canvas.pixels.data(), 0, nullptr))
    return core::Error{path + ": cannot encode the picture: " + image.message};
  std::vector<uint8_t> bytes(count);
  if (!png_image_write_to_memory(&image, bytes.data(), &count, 0, canvas.pixels.data(), 0, nullptr))
    return core::Error{path + ": cannot encode the picture: " + image.message};
  return core::writeFileAtomically(path, bytes.data(), count);
}
