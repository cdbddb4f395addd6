package nn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// costFamily are kernels whose useful operations and needed bytes are counted alike.
type costFamily struct {
	title            string
	operation, bytes string // what is counted, for the reader of the table
	costs            []kernelCost
}

// kernelCost is what one launch of a kernel is for, from the formula of its function alone.
type kernelCost struct {
	kernel, shape string
	operations    int
	bytes         int // each operand that the result depends on once, and each result once; no scalars, no live values
	call          func(p *runtime.Pass) error
}

// costCases makes operands on a runtime.
type costCases struct {
	t  testing.TB
	rt *runtime.Runtime
	r  *rand.Rand
}

func (c costCases) f32(n int) runtime.Slice[float32] {
	return newBuffer(c.t, c.rt, normals(c.r, n, 1)).s
}
func (c costCases) f16(n int) runtime.Slice[half.Float16] {
	return newBuffer(c.t, c.rt, half.Float16s(normals(c.r, n, 1))).s
}
func (c costCases) bf16(n int) runtime.Slice[half.BFloat16] {
	return newBuffer(c.t, c.rt, half.BFloat16s(normals(c.r, n, 1))).s
}
func (c costCases) u32(v ...uint32) runtime.Slice[uint32] { return newBuffer(c.t, c.rt, v).s }

// floats are numbers of any of the three types.
func floats[T Float](c costCases, n int) runtime.Slice[T] {
	s := make([]T, n)
	for i, v := range normals(c.r, n, 1) {
		switch p := any(&s[i]).(type) {
		case *float32:
			*p = v
		case *half.Float16:
			*p = half.Float16FromFloat32(v)
		case *half.BFloat16:
			*p = half.BFloat16FromFloat32(v)
		}
	}
	slice, err := runtime.SliceOf(c.rt, s)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { slice.Release() })
	return slice
}

// families are all kernels that nn launches.
func (c costCases) families() []costFamily {
	return []costFamily{c.mlxProducts(), c.vectorProducts(), c.rowExactProducts(), c.affineProducts(), c.weightsProducts(), c.denseProducts(), c.int8Products(), c.attention(), c.precise(), c.codecs(), c.partialMerges(), c.rope(), c.norms(), c.embeddings(),
		c.elements(), c.rows(), c.caches(), c.choices()}
}

// Banks of the products: the bytes that a product reads of one.
const (
	costRows, costCols, costGroup = 256, 2048, 64

	mlxBytes = costRows*costCols/2 + costRows*(costCols/costGroup)*4 // codes; a scale and a bias in bfloat16
	q4Bytes  = costRows*costCols/2 + costRows*(costCols/costGroup)*8 // codes; a scale and a zero point in float32
	q8Bytes  = costRows*costCols + costRows*(costCols/costGroup)*8
)

func (c costCases) mlxProducts() costFamily {
	f := costFamily{title: "Products with MLX 4-bit matrices, vectors of bfloat16",
		operation: "a multiply-add: vectors * rows * columns of each matrix",
		bytes:     "codes, scales and biases of each matrix; vectors, residuals and results"}
	mlxCosts(c, &f, "", func() Q4MLXBank { return randomBank(c.t, c.rt, c.r, costRows, costCols, costGroup).bank })
	mlxCosts(c, &f, "_i4", func() Q4MLXInterleavedBank {
		bank, _ := interleavedMatrix(c.t, c.rt, quantizedMLX(c.t, c.r, costRows, costCols, costGroup))
		return bank
	})
	return f
}

