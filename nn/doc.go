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
// Sizes in brackets, row-major, the last one contiguous. f32, bf16 and u32 are element types. All are deterministic on one
// device: the same call gives the same bits, encoded directly or replayed.
//
//	function               | result                                    | layouts
//	EmbedLookupQ4MLX       | rows of a table, scaled                   | table Q4MLXBank [vocab, hidden], ids u32, out f32
//	RMSNormBF16            | x / rms(x) * w                            | x f32 [rows, dim], w f32 [dim], out bf16
//	RMSNormResidualAddF32  | s * (r + x / rms(x) * w)                  | r, x f32 [rows, dim], w f32 [dim]
//	GEMVQ4MLX              | W x                                       | W Q4MLXBank [rows, cols], x bf16, y f32
//	GEMVQ4MLXQKV           | Wq x, Wk x, Wv x                          | as above, three times
//	GEMVQ4MLXGateUpGELU    | gelu(Wg x) * (Wu x)                       | as above, out f32 or bf16
//	RMSQKVRoPEKVStore      | norms, RoPE, store to the cache           | f32 [T, heads, D]; caches f32 [positions, Hkv, D]
//	FlashAttnRows          | softmax(s q k) v, causal, sliding window  | q f32 [B, T, H, 128], k, v f32 [B, cap, Hkv, 128], out f32 or bf16
//	SoftcapArgmax          | the greatest finite logit                 | logits f32 [n], token u32, value f32
//	DecodeAdvance          | counters and token of the next step       | state u32 [8], lists u32
//
// and for each its slots (scalars after the semicolon) and the worst error of its float32 result over all shapes of this
// package's tests, measured on the software device against float64; bf16 results are that, rounded:
//
//	EmbedLookupQ4MLX       | 0 1 3 4; 5 to 9                            | 5.7e-8 of the value
//	RMSNormBF16            | 0 1 2; 3 to 5                              | the rounding to bf16, 2^-8 of the value
//	RMSNormResidualAddF32  | 0 1 2; 3 to 6                              | 2.4e-7 of the branch, 6e-8 of the residual
//	GEMVQ4MLX              | 0 1 3 4; 5 to 7                            | 3.4e-9 of the sum of |scale code x| + |bias x|
//	GEMVQ4MLXQKV           | 0 to 9; 10 to 15                           | 5.5e-9 of that sum
//	GEMVQ4MLXGateUpGELU    | 0 1 3 4 6 7; 8 to 11                       | 3e-9 of those sums, through the slope of gelu(g) u
//	RMSQKVRoPEKVStore      | 0 to 5 11 14 15 16 18; 6 to 10 13 17 19    | 0.28 of its budget: 1e-6 of a pair, 2^-23 of the angle
//	FlashAttnRows          | 0 to 3 6 11 12; 4 5 7 to 10 13 14          | 0.19 of its budget: 1e-6 of the values, the scores' errors
//	SoftcapArgmax          | 0 1 2 4; 3                                 | the index exact, the value 9e-8 of itself
//	DecodeAdvance          | 0 to 3 8; 4 to 7 9                         | exact
//
// What each slot holds is in the function's documentation.
//
// # Validation
//
// Every function checks everything before it encodes anything, in this order: scalars, shapes and their products (none can
// overflow), memory that is valid and of the pass's runtime, lengths and alignment, and that what is written overlaps
// nothing else that the call touches. A slice may be longer than needed; the rest is neither read nor written. A call
// that is refused returns a [*runtime.Error] with function, argument, what it has and what it needs, over one of runtime's
// sentinels, and leaves the pass as it was. A call with nothing to do returns nil and encodes nothing.
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
// the same type and the same value as the call's arguments; anything else is refused, and a nil bind makes it the plain
// function. What is left to the caller, and what makes these functions unsafe: a scalar that is changed later, with
// Scalar.Set, changes what replays do, and no check is made then. Its new value must be one that the same call would
// accept with the same operands and that gives the same number of threadgroups: smaller rows, columns or lengths that still fit are
// fine, larger ones lead out of buffers.
package nn
