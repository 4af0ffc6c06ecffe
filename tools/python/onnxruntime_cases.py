"""Small models of the operators that onnxruntime's optimizer fuses, and onnxruntime's results for
them: cases for onnx_node_tests.py like ONNX's own, which has none for the domain com.microsoft."""
import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

numpy.random.seed(3)
B, S, H, D = 2, 6, 4, 8  # batch, length, heads, head size
FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32


def random(*shape):
    return numpy.random.randn(*shape).astype(numpy.float32)


def angles(length, width):
    grid = numpy.arange(length)[:, None] / 10.0 ** (numpy.arange(width) / width)
    return numpy.cos(grid).astype(numpy.float32), numpy.sin(grid).astype(numpy.float32)


def case(name, op, inputs, outputs=1, domain="com.microsoft", known=(), **attributes):
    """Makes a case. `known`: inputs that are initializers. An input that is None is omitted."""
    names = [f"in{i}" if value is not None else "" for i, value in enumerate(inputs)]
    outs = [f"out{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
    node = helper.make_node(op, names, outs, name=name, domain=domain, **attributes)
    given = [(n, v) for n, v in zip(names, inputs) if v is not None]
    graph = helper.make_graph(
        [node], name,
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given
         if n not in known],
        [helper.make_tensor_value_info(n, INT32 if n == "index" else FLOAT, None) for n in outs if n],
        [numpy_helper.from_array(v, n) for n, v in given if n in known])
    model = helper.make_model(graph, ir_version=10,
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    feed = {n: v for n, v in given if n not in known}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = [n for n in outs if n]
    results = dict(zip(wanted, session.run(wanted, feed)))
    for value in model.graph.output:
        del value.type.tensor_type.shape.dim[:]
        for size in results[value.name].shape:
            value.type.tensor_type.shape.dim.add().dim_value = size
    return "microsoft_" + name, model, feed, results


def elementwise():
    x, b = random(B, S, 12), random(12)
    yield case("gelu", "Gelu", [x])
    yield case("fast_gelu", "FastGelu", [x])
    yield case("fast_gelu_bias", "FastGelu", [x, b])
    yield case("bias_gelu", "BiasGelu", [x, b])
    yield case("quick_gelu", "QuickGelu", [x])
    yield case("quick_gelu_alpha", "QuickGelu", [x], alpha=1.25)


def norms():
    x, skip, w, b, c = random(B, S, 12), random(B, S, 12), random(12), random(12), random(12)
    yield case("skip_layer_norm", "SkipLayerNormalization", [x, skip, w, b], epsilon=1e-5)
    yield case("skip_layer_norm_sum", "SkipLayerNormalization", [x, skip, w, b, c], ["y", "", "", "sum"], epsilon=1e-5)
    yield case("skip_layer_norm_no_bias", "SkipLayerNormalization", [x, skip, w])
    yield case("skip_layer_norm_broadcast", "SkipLayerNormalization", [x, skip[:1], w, b], epsilon=1e-5)
    yield case("skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, skip, w], epsilon=1e-6)
    yield case("skip_rms_norm_sum", "SkipSimplifiedLayerNormalization", [x, skip, w, c], ["y", "", "", "sum"])
    yield case("rms_norm", "SimplifiedLayerNormalization", [x, w], domain="", axis=-1, epsilon=1e-6, stash_type=1)
    ids = numpy.random.randint(0, 9, (B, S)).astype(numpy.int32)
    segments = numpy.random.randint(0, 2, (B, S)).astype(numpy.int32)
    mask = numpy.array([[1] * S, [1] * (S - 2) + [0] * 2], numpy.int32)
    tables = [random(9, 12), random(10, 12), random(2, 12), w, b]
    yield case("embed_layer_norm", "EmbedLayerNormalization", [ids, segments] + tables + [mask], ["y", "index", "sum"])
    yield case("embed_layer_norm_no_segments", "EmbedLayerNormalization",
               [ids, None, tables[0], tables[1], None, w, b], ["y", ""])


def matmuls():
    a, b = random(B, H, 3, 5), random(B, H, 5, 7)
    yield case("fused_matmul", "FusedMatMul", [a, b], alpha=0.125)
    yield case("fused_matmul_right", "FusedMatMul", [a, b.swapaxes(2, 3).copy()], transB=1, alpha=0.5)
    yield case("fused_matmul_both", "FusedMatMul", [a.swapaxes(2, 3).copy(), b.swapaxes(2, 3).copy()], transA=1, transB=1)


def attentions():
    x, w, b = random(B, S, 16), random(16, 3 * H * D), random(3 * H * D)
    full = numpy.array([[1] * S, [1] * (S - 2) + [0] * 2], numpy.int32)
    yield case("attention", "Attention", [x, w, b], num_heads=H)
    yield case("attention_causal", "Attention", [x, w, b], num_heads=H, unidirectional=1)
    yield case("attention_mask", "Attention", [x, w, b, full], num_heads=H)
    yield case("attention_lengths", "Attention", [x, w, b, numpy.array([S, S - 3], numpy.int32)], num_heads=H)
    yield case("attention_mask_causal", "Attention", [x, w, b, full], num_heads=H, unidirectional=1)
    yield case("attention_bias", "Attention", [x, w, b, None, None, random(1, H, S, S)], num_heads=H, scale=0.3)
    yield case("attention_sizes", "Attention", [x, random(16, 2 * H * D + H * 4), random(2 * H * D + H * 4)],
               num_heads=H, qkv_hidden_sizes=[H * D, H * D, H * 4])
    q, k, v = random(B, S, H * D), random(B, 5, H * D), random(B, 5, H * 4)
    short = numpy.array([[1] * 5, [1] * 3 + [0] * 2], numpy.int32)
    yield case("multi_head", "MultiHeadAttention", [q, k, v], num_heads=H)
    yield case("multi_head_bias", "MultiHeadAttention", [q, k, v, random(2 * H * D + H * 4)], num_heads=H)
    yield case("multi_head_padding", "MultiHeadAttention", [q, k, v, None, short], num_heads=H)
    yield case("multi_head_added", "MultiHeadAttention", [q, k, v, None, None, random(B, H, S, 5)], num_heads=H)
    yield case("multi_head_causal", "MultiHeadAttention", [q, random(B, S, H * D), random(B, S, H * D)],
               ["y", "k", "v"], num_heads=H, unidirectional=1)
    yield case("multi_head_cross", "MultiHeadAttention", [q, random(B, H, 5, D), random(B, H, 5, D)], num_heads=H)


def grouped():
    E = 16  # the least that onnxruntime rotates
    q, k, v = random(B, S, H * E), random(B, S, 2 * E), random(B, S, 2 * E)
    last, total = numpy.array([S - 1, S - 1], numpy.int32), numpy.array(S, numpy.int32)
    cos, sin = angles(10, E // 2)
    cases = [None, None, last, total]
    yield case("grouped", "GroupQueryAttention", [q, k, v] + cases, ["y", "k", "v"], num_heads=H, kv_num_heads=2)
    yield case("grouped_packed", "GroupQueryAttention", [random(B, S, (H + 4) * E), None, None] + cases, ["y", "k", "v"],
               num_heads=H, kv_num_heads=2)
    yield case("grouped_rotary", "GroupQueryAttention", [q, k, v] + cases + [cos, sin], ["y", "k", "v"],
               num_heads=H, kv_num_heads=2, do_rotary=1)
    yield case("grouped_rotary_interleaved", "GroupQueryAttention", [q, k, v] + cases + [cos, sin], ["y", "k", "v"],
               num_heads=H, kv_num_heads=2, do_rotary=1, rotary_interleaved=1)
    yield case("grouped_window", "GroupQueryAttention", [q, k, v] + cases, ["y", "k", "v"], num_heads=H, kv_num_heads=2,
               local_window_size=3)
    yield case("grouped_softcap", "GroupQueryAttention", [q, k, v] + cases, ["y", "k", "v"], num_heads=H, kv_num_heads=2,
               softcap=2.0, scale=0.5)


def rotary():
    cos, sin = angles(10, D // 2)
    ids = numpy.random.randint(0, 10, (B, S)).astype(numpy.int64)
    first = numpy.array([2], numpy.int64)
    yield case("rotary", "RotaryEmbedding", [random(B, H, S, D), ids, cos, sin])
    yield case("rotary_flat", "RotaryEmbedding", [random(B, S, H * D), ids, cos, sin])
    yield case("rotary_interleaved", "RotaryEmbedding", [random(B, H, S, D), ids, cos, sin], interleaved=1)
    yield case("rotary_from", "RotaryEmbedding", [random(B, H, S, D), first, cos, sin], known=["in1"])
    yield case("rotary_partial", "RotaryEmbedding", [random(B, S, H * D), ids, cos[:, :2].copy(), sin[:, :2].copy()],
               num_heads=H, rotary_embedding_dim=4)


def activated():
    a, b, c = random(3, 5), random(5, 7), random(7)
    yield case("fused_gemm", "FusedGemm", [a, b, c], activation="Relu")
    yield case("fused_gemm_scaled", "FusedGemm", [a.T.copy(), b.T.copy(), random(3, 1)], activation="Tanh", transA=1,
               transB=1, alpha=0.5, beta=2.0)
    yield case("fused_gemm_slope", "FusedGemm", [a, b, c], activation="LeakyRelu", activation_alpha=0.25)
    yield case("fused_gemm_line", "FusedGemm", [a, b], activation="HardSigmoid", activation_alpha=0.3,
               activation_beta=0.4)


def all_cases():
    for family in (elementwise, norms, matmuls, attentions, grouped, rotary, activated):
        yield from family()