// mlxCosts are the products of one layout.
func mlxCosts[W Q4MLXSimdBank](c costCases, f *costFamily, suffix string, bank func() W) {
	const vector, result, macs = costCols * 2, costRows * 4, costRows * costCols
	a, b, d := bank(), bank(), bank()
	x, y, z, w, mid := c.bf16(MaxGEMMVectors*costCols), c.f32(MaxGEMMVectors*costRows), c.f32(MaxGEMMVectors*costRows), c.f32(costRows), c.bf16(costRows)
	one := fmt.Sprintf("%d x %d", costRows, costCols)
	eight := fmt.Sprintf("%s, %d vectors", one, MaxGEMMVectors)
	f.costs = append(f.costs,
		kernelCost{"gemv_q4_mlx_simd" + suffix, one, macs, mlxBytes + vector + result,
			func(p *runtime.Pass) error { return GEMVQ4MLX(p, y, a, x) }},
		kernelCost{"gemv_q4_mlx_simd_add" + suffix, one, macs, mlxBytes + vector + 2*result,
			func(p *runtime.Pass) error { return GEMVQ4MLXAdd(p, y, a, x, z) }},
		kernelCost{"gemv_q4_mlx_simd_kv" + suffix, "2 of " + one, 2 * macs, 2*mlxBytes + vector + 2*result,
			func(p *runtime.Pass) error { return GEMVQ4MLXKV(p, GEMVKVOf[W]{K: y, V: z, WK: a, WV: b, X: x}) }},
		kernelCost{"gemv_q4_mlx_simd_qkv" + suffix, "3 of " + one, 3 * macs, 3*mlxBytes + vector + 3*result,
			func(p *runtime.Pass) error {
				return GEMVQ4MLXQKV(p, GEMVQKVOf[W]{Q: y, K: z, V: w, WQ: a, WK: b, WV: d, X: x})
			}},
		kernelCost{"gemv_q4_mlx_simd_gate_up_gelu" + suffix, "2 of " + one, 2 * macs, 2*mlxBytes + vector + costRows*2,
			func(p *runtime.Pass) error { return GEMVQ4MLXGateUpGELU(p, mid, a, b, x) }},
		kernelCost{"gemm_q4_mlx_simd" + suffix, eight, MaxGEMMVectors * macs, mlxBytes + MaxGEMMVectors*(vector+result),
			func(p *runtime.Pass) error { return GEMMQ4MLX(p, y, a, x, MaxGEMMVectors) }},
		kernelCost{"gemm_q4_mlx_simd_add" + suffix, eight, MaxGEMMVectors * macs, mlxBytes + MaxGEMMVectors*(vector+2*result),
			func(p *runtime.Pass) error { return GEMMQ4MLXAdd(p, y, a, x, z, MaxGEMMVectors) }},
	)
}

func (c costCases) vectorProducts() costFamily {
	const vector, result, macs = costCols * 4, costRows * 4, costRows * costCols
	shape := fmt.Sprintf("%d x %d", costRows, costCols)
	x, y := c.f32(costCols), c.f32(costRows)
	weights := normals(c.r, costRows*costCols, 1)
	q4, err := quant.QuantizeQ4(weights, costRows, costCols, costGroup)
	if err != nil {
		c.t.Fatal(err)
	}
	q8, err := quant.QuantizeQ8(weights, costRows, costCols, costGroup)
	if err != nil {
		c.t.Fatal(err)
	}
	w4, _ := q4Matrix(c.t, c.rt, q4)
	w8, _ := q8Matrix(c.t, c.rt, q8)
	mlx := randomBank(c.t, c.rt, c.r, costRows, costCols, costGroup).bank
	blocked, _ := blockedMatrix(c.t, c.rt, quantizedMLX(c.t, c.r, costRows, costCols, costGroup))
	up, _ := blockedMatrix(c.t, c.rt, quantizedMLX(c.t, c.r, costRows, costCols, costGroup))
	return costFamily{title: "Products with vectors of float32",
		operation: "a multiply-add: rows * columns of each matrix",
		bytes:     "codes, scales and biases or zero points of each matrix; vector and result",
		costs: []kernelCost{
			{"gemv_q8", shape, macs, q8Bytes + vector + result, func(p *runtime.Pass) error { return GEMVQ8(p, y, w8, x) }},
			{"gemv_q4", shape, macs, q4Bytes + vector + result, func(p *runtime.Pass) error { return GEMVQ4(p, y, w4, x) }},
			{"gemv_q4_tiled", shape, macs, q4Bytes + vector + result, func(p *runtime.Pass) error { return GEMVQ4Tiled(p, y, w4, x) }},
			{"gemv_q4_mlx", shape, macs, mlxBytes + vector + result, func(p *runtime.Pass) error { return GEMVQ4MLXF32(p, y, mlx, x) }},
			{"gemv_q4_mlx_wide", shape, macs, mlxBytes + vector + result, func(p *runtime.Pass) error { return GEMVQ4MLXF32Wide(p, y, mlx, x) }},
			{"gemv_q4_mlx_tiled", shape, macs, mlxBytes + vector + result, func(p *runtime.Pass) error { return GEMVQ4MLXF32Tiled(p, y, mlx, x) }},
			{"gemv_q4_mlx_blocked", shape, macs, mlxBytes + vector + result, func(p *runtime.Pass) error { return GEMVQ4MLXBlocked(p, y, blocked, x) }},
			{"gemv_q4_mlx_blocked_gate_up_gelu", "2 of " + shape, 2 * macs, 2*mlxBytes + vector + result,
				func(p *runtime.Pass) error { return GEMVQ4MLXBlockedGateUpGELU(p, y, blocked, up, x) }},
		}}
}

