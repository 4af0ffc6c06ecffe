//===- Fp8.cpp - kernels of numbers in 8 bits -------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static LogicalResult noMaxima(Execution &execution, amp::NoMaximaOp op, ArrayRef<RankTensors>,
                              MutableArrayRef<RankTensors> out) {
  auto zeros = std::make_shared<Tensor>(cast<RankedTensorType>(op.getType()));
  out[0] = RankTensors(execution.rankCount(), zeros);
  return success();
}

/// Without rounding the result is exact, also beyond the format's max.
static LogicalResult quantize(Execution &execution, amp::QuantizeOp op, ArrayRef<RankTensors> in,
                              MutableArrayRef<RankTensors> out) {
  auto stored = cast<FloatType>(op.getStored());
  auto typeOf = [](Value value) {
    return value ? cast<RankedTensorType>(value.getType()) : RankedTensorType();
  };
  RankedTensorType rowsType = typeOf(op.getRows()), columnsType = typeOf(op.getColumns()),
                   sumsType = typeOf(op.getSums());
  bool rounds = execution.rounds(op), isWide = rowsType == op.getX().getType();
  int64_t scaleWidth = tx::scaleWidth(op.getScales());
  return onDistinctRanks(
      in, out, execution.rankCount(), [&](Inputs given, SmallVectorImpl<Tensor> &made) {
        const Tensor &x = *given[0];
        double scale = given[1]->number(op.getNumber() * scaleWidth), max = 0;
        made.reserve(4); // pointers to these stay valid
        Tensor *rows = rowsType ? &made.emplace_back(rowsType) : nullptr;
        Tensor *columns = columnsType ? &made.emplace_back(columnsType) : nullptr;
        std::vector<double> sums(sumsType ? sumsType.getDimSize(0) : 0);
        int64_t width = columnsType ? columnsType.getDimSize(0) : 1,
                count = x.size() / std::max<int64_t>(width, 1);
        for (int64_t i = 0, n = x.size(); i < n; ++i) {
          double value = x.number(i), quotient = value / scale;
          if (std::isfinite(value))
            max = std::max(max, std::abs(value));
          if (rounds)
            quotient = roundTo(stored, quotient);
          if (rows)
            rows->setNumber(i, isWide ? quotient * scale : quotient);
          if (columns)
            columns->setNumber(i % width * count + i / width, quotient);
          if (sumsType)
            sums[i % width] += value;
        }
        if (op.getMaxima()) {
          Tensor &raised = made.emplace_back(*given[2]);
          raised.setNumber(op.getNumber(), std::max(raised.number(op.getNumber()), max));
        }
        if (sumsType)
          made.emplace_back(sumsType).reals = std::move(sums);
        return success();
      });
}

void partita::interp::addFp8Kernels(KernelTable &table) {
  table.addRanks<amp::NoMaximaOp>(noMaxima);
  table.addRanks<amp::QuantizeOp>(quantize);
}
