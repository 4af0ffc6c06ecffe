// A text that is put together without allocating memory, as a signal's handler must.

#ifndef PARTITA_RT_COMMON_FIXED_TEXT_H
#define PARTITA_RT_COMMON_FIXED_TEXT_H

#include <climits>
#include <cstddef>
#include <cstdint>

namespace partita_rt {

/// What does not fit is cut off.
class FixedText {
public:
  static constexpr size_t kMost = PATH_MAX + 512; ///< a path, and what is said of it
  FixedText &operator<<(const char *more) {
    for (; *more && size + 1 < sizeof(text); ++more)
      text[size++] = *more;
    text[size] = 0;
    return *this;
  }
  FixedText &operator<<(int64_t value) {
    char digits[24];
    size_t at = sizeof(digits) - 1;
    digits[at] = 0;
    uint64_t left = value < 0 ? 0 - uint64_t(value) : uint64_t(value);
    do
      digits[--at] = char('0' + left % 10);
    while (left /= 10);
    if (value < 0)
      digits[--at] = '-';
    return *this << digits + at;
  }
  bool isEmpty() const { return size == 0; }
  void clear() { text[size = 0] = 0; }
  const char *get() const { return text; }

private:
  char text[kMost] = {};
  size_t size = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_FIXED_TEXT_H