func (c costCases) int8Products() costFamily {
	const m, n, k = 64, 64, 256
	f := costFamily{title: "Products of matrices of signed bytes", operation: "a multiply-add: M * N * K", bytes: "both matrices, the scales of columns and rows, and the result"}
	a, b := bytesOf(c.t, c.rt, randomBytes(c.r, m*k)), bytesOf(c.t, c.rt, randomBytes(c.r, n*k))
	sums, scaled, scales := output[int32](c.t, c.rt, m*n).s, c.f32(m*n), GEMMInt8Scales{Columns: c.f32(n), Rows: c.f32(m)}
	for i := range 4 {
		d := GEMMInt8Dims{M: m, N: n, K: k, TransA: i&2 != 0, TransB: i&1 != 0}
		form := []string{"nn", "nt", "tn", "tt"}[i]
		shape := fmt.Sprintf("%d x %d x %d", m, n, k)
		f.costs = append(f.costs,
			kernelCost{"gemm_int8_" + form + "_i32", shape, m * n * k, m*k + n*k + m*n*4, func(p *runtime.Pass) error { return GEMMInt8(p, sums, a, b, d) }},
			kernelCost{"gemm_int8_" + form + "_f32", shape, m * n * k, m*k + n*k + m*n*4 + 4*n + 4*m, func(p *runtime.Pass) error { return GEMMInt8Scaled(p, scaled, a, b, scales, d) }})
	}
	return f
}

func (c costCases) denseProducts() costFamily {
	f := costFamily{title: "Products with dense matrices", operation: "a multiply-add: M * N * K, or rows * columns", bytes: "matrices, vectors and results"}
	denseCosts[float32](c, &f, "f32", 4)
	denseCosts[half.Float16](c, &f, "f16", 2)
	denseCosts[half.BFloat16](c, &f, "bf16", 2)
	return f
}

// denseCosts are the products of one element type: matrices with a transposed b, as weights are, and vectors.
func denseCosts[T Float](c costCases, f *costFamily, kind string, size int) {
	const m, n, k, rows, cols = 64, 64, 128, 256, 512
	a, b, out := floats[T](c, m*k), floats[T](c, n*k), c.f32(m*n)
	w, x, y := floats[T](c, rows*cols), floats[T](c, rows+cols), c.f32(rows)
	for _, tile := range []int{GEMMSmallTile, GEMMLargeTile} {
		f.costs = append(f.costs, kernelCost{fmt.Sprintf("gemm_dense_%s_t%d", kind, tile), fmt.Sprintf("%d x %d x %d", m, n, k), m * n * k, size*(m*k+n*k) + 4*m*n,
			func(p *runtime.Pass) error {
				return GEMM(p, out, a, b, GEMMDims{M: m, N: n, K: k, TransB: true, Tile: tile})
			}})
	}
	for _, trans := range []string{"", "t_"} {
		f.costs = append(f.costs, kernelCost{"gemv_dense_" + trans + kind, fmt.Sprintf("%d x %d", rows, cols), rows * cols, size*(rows*cols+cols) + 4*rows,
			func(p *runtime.Pass) error {
				return GEMV(p, y, w, x, GEMVDims{Rows: rows, Cols: cols, Trans: trans != ""})
			}})
	}
}

