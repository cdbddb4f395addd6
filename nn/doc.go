// Package nn launches neural-network kernels: one function per operation, on typed device memory.
//
//	err = rt.Run(func(p *runtime.Pass) error {
//		if err := nn.RMSNormBF16(p, x16, x, weight, 1, dim, 1e-6); err != nil {
//			return err
//		}
//		return nn.GEMVQ4MLX(p, y, bank, x16)
//	})
//
// The kernels are those of the shaders folder, in the library that package metallib embeds.
//
// # Functions
//
// Sizes in brackets, row-major, the last one contiguous. f32, f16, bf16, int8, i32 and u32 are element types. All are deterministic on one
// device: the same call gives the same bits, encoded directly or replayed.
//
//	function               | result                                    | layouts
//	EmbedLookupQ4MLX       | rows of a table, scaled                   | table Q4MLXBank [vocab, hidden], ids u32, out f32
//	EmbedLookupQ4          | rows of a table, scaled                   | table Q4Bank [vocab, hidden], ids u32, out f32
//	EmbedLookup            | rows of a table, scaled                   | table BlockBank or DenseBank [vocab, cols], ids u32, out f32
//	EmbedLookupAffine      | rows of a table, scaled                   | table AffineBank [vocab, hidden], ids u32, out f32
//	RMSNormF32             | x / rms(x) * w                            | x, out f32 [rows, dim], w f32 [dim]
//	RMSNormBF16            | x / rms(x) * w                            | x f32 [rows, dim], w f32 [dim], out bf16
//	RMSNormResidualAddF32  | s * (r + x / rms(x) * w)                  | r, x f32 [rows, dim], w f32 [dim]
//	GEMVQ4MLX              | W x                                       | W [rows, cols] Q4MLXBank or Q4MLXInterleavedBank, x bf16, y f32
//	GEMVQ4MLXAdd           | r + W x                                   | as above, r f32 [rows]
//	GEMVQ4MLXKV            | Wk x, Wv x                                | as above, twice
//	GEMVQ4MLXQKV           | Wq x, Wk x, Wv x                          | as above, three times
//	GEMVQ4MLXGateUpGELU    | gelu(Wg x) * (Wu x)                       | as above, out f32 or bf16
//	GEMMQ4MLX              | X W^T                                     | W as above, X bf16 [m, cols], y f32 [m, rows], m up to 8
//	GEMMQ4MLXAdd           | R + X W^T                                 | as above, R f32 [m, rows]
//	QMMAffine              | X W^T, up to 16 X each as if alone        | W AffineBank [rows, cols], X [m, cols], y [m, rows] f32, f16 or bf16
//	QMMAffineCodes         | X W^T, by a kernel of the caller's choice | W AffineCodesBank, X, y f32
//	QMMAffinePacked        | the same, from packed 4-bit codes         | W AffineBank, X, y f32
//	QMMAffinePlane         | bf16(X) W^T, m up to 32                   | W AffinePlaneBank, X, y f32, and scratch
//	GEMMInt8               | A B, exact                                | A int8 [M, K], B int8 [K, N], each may be transposed, C i32 [M, N]
//	GEMMInt8Scaled         | A B, columns and rows scaled              | as above, C f32 [M, N], scales f32 [N], [M]
//	GEMVQ4MLXF32           | W x, a thread for each row                | W Q4MLXBank [rows, cols], x, y f32
//	GEMVQ4MLXF32Wide       | W x, a simdgroup for each row             | as above
//	GEMVQ4MLXF32Tiled      | W x, a threadgroup for each row           | as above
//	GEMVQ4MLXBlocked       | W x                                       | W Q4MLXBlockedBank [rows, cols], x, y f32
//	GEMVQ4MLXBlockedGateUpGELU | gelu(Wg x) * (Wu x)                   | as above, out f32 or bf16
//	GEMVQ4, GEMVQ4Tiled    | W x                                       | W Q4Bank [rows, cols], x, y f32
//	GEMVQ8                 | W x                                       | W Q8Bank [rows, cols], x, y f32
//	GEMM                   | A B, of dense matrices                    | A [M, K], B [K, N], each or its transpose, f32, f16 or bf16; out
//	                       |                                           | f32, f16 or bf16 [M, N]; batches in strides
//	GEMMEpilogue           | act(alpha A B + beta C + bias)            | as above, C as out, bias f32 [N]
//	GEMMWeights            | X W^T, for many rows                      | W [rows, cols] BlockBank or DenseBank, X [m, cols], y [m, rows]
//	                       |                                           | f32, f16 or bf16
//	GEMMWeightsEpilogue    | act(alpha X W^T + beta C + bias)          | as above, C as y, bias f32 [rows]
//	GEMV, GEMVEpilogue     | as GEMMEpilogue, with a vector            | W [rows, cols] or its transpose, x [cols], as above
//	RowExactMatvec         | W x, for up to 16 x, each as if alone     | W [batch * rows, cols] BlockBank or DenseBank, x, y f32, any strides
//	RowExactMatvecScheduled | the same, laid out as the caller says   | as above
//	RMSQKVRoPE, RMSQKVRoPEPosBuf | biases, norms, RoPE, of queries too  | f32 [T, heads, D], biases f32 [heads, D], weights f32 [D]
//	RMSQKVRoPEKVStore      | the same, and the store to the cache      | as above; caches f32, f16 or bf16 [positions, Hkv, D]
//	FlashAttnRows          | softmax(s q k) v, causal, sliding window  | q f32 [B, T, H, D], k, v f32, f16 or bf16 [B, cap, Hkv, D], out f32 or bf16
//	FlashAttnDecode        | the same, of one row, split over the keys | as above, T = 1, and scratch f32 [B, H, chunks, D + 2]
//	Attention              | the one of the two that suits             | as above
//	FlashAttnTiled         | as FlashAttnRows, D = 128, 256 or 512     | as there, k, v f32
//	FlashAttnPrecise       | attention of many rows, f16 q and k       | q, k f16 [B, heads, T, D]; v f32, f16 or codes; out f32
//	PreciseBlocks          | what is in a mask's tiles: 0, 1 or 2      | mask f16 [Tq, Tk], out u8 [tiles, tiles]
//	TQHBEncode             | rotated, a byte a number, to the cache    | x f32 [T, heads, D], codes u8, norms f32
//	TQHBDequantize         | level[code] (norm / divisor)              | codes u8 [n, D], norms f32, out f32
//	MLPSiLU                | silu(g) * u                               | g, u f32 [n], out f32 or bf16
//	MLPGELUTanh            | gelu(g) * u                               | g, u f32 [n], out f32 or bf16
//	ScaleInPlaceF32        | s * x                                     | x f32 [n]
//	Add, AddInPlace        | a + b                                     | f32, f16 or bf16 [n]
//	AddBias                | x + b, b to each row                      | x, out f32 [rows, cols], b f32 [cols]
//	Cast                   | the same number in another type           | f32, f16 and bf16 [n], from each to each
//	Copy                   | the same bits                             | 16 or 32 bits [n]
//	SoftmaxRowsF32         | softmax of each row                       | x, out f32 [rows, cols]
//	RowSumF32, RowMaxF32   | sum and maximum of each row               | x f32 [rows, cols], out f32 [rows]
//	KVStoreTimestep        | store at a live offset                    | src f32 [n], cache f32, f16 or bf16 [capacity]
//	KVStoreTimestepPair    | the same, of keys and values              | as above, twice
//	KVRingDensify          | a ring buffer, the oldest slot first      | f32, f16 or bf16 [capacity, slot]
//	SoftcapLogits          | cap * tanh(x / cap)                       | logits f32 [n]
//	SoftcapSample          | the same, and the greatest finite logit   | logits f32 [n], n up to 256, token u32
//	SoftcapArgmax          | the greatest finite logit                 | logits f32 [n], token u32, value f32
//	ArgmaxPass             | the greatest of each 256 numbers          | values f32 [n], indices u32 [n]; results [n / 256]
//	Argmax                 | as SoftcapArgmax, in several passes       | as SoftcapArgmax, and scratch
//	DecodeAdvance          | counters and token of the next step       | state u32 [8], lists u32
//
// and for each its slots (scalars after the semicolon) and the worst error of its float32 result over all shapes of this
// package's tests, measured on the software device against float64; bf16 results are that, rounded:
//
//	EmbedLookupQ4MLX       | 0 1 3 4; 5 to 9                            | 5.7e-8 of the value
//	EmbedLookupQ4          | 0 to 4; 5 to 9                             | 1.5e-7 of the value
//	EmbedLookup            | 0 1 2; 3 to 6                              | rounded once, from the float32 weight
//	EmbedLookupAffine      | 0 to 4; 5 to 9                             | 6e-8 of the value
//	RMSNormF32             | 0 1 2; 3 to 5                              | 1.9e-7 of the value
//	RMSNormBF16            | 0 1 2; 3 to 5                              | the rounding to bf16, 2^-8 of the value
//	RMSNormResidualAddF32  | 0 1 2; 3 to 6                              | 2.4e-7 of the branch, 6e-8 of the residual
//	GEMVQ4MLX              | 0 1 3 4; 5 to 7                            | 4.7e-9 of the sum of |scale code x| + |bias x|
//	GEMVQ4MLXAdd           | 0 1 3 4 8; 5 to 7                          | the bits of GEMVQ4MLX and r, rounded once
//	GEMVQ4MLXKV            | 0 1 3 4 6 7 8; 9 to 12                     | the bits of GEMVQ4MLX, 4.7e-9 of that sum
//	GEMVQ4MLXQKV           | 0 to 9; 10 to 15                           | the bits of GEMVQ4MLX, 5.5e-9 of that sum
//	GEMVQ4MLXGateUpGELU    | 0 1 3 4 6 7; 8 to 11                       | 3e-9 of those sums, through the slope of gelu(g) u
//	GEMMQ4MLX              | 0 1 3 4; 5 to 8                            | the bits of GEMVQ4MLX, 3.5e-9 of that sum
//	GEMMQ4MLXAdd           | 0 1 3 4 9; 5 to 8                          | the bits of GEMMQ4MLX and r, rounded once
//	QMMAffine              | 0 to 4; 5, a block of parameters           | 0.05 of its budget: 2^-24 of the terms' magnitude per rounding
//	QMMAffineCodes         | as above                                   | 0.39 of its budget: 2^-24 of the sum of |w x| per column
//	QMMAffinePacked        | as above                                   | the bits of QMMAffineCodes, 0.09 of that budget
//	QMMAffinePlane         | 0 to 2; 3, and 0 to 4; 5, blocks           | rounding x to bf16: 2^-9 of |w x|; sums as QMMAffine
//	GEMMInt8               | 0 1 2; 3 to 5                              | exact
//	GEMMInt8Scaled         | 0 1 2 8 9; 3 to 5 10                       | the exact sum, rounded once, and once more with each scale
//	GEMVQ4MLXF32           | 0 1 3 4; 5 to 7                            | 4.9e-8 of that sum
//	GEMVQ4MLXF32Wide       | 0 1 3 4; 5 to 7                            | 2.9e-8 of that sum
//	GEMVQ4MLXF32Tiled      | 0 1 3 4; 5 to 7                            | 2.5e-8 of that sum
//	GEMVQ4MLXBlocked       | 0 1 3 4; 5 to 7                            | 3.5e-8 of that sum
//	GEMVQ4MLXBlockedGateUpGELU | 0 1 3 4 6 7; 8 to 11                   | 0.16 of its budget: 2^-23 of those sums, 2e-6 of gelu
//	GEMVQ4                 | 0 to 4; 5 to 7                             | 4.3e-8 of the sum of |scale code x| + |scale zero x|
//	GEMVQ4Tiled            | 0 to 4; 5 to 7                             | 2.9e-8 of that sum
//	GEMVQ8                 | 0 to 4; 5 to 7                             | 3.6e-8 of that sum
//	GEMM, GEMMEpilogue     | 0 1 2 8 11; 3 to 7 9 10 12 13              | 0.14 of its budget: 2^-24 of the terms' magnitude per addition
//	GEMMWeights            | 0 1 2 8 11; 3 to 5 9 10                    | 0.12 of that budget, the bits of GEMM
//	GEMMWeightsEpilogue    | as above                                   | as above
//	GEMV, GEMVEpilogue     | 0 1 2 8 11; 4 to 7 9 10 12 13              | 0.21 of that budget
//	RowExactMatvec         | 0 to 2; 3, a block of parameters           | 0.24 of its budget: 2^-24 of the sum of |w x| for each column
//	                       |                                            | of a thread and each level of the sum over threads
//	RowExactMatvecScheduled | as above                                  | as above
//	RMSQKVRoPE, RMSQKVRoPEPosBuf | 0 to 5 18; 6 to 11 13 19 (11 live)    | 0.27 of the budget below, the bits of RMSQKVRoPEKVStore
//	RMSQKVRoPEKVStore      | 0 to 5 11 14 15 16 18; 6 to 10 13 17 19    | 0.28 of its budget: 1e-6 of a pair, 2^-23 of the angle
//	both, with options     | those, and 22 23 24; 20 21 25              | 0.19 of that budget
//	FlashAttnRows          | 0 to 3 6 11 12 16; 4 5 7 to 10 13 to 15 17 | 0.19 of its budget: 1e-6 of the values, the scores' errors
//	FlashAttnDecode        | 0 to 3 6 11 12; 4 7 to 10 13 15, and       | 0.06 of that budget
//	                       | 0 1 3 7; 2 4 5 6 8                         |
//	Attention              | those of the function it calls             | the bits of that function
//	FlashAttnTiled, D 128  | 0 to 3 6 11 12; 4 5 7 to 10 13             | 0.18 of FlashAttnRows' budget
//	FlashAttnTiled, D 256  | 0 to 3 6 11 12; 4 5 7 to 10 13 14          | as above
//	FlashAttnTiled, D 512  | 0 to 3 6 10 11; 4 5 7 to 9 12 13           | as above
//	FlashAttnPrecise       | 0 to 3 6 7 8 10; blocks 4 5 9              | 0.34 of its budget: 3e-7 of the values, the scores' errors
//	FlashAttnPrecise, D 512 | 0 to 3 8 10; blocks 4 9                   | as above
//	PreciseBlocks          | 0 1; 2 to 5                                | exact
//	TQHBEncode             | 0 to 3; 4 to 9                             | norms 4e-7 of themselves, codes as near as 2e-6 of a level
//	TQHBDequantize         | 0 1 2; 3 to 6                              | rounded twice, the bits of quant.TQHB.Decode
//	MLPSiLU                | 0 1 2; 3                                   | 1.6e-7 of the value
//	MLPGELUTanh            | 0 1 2; 3                                   | 0.30 of its budget: 6e-7 of the value, and of exp's argument
//	ScaleInPlaceF32        | 0; 1 2                                     | rounded once
//	Add, AddInPlace        | 0 1 2; 3                                   | rounded once in f32, once more to f16 and bf16
//	AddBias                | 0 1 2; 3 4                                 | rounded once
//	Cast                   | 0 1; 2                                     | rounded once
//	Copy                   | 0 1; 2                                     | exact
//	SoftmaxRowsF32         | 0 1; 2 3                                   | 0.21 of its budget: 2^-24 per addition, 2^-22 of the exponents
//	RowSumF32              | 0 1; 2 3                                   | 0.09 of 2^-24 of the sum of magnitudes per addition
//	RowMaxF32              | 0 1; 2 3                                   | exact
//	KVStoreTimestep        | 0 1 3; 2 4                                 | exact in f32, else rounded once
//	KVStoreTimestepPair    | 0 to 3 5; 4 6                              | exact in f32, else rounded once
//	KVRingDensify          | 0 1 4 5; 2 3                               | exact
//	SoftcapLogits          | 0 1; 2                                     | 1.5e-7 of the value
//	SoftcapSample          | 0 1 2; 3                                   | the index exact, the values 1.7e-7 of themselves
//	SoftcapArgmax          | 0 1 2 4; 3                                 | the index exact, the value 9e-8 of itself
//	ArgmaxPass             | 0 1 2 4 6; 3 5 7                           | the indices exact, the values 1.4e-7 of themselves
//	Argmax                 | those of ArgmaxPass                        | the bits of SoftcapArgmax
//	DecodeAdvance          | 0 to 3 8; 4 to 7 9                         | exact
//
// What each slot holds is in the function's documentation.
//
// What kernels take that a model's configuration only describes, the host computes: [RoPEParameters] are the frequencies of rotary
// position embedding, plain and for longer texts (linear, Llama 3, YaRN, LongRoPE and GGUF's factors).
//
// # Validation
//
// Every function checks everything before it encodes anything, in this order: scalars, shapes and their products (none can
// overflow), memory that is valid and of the pass's runtime, lengths and alignment, and that what is written is not read-only and
// overlaps nothing else that the call touches. A slice may be longer than needed; the rest is neither read nor written. A call
// that is refused returns a [*runtime.Error] with function, argument, what it has and what it needs, over one of runtime's
// sentinels, and leaves the pass as it was. A call with nothing to do returns nil and encodes nothing. Beside the errors that a
// function names there is ErrMisuse, for a nil pass and for read-only memory that would be written.
//
// The Validate functions make these checks without a pass. [runtime.Runtime.Check] does so for any call, and for all calls of a step,
// with those of the launches: threads and threadgroups beyond the device's limits.
//
// Values that change from step to step (positions, lengths, tokens) are device slices. The kernels read them when they
// run and limit them to capacities that the host has checked, so that no live value leads out of a buffer.
//
// Calls allocate nothing unless they are refused. They belong to the goroutine of their pass; there is no other state.
//
// # Unsafe variants
//
// An Unsafe variant binds its scalars from the caller's own storage ([runtime.ScalarPool]), so that a recorded program
// reads them anew on each replay. bind is called once and must put each scalar slot that the function documents, once, with
// the same type and the same value as the call's arguments, and in a slot for a block of parameters a [runtime.ScalarBlock]
// with the same bytes; anything else is refused, and a nil bind makes it the plain
// function. What is left to the caller, and what makes these functions unsafe: a scalar that is changed later, with
// Scalar.Set, changes what replays do, and no check is made then. Its new value must be one that the same call would
// accept with the same operands and that gives the same number of threadgroups: smaller rows, columns or lengths that still fit are
// fine, larger ones lead out of buffers.
package nn
