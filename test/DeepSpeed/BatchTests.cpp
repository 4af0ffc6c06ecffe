// The batch of a configuration, and its pipeline stages.

#include "TestConfig.h"

using namespace llvm;
using namespace partita::config;
using namespace partita::config::test;

TEST(Batch, Triple) {
  struct Case {
    StringLiteral text;
    int64_t micro, steps, train;
  };
  static constexpr Case cases[] = {
      {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})",
       2, 4, 32},
      {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2})", 2, 4, 32},
      {R"({"train_batch_size": 32, "gradient_accumulation_steps": 4})", 2, 4, 32},
      {R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})", 2, 4, 32},
      {R"({"train_batch_size": 32})", 8, 1, 32},
      {R"({"train_micro_batch_size_per_gpu": 2})", 2, 1, 8},
      {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 4})",
       2, 4, 32},
  };
  for (const Case &each : cases) {
    Outcome outcome =
        resolveText(each.text, withModel(factsOf({{"dp", 2}, {"fsdp", 2}, {"tp", 2}})));
    ASSERT_TRUE(outcome.ok) << outcome.said;
    EXPECT_EQ(outcome.plan("accumulate"), std::to_string(each.steps)) << each.text.str();
    ASSERT_EQ(outcome.resolution.dims.size(), 1u);
    EXPECT_EQ(outcome.resolution.dims[0], std::pair(std::string("batch"), each.micro * 4));
    EXPECT_EQ(outcome.value("train_batch_size"), std::to_string(each.train));
  }
}

TEST(Batch, Errors) {
  expectError(
      resolveText(
          R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8})"),
      "1:22",
      "train_batch_size 256 is not train_micro_batch_size_per_gpu 4 x "
      "gradient_accumulation_steps 8 x dp 1 = 32; dp is 1 because no --mesh is given; it is "
      "with dp 8");
  expectError(
      resolveText(R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 5})",
                  factsOf({{"dp", 2}, {"tp", 4}})),
      "1:22",
      "'train_batch_size' 12 is not a multiple of train_micro_batch_size_per_gpu 5 x dp 2 (8 "
      "ranks / tp 4) = 10");
  Facts facts = withModel(factsOf({{"dp", 2}}));
  facts.model->batch = 6;
  expectError(resolveText(R"({"train_micro_batch_size_per_gpu": 4})", facts), "1:36",
              "'train_micro_batch_size_per_gpu' 4 x dp 2 = 8 is not the model's batch, 6");
  EXPECT_EQ(
      resolveText(
          R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})",
          facts)
          .value("train_batch_size"),
      "6");
  facts.model->batch = 7;
  expectError(resolveText(R"({"train_batch_size": "auto"})", facts), "1:22",
              "the model's batch, 7, is not a multiple of dp 2");
  facts = factsOf();
  facts.commandLine["accumulate"] = "2";
  expectError(resolveText(R"({"gradient_accumulation_steps": 4})", facts), "1:33",
              "'gradient_accumulation_steps' is 4, but the command line says --accumulate 2");
  expectError(
      resolveText(R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"})"),
      "1:22",
      "\"auto\" needs a value from elsewhere, and there is none for 'train_batch_size' "
      "(--dim batch=N), 'train_micro_batch_size_per_gpu' (--dim batch=N)");
}

TEST(Pipeline, BecomesThePlan) {
  Facts facts = withModel(factsOf({{"pp", 2}, {"dp", 2}}));
  Outcome outcome = resolveText(
      R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 2},
          "pipeline": {"stages": 2, "partition": "Parameters", "activation_checkpoint_interval": 1, "pipe_partitioned": false},
          "activation_checkpointing": {"partition_activations": true}})",
      facts);
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("accumulate"), "8"); // dp counts no stages
  EXPECT_EQ(outcome.plan("stages"), "parameters");
  EXPECT_EQ(outcome.plan("recompute"), "block");
  EXPECT_EQ(outcome.plan("zero-stage"), "2");
  EXPECT_EQ(
      resolveText(R"({"pipeline": {"stages": "auto", "partition": "best"}})", facts).plan("stages"),
      "auto");
  EXPECT_EQ(resolveText(R"({"pipeline": {"stages": "auto"}})", facts).value("pipeline.stages"),
            "2");
  facts.commandLine["stages"] = "cuts:1";
  EXPECT_TRUE(resolveText(R"({"pipeline": {"stages": 2}})", facts).ok);
}

TEST(Pipeline, Errors) {
  Facts facts = factsOf({{"pp", 2}, {"dp", 2}});
  expectError(resolveText(R"({"pipeline": {"stages": 4}})", facts), "1:25",
              "'pipeline.stages' is 4, but the mesh's axis pp has 2 stages; give --mesh pp=4,...");
  expectError(resolveText(R"({"pipeline": {"stages": 1}})", facts), "1:25",
              "leave pp out of --mesh");
  expectError(resolveText(R"({"pipeline": {"stages": 2}})", factsOf({{"dp", 2}})), "1:25",
              "but the mesh has no axis pp; give --mesh pp=2,...");
  expectError(
      resolveText(R"({"pipeline": {"partition": "type:Transformer"}})", facts), "1:28",
      "an ONNX file has none; \"uniform\" gives each stage as many of the layers that repeat");
  facts.commandLine["stages"] = "cuts:1";
  expectError(resolveText(R"({"pipeline": {"partition": "uniform"}})", facts), "1:28",
              "asks for --stages uniform, but the command line says --stages cuts:1");
  facts.commandLine["recompute"] = "selective";
  expectError(resolveText(R"({"pipeline": {"activation_checkpoint_interval": 1}})", facts), "1:49",
              "asks for --recompute block, but the command line says --recompute selective");
}

TEST(Batch, FromTheCommandLine) {
  Facts facts = withModel(factsOf({{"dp", 4}}));
  facts.dims = {{"batch", 8}};
  facts.commandLine["accumulate"] = "3";
  Outcome outcome = resolveText(
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})",
      facts);
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.value("train_batch_size"), "24");
  EXPECT_EQ(outcome.value("train_micro_batch_size_per_gpu"), "2");
  EXPECT_EQ(outcome.from("train_micro_batch_size_per_gpu"), "command line, --dim batch / dp");
  EXPECT_EQ(outcome.from("gradient_accumulation_steps"), "command line, --accumulate");
  EXPECT_TRUE(outcome.resolution.dims.empty());
}