func (c costCases) rope() costFamily {
	const t, hq, hkv, d = 8, 4, 2, 128
	all, kv := t*(hq+2*hkv)*d, t*hkv*d
	weights, freq := 4*d, 4*d/2
	shape := fmt.Sprintf("%d rows, %d and %d heads of %d", t, hq, hkv, d)
	f := costFamily{title: "Norms and rotary position embedding", operation: "an element of queries, keys and values",
		bytes: "queries, keys and values, read and written; weights of the norms and frequencies; what goes to the caches"}
	inv := c.f32(d / 2)
	heads := QKVHeads{Q: c.f32(t * hq * d), K: c.f32(kv), V: c.f32(kv), QWeight: c.f32(d), KWeight: c.f32(d), VWeight: c.f32(d), VNorm: true, InvFreq: inv,
		T: t, HeadsQ: hq, HeadsKV: hkv, HeadDim: d, RotaryDim: d, Eps: 1e-6}
	at := c.u32(5)
	f.costs = append(f.costs,
		kernelCost{"rms_qkv_rope", shape, all, 8*all + 3*weights + freq, func(p *runtime.Pass) error { return RMSQKVRoPE(p, heads, 5) }},
		kernelCost{"rms_qkv_rope_posbuf", shape, all, 8*all + 3*weights + freq, func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, heads, at) }})
	f32, f16 := 2*4*kv, 2*2*kv // of the caches
	bytes := 8*all + 3*weights + freq
	f.costs = append(f.costs, ropeStoreCost[float32](c, heads, "", shape, bytes+f32), ropeStoreCost[half.Float16](c, heads, "_f16", shape, bytes+f16),
		ropeStoreCost[half.BFloat16](c, heads, "_bf16", shape, bytes+f16))

	// Qwen2: biases and no norms.
	biased := heads
	biased.QWeight, biased.KWeight, biased.VWeight, biased.VNorm = runtime.Slice[float32]{}, runtime.Slice[float32]{}, runtime.Slice[float32]{}, false
	biased.QBias, biased.KBias, biased.VBias = c.f32(hq*d), c.f32(hkv*d), c.f32(hkv*d)
	shape += ", biases, no norms"
	bytes = 8*all + 4*(hq+2*hkv)*d + freq
	f.costs = append(f.costs,
		kernelCost{"rms_qkv_rope_opt", shape, all, bytes, func(p *runtime.Pass) error { return RMSQKVRoPE(p, biased, 5) }},
		kernelCost{"rms_qkv_rope_posbuf_opt", shape, all, bytes, func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, biased, at) }},
		ropeStoreCost[float32](c, biased, "_opt", shape, bytes+f32), ropeStoreCost[half.Float16](c, biased, "_f16_opt", shape, bytes+f16),
		ropeStoreCost[half.BFloat16](c, biased, "_bf16_opt", shape, bytes+f16))
	f.bytes += ", biases"
	return f
}

func ropeStoreCost[E Float](c costCases, h QKVHeads, suffix, shape string, bytes int) kernelCost {
	n := h.T * h.HeadsKV * h.HeadDim
	a := QKVRoPE[E]{Q: h.Q, K: h.K, V: h.V, QWeight: h.QWeight, KWeight: h.KWeight, VWeight: h.VWeight, VNorm: h.VNorm, InvFreq: h.InvFreq,
		QBias: h.QBias, KBias: h.KBias, VBias: h.VBias,
		CacheK: floats[E](c, 2*n), CacheV: floats[E](c, 2*n), Position: c.u32(5), CacheOffset: c.u32(64),
		T: h.T, HeadsQ: h.HeadsQ, HeadsKV: h.HeadsKV, HeadDim: h.HeadDim, RotaryDim: h.RotaryDim, Capacity: 2 * n, Eps: h.Eps}
	return kernelCost{"rms_qkv_rope_kv_store" + suffix, shape, h.T * (h.HeadsQ + 2*h.HeadsKV) * h.HeadDim, bytes,
		func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, a) }}
}

