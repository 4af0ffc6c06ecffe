//===- FileTensor.cpp -------------------------------------------------------------------------===//
//
// Field numbers: TensorProto dims 1, data_type 2, name 8, raw_data 9, external_data 13 (key 1,
// value 2), data_location 14 (1: external).
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Export/FileTensor.h"
#include "lib/Export/Wire.h"

using namespace llvm;

namespace partita {

std::string FileTensor::readExternal(StringRef message) {
  StringRef key, value;
  std::string problem = wire::walk(message, [&](const wire::Field &field) {
    (field.number == 1 ? key : field.number == 2 ? value : key) = field.content;
    return std::string();
  });
  if (!problem.empty())
    return problem;
  bool bad = false;
  if (key == "location")
    location = value.str();
  else if (key == "offset")
    bad = value.getAsInteger(10, offset);
  else if (key == "length") {
    bad = value.getAsInteger(10, length);
    hasLength = true;
  }
  return bad ? "tensor '" + name + "': external " + key.str() + " '" + value.str() +
                   "' is not a number"
             : "";
}

std::string FileTensor::read(StringRef message) {
  SmallVector<StringRef> entries;
  std::string problem = wire::walk(message, [&](const wire::Field &field) {
    switch (field.number) {
    case 1:
      if (field.isBytes) {
        StringRef packed = field.content;
        for (uint64_t dim; !packed.empty(); dims.push_back(dim))
          if (!wire::takeVarint(packed, dim))
            return std::string("the model is damaged: wrong dims");
      } else {
        dims.push_back(field.value);
      }
      break;
    case 2:
      type = field.value;
      break;
    case 8:
      name = field.content.str();
      break;
    case 13:
      entries.push_back(field.content);
      return std::string();
    case 14:
      external = field.value == 1;
      return std::string();
    case 4:
    case 5:
    case 6:
    case 7:
    case 9:
    case 10:
    case 11: // the values
      return std::string();
    }
    kept += field.encoded;
    return std::string();
  });
  for (StringRef entry : entries)
    if (problem.empty())
      problem = readExternal(entry);
  return problem;
}

} // namespace partita