func (c costCases) norms() costFamily {
	const rows, dim = 4, 2048
	n := rows * dim
	x, w, y, y16 := c.f32(n), c.f32(dim), c.f32(n), c.bf16(n)
	shape := fmt.Sprintf("%d x %d", rows, dim)
	return costFamily{title: "RMS norms", operation: "an element", bytes: "rows, the weight, the result, and the residual that is read", costs: []kernelCost{
		{"rms_norm_f32", shape, n, 8*n + 4*dim, func(p *runtime.Pass) error { return RMSNormF32(p, y, x, w, rows, dim, 1e-6) }},
		{"rms_norm_bf16", shape, n, 6*n + 4*dim, func(p *runtime.Pass) error { return RMSNormBF16(p, y16, x, w, rows, dim, 1e-6) }},
		{"rms_norm_residual_add_f32", shape, n, 12*n + 4*dim,
			func(p *runtime.Pass) error { return RMSNormResidualAddF32(p, y, x, w, rows, dim, 1e-6, 1) }},
	}}
}

func (c costCases) embeddings() costFamily {
	const vocab, hidden, tokens, group = 64, 512, 8, 64
	n := tokens * hidden
	mlx, signed := randomBank(c.t, c.rt, c.r, vocab, hidden, group).bank, randomSigned(c.t, c.rt, c.r, vocab, hidden, group).bank
	out, ids := c.f32(n), c.u32(1, 7, 8, 9, 40, 41, 62, 63)
	shape := fmt.Sprintf("%d of %d", tokens, hidden)
	f := costFamily{title: "Embedding lookups", operation: "an element of the result", bytes: "codes, scales and biases or zero points of the rows; token ids; the result",
		costs: []kernelCost{
			{"embed_lookup_q4_mlx", shape, n, n/2 + n/group*4 + 4*tokens + 4*n, func(p *runtime.Pass) error { return EmbedLookupQ4MLX(p, out, mlx, ids, tokens, 2) }},
			{"embed_lookup_q4", shape, n, n/2 + n/group*8 + 4*tokens + 4*n, func(p *runtime.Pass) error { return EmbedLookupQ4(p, out, signed, ids, tokens, 2) }},
		}}
	for _, t := range WeightTypes() {
		w := randomRowExact(c.t, c.rt, c.r, t, vocab, hidden)
		f.costs = append(f.costs, kernelCost{embedLookupKernels[t], shape, n, tokens*t.RowBytes(hidden) + 4*tokens + 4*n,
			func(p *runtime.Pass) error { return w.embed(p, out, ids, tokens, 2) }})
	}
	f.costs = append(f.costs, c.affineEmbeddings()...)
	return f
}

func (c costCases) elements() costFamily {
	const n = 4096
	x, y, z := c.f32(n), c.f32(n), c.f32(n)
	x16, h16, b16, cap := c.f16(n), c.f16(n), c.bf16(n), newBuffer(c.t, c.rt, []float32{30}).s
	mk := func(kernel string, bytes int, call func(p *runtime.Pass) error) kernelCost {
		return kernelCost{kernel, fmt.Sprint(n), n, bytes * n, call}
	}
	b2 := c.bf16(n)
	return costFamily{title: "Elements", operation: "an element", bytes: "each operand and the result", costs: []kernelCost{
		mk("mlp_silu", 12, func(p *runtime.Pass) error { return MLPSiLU(p, z, x, y, n) }),
		mk("mlp_silu_bf16", 10, func(p *runtime.Pass) error { return MLPSiLU(p, b16, x, y, n) }),
		mk("mlp_gelu_tanh", 12, func(p *runtime.Pass) error { return MLPGELUTanh(p, z, x, y, n) }),
		mk("mlp_gelu_tanh_bf16", 10, func(p *runtime.Pass) error { return MLPGELUTanh(p, b16, x, y, n) }),
		mk("scale_f32_inplace", 8, func(p *runtime.Pass) error { return ScaleInPlaceF32(p, z, n, 2) }),
		mk("add_f32", 12, func(p *runtime.Pass) error { return Add(p, z, x, y, n) }),
		mk("add_f16", 6, func(p *runtime.Pass) error { return AddInPlace(p, x16, h16, n) }),
		mk("add_bf16", 6, func(p *runtime.Pass) error { return AddInPlace(p, b16, b2, n) }),
		{"add_bias_f32", "16 x 256", n, 8*n + 4*256, func(p *runtime.Pass) error { return AddBias(p, z, x, y, 16, 256) }},
		mk("cast_f32_f16", 6, func(p *runtime.Pass) error { return Cast(p, h16, x, n) }),
		mk("cast_f32_bf16", 6, func(p *runtime.Pass) error { return Cast(p, b16, x, n) }),
		mk("cast_f16_f32", 6, func(p *runtime.Pass) error { return Cast(p, z, x16, n) }),
		mk("cast_bf16_f32", 6, func(p *runtime.Pass) error { return Cast(p, z, b2, n) }),
		mk("cast_f16_bf16", 4, func(p *runtime.Pass) error { return Cast(p, b16, x16, n) }),
		mk("cast_bf16_f16", 4, func(p *runtime.Pass) error { return Cast(p, h16, b2, n) }),
		mk("copy_b32", 8, func(p *runtime.Pass) error { return Copy(p, z, x, n) }),
		mk("copy_b16", 4, func(p *runtime.Pass) error { return Copy(p, h16, x16, n) }),
		mk("softcap_logits", 8, func(p *runtime.Pass) error { return SoftcapLogits(p, z, cap, n) }),
	}}
}

func (c costCases) rows() costFamily {
	const rows, cols = 4, 1024
	x, out, sums := c.f32(rows*cols), c.f32(rows*cols), c.f32(rows)
	shape := fmt.Sprintf("%d x %d", rows, cols)
	return costFamily{title: "Rows", operation: "an element of the rows", bytes: "the rows and the result", costs: []kernelCost{
		{"softmax_rows_f32", shape, rows * cols, 8 * rows * cols, func(p *runtime.Pass) error { return SoftmaxRowsF32(p, out, x, rows, cols) }},
		{"row_sum_f32", shape, rows * cols, 4*rows*cols + 4*rows, func(p *runtime.Pass) error { return RowSumF32(p, sums, x, rows, cols) }},
		{"row_max_f32", shape, rows * cols, 4*rows*cols + 4*rows, func(p *runtime.Pass) error { return RowMaxF32(p, sums, x, rows, cols) }},
	}}
}

func (c costCases) caches() costFamily {
	f := costFamily{title: "Key-value caches", operation: "an element that is stored", bytes: "what is stored, read and written"}
	cacheCosts[float32](c, &f, "", "_b32", 4)
	cacheCosts[half.Float16](c, &f, "_f16", "", 2)
	cacheCosts[half.BFloat16](c, &f, "_bf16", "_b16", 2)
	return f
}

// cacheCosts are the kernels for caches of one type; ring is the kernel that takes a ring of it, unless it stands elsewhere.
func cacheCosts[T Float](c costCases, f *costFamily, suffix, ring string, size int) {
	const n, capacity, slot, slots, filled = 1024, 4096, 256, 8, 5
	k, v, ck, cv, at := c.f32(n), c.f32(n), floats[T](c, capacity), floats[T](c, capacity), c.u32(1024)
	f.costs = append(f.costs,
		kernelCost{"kv_store_timestep" + suffix, fmt.Sprint(n), n, n * (4 + size), func(p *runtime.Pass) error { return KVStoreTimestep(p, ck, k, at, n, capacity) }},
		kernelCost{"kv_store_timestep_pair" + suffix, fmt.Sprintf("2 of %d", n), 2 * n, 2 * n * (4 + size),
			func(p *runtime.Pass) error {
				return KVStoreTimestepPair(p, KVPair[T]{CacheK: ck, CacheV: cv, K: k, V: v, Offset: at, N: n, Capacity: capacity})
			}})
	if ring != "" {
		a := KVRing[T]{Dst: floats[T](c, slot*slots), Src: floats[T](c, slot*slots), Filled: c.u32(filled), Start: c.u32(6), Slot: slot, Capacity: slots}
		f.costs = append(f.costs, kernelCost{"kv_ring_densify" + ring, fmt.Sprintf("%d of %d slots of %d", filled, slots, slot), filled * slot, 2 * size * filled * slot,
			func(p *runtime.Pass) error { return KVRingDensify(p, a) }})
	}
}

func (c costCases) choices() costFamily {
	const n = 4096
	logits, cap, few := c.f32(n), newBuffer(c.t, c.rt, []float32{30}).s, c.f32(MaxSampleLogits)
	groups := ArgmaxGroups(n)
	token, value, index, values := c.u32(0), c.f32(1), c.u32(make([]uint32, groups)...), c.f32(groups)
	step := DecodeStep{Prompt: c.u32(1, 2, 3), Argmax: c.u32(9), Output: c.u32(0, 0, 0, 0), EndTokens: c.u32(1, 5), KVCapacity: 64, KVStride: 128}
	state, err := StartDecodeAt([]uint32{1, 2, 3}, 2, 128)
	if err != nil {
		c.t.Fatal(err)
	}
	words := state.Words()
	step.State = c.u32(words[:]...)
	return costFamily{title: "Choice of the next token", operation: "a logit; of decode_advance, a step",
		bytes: "the logits and the result, and in softcap_sample the logits written; of decode_advance, the four words of the state that it " +
			"needs, the token, the end tokens, the token appended and the six words of the state that change",
		costs: []kernelCost{
			{"softcap_argmax_one_pass", fmt.Sprint(n), n, 4*n + 8, func(p *runtime.Pass) error { return SoftcapArgmax(p, token, value, logits, cap, n) }},
			{"argmax_f32", fmt.Sprint(n), n, 4*n + 8*groups,
				func(p *runtime.Pass) error {
					return ArgmaxPass(p, ArgmaxOperands{Index: index, Value: values, Values: logits, N: n})
				}},
			{"softcap_sample", fmt.Sprint(MaxSampleLogits), MaxSampleLogits, 8*MaxSampleLogits + 4,
				func(p *runtime.Pass) error { return SoftcapSample(p, token, few, cap, MaxSampleLogits) }},
			{"decode_advance", "2 end tokens", 1, 4 * (4 + 1 + 2 + 1 + 6), func(p *runtime.Pass) error { return DecodeAdvance(p, step) }},
		}}
}

func (c costCases) attention() costFamily {
	f := costFamily{title: "Attention",
		operation: "a multiply-add: two products with the head dimension for each head, row and key that the row sees",
		bytes:     "queries; keys and values that some row sees, once for each head of the cache; sinks; results, or partial results of chunks that hold keys"}
	for _, s := range rowsSettings {
		shape := attnCostShape{tq: 16, tkv: 64, heads: 2, headsKV: 1, dim: s.dim}
		f.costs = append(f.costs, rowsCosts[float32](c, s, shape, 0)...)
		f.costs = append(f.costs, rowsCosts[half.Float16](c, s, shape, 1)...)
		f.costs = append(f.costs, rowsCosts[half.BFloat16](c, s, shape, 2)...)
	}
	for i, kernel := range []string{"flash_attn_swa_h128", "flash_attn_swa_h256", "flash_attn_global_h512"} {
		shape := attnCostShape{tq: 16, tkv: 64, heads: 2, headsKV: 1, dim: 128 << i}
		q, k, v, live, d := attnOperands[float32](c, shape)
		out := c.f32(q.Len())
		f.costs = append(f.costs, kernelCost{kernel, shape.String(), shape.operations(), shape.operandBytes(4) + 4*q.Len(),
			func(p *runtime.Pass) error { return FlashAttnTiled(p, out, q, k, v, live, d) }})
	}
	for _, s := range decodeSettings {
		shape := attnCostShape{tq: 1, tkv: 384, heads: 2, headsKV: 1, dim: s.dim}
		f.costs = append(f.costs, decodeCosts[float32](c, s, shape, 0)...)
		f.costs = append(f.costs, decodeCosts[half.Float16](c, s, shape, 1)...)
		f.costs = append(f.costs, decodeCosts[half.BFloat16](c, s, shape, 2)...)
	}
	return f
}

// attnCostShape is an attention whose last row sees all keys.
type attnCostShape struct{ tq, tkv, heads, headsKV, dim int }

func (s attnCostShape) String() string {
	return fmt.Sprintf("%d rows, %d keys, %d heads of %d on %d", s.tq, s.tkv, s.heads, s.dim, s.headsKV)
}

// operations: row t of tq sees all keys but the last tq-1-t.
func (s attnCostShape) operations() int {
	pairs := 0
	for t := range s.tq {
		pairs += s.tkv - (s.tq - 1 - t)
	}
	return 2 * s.dim * s.heads * pairs
}

// operandBytes are queries, keys and values.
func (s attnCostShape) operandBytes(cache int) int {
	return 4*s.tq*s.heads*s.dim + 2*cache*s.tkv*s.headsKV*s.dim
}

func attnOperands[E Float](c costCases, s attnCostShape) (q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive, d AttnDims) {
	n := s.tkv * s.headsKV * s.dim
	return c.f32(s.tq * s.heads * s.dim), floats[E](c, n), floats[E](c, n), AttnLive{Tkv: c.u32(uint32(s.tkv)), QPos: c.u32(uint32(s.tkv - s.tq)), KVPos: c.u32(0)},
		AttnDims{Batch: 1, Tq: s.tq, Heads: s.heads, HeadsKV: s.headsKV, HeadDim: s.dim, Capacity: s.tkv, Scale: 0.1}
}

func rowsCosts[E Float](c costCases, s attnSetting, shape attnCostShape, kind int) (costs []kernelCost) {
	if s.plain[kind] == "" && s.opt[kind] == "" {
		return nil
	}
	q, k, v, live, d := attnOperands[E](c, shape)
	out := c.f32(q.Len())
	d.Lanes, d.Groups = s.lanes, s.n
	bytes := shape.operandBytes(floatSize[E]()) + 4*q.Len()
	if s.plain[kind] != "" {
		costs = append(costs, kernelCost{s.plain[kind], shape.String(), shape.operations(), bytes,
			func(p *runtime.Pass) error { return FlashAttnRows(p, out, q, k, v, live, d) }})
	}
	if s.opt[kind] != "" {
		capped := d
		capped.Softcap, capped.Sinks = 20, c.f32(shape.heads)
		costs = append(costs, kernelCost{s.opt[kind], shape.String() + ", cap and sinks", shape.operations(), bytes + 4*shape.heads,
			func(p *runtime.Pass) error { return FlashAttnRows(p, out, q, k, v, live, capped) }})
	}
	return costs
}

func decodeCosts[E Float](c costCases, s attnSetting, shape attnCostShape, kind int) []kernelCost {
	if s.plain[kind] == "" {
		return nil
	}
	q, k, v, live, d := attnOperands[E](c, shape)
	d.Lanes, d.Chunk = s.lanes, s.n
	out, scratch := c.f32(q.Len()), c.f32(AttnDecodeScratch(d))
	partial := 4 * shape.heads * ceilDiv(shape.tkv, s.n) * (shape.dim + 2)
	return []kernelCost{{s.plain[kind], shape.String(), shape.operations(), shape.operandBytes(floatSize[E]()) + partial,
		func(p *runtime.Pass) error { return FlashAttnDecode(p, out, q, k, v, live, scratch, d) }}}
}

func (c costCases) partialMerges() costFamily {
	f := costFamily{title: "Merging of partial attention", operation: "a multiply-add: an element of a partial result", bytes: "the partial results, sinks, and the result"}
	for _, s := range reduceSettings {
		shape := attnCostShape{tq: 1, tkv: 384, heads: 2, headsKV: 1, dim: s.dim}
		q, k, v, live, d := attnOperands[float32](c, shape)
		d.Chunk, d.Sinks = s.n, c.f32(shape.heads)
		out, scratch := c.f32(q.Len()), c.f32(AttnDecodeScratch(d))
		partials := shape.heads * ceilDiv(shape.tkv, s.n)
		f.costs = append(f.costs, kernelCost{s.plain[0], fmt.Sprintf("%d heads of %d, %d chunks", shape.heads, shape.dim, ceilDiv(shape.tkv, s.n)),
			partials * shape.dim, 4*partials*(shape.dim+2) + 4*shape.heads + 4*q.Len(),
			func(p *runtime.Pass) error { return FlashAttnDecode(p, out, q, k, v, live, scratch, d) }})
	}
	return f
}
