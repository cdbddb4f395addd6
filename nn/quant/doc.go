// Package quant handles block-quantised weights on the host: packing, quantising, converting between layouts, and
// reference arithmetic. It knows nothing of devices; package nn takes its results to one.
//
// # MLX affine
//
// [Affine] is the format that MLX (https://github.com/ml-explore/mlx, mx.quantize with mode "affine") calls affine, with codes
// of 4, 6 or 8 bits: each run of GroupSize columns of a row has a scale and a bias, and a weight is
//
//	w = scale * code + bias,  code = 0 .. 2^Bits - 1
//
// The codes of a row are a stream of bits, the lowest of the first code first, in little-endian words: 4-bit codes are eight to
// a word, 6-bit codes four in three bytes, sixteen in three words. An Affine is the three tensors that MLX stores, with scales and biases
// in float32, float16 or bfloat16; an [AffineFormat] says which of these forms it is.
//
// [AffineCodes] has a byte for each code, and scales and biases in float32. [AffinePlane] has 4-bit codes and groups of 64 in tiles
// of 64 rows: of a tile each group's scales and biases stand together, and of each 32 columns four words a row, so that a simdgroup
// that takes a row a lane reads 16 bytes from each. With runs = Cols/32 and gpr = Cols/64, word c of run h, and group g, of row 64 t + r are at
//
//	((t runs + h) 64 + r) 4 + c   and   (t gpr + g) 64 + r
//
// and word c has the codes of columns 32 h + 4 c to + 3 and, 16 columns on, those of four more: the even ones in the four nibbles of its
// low half, the odd ones in those of its high half. Metadata has a scale in the low half of a word and a bias in the high one.
//
// # MLX affine, 4 bits, scales and biases together
//
// [Q4MLX] is that format with 4 bits and bfloat16, and scales and biases interleaved, so that a kernel loads both at once:
//
//	Packed        uint32    [Rows, Cols/8]
//	ScalesBiases  bfloat16  [Rows, Cols/GroupSize, 2]: scale, bias
//
// The group size is 32, 64, 128, 256 or 512 and divides the number of columns: a ragged last group is refused, as MLX
// refuses it.
//
// Kernels read it in two more orders, padded with zeros to whole blocks or tiles of rows. [Q4MLXBlocked] has blocks of 16
// rows: group after group, and of each group the codes, or the scale and bias, of one row after the other. With
// gpr = Cols/GroupSize, group g of row 16 b + r is at
//
//	(b gpr + g) 16 + r
//
// [Q4MLXInterleaved] has tiles of 4 rows: of their codes each two words, 16 columns, come from the next row, and of their
// scales each pair. With p = Cols/16, pack k and group g of row 4 t + r are at
//
//	(t p + k) 4 + r   and   (t gpr + g) 4 + r
//
// # Signed 4-bit with zero points
//
// [Q4] has signed codes, and a zero point where MLX has a bias:
//
//	w = scale * (code - zero),  code = -8 .. 7
//
// Packed is as above, each code in two's complement; scales and zeros are float32 numbers in slices of their own:
//
//	Packed         uint32   [Rows, Cols/8]
//	Scales, Zeros  float32  [Rows, Cols/GroupSize]
//
// The group size is a multiple of 8 and divides the number of columns.
//
// # 8-bit with zero points
//
// [Q8] has a byte for each code, and is otherwise like Q4:
//
//	w = scale * (code - zero),  code = -128 .. 127
//
//	Codes          int8     [Rows, Cols]
//	Scales, Zeros  float32  [Rows, Cols/GroupSize]
//
// The group size is any that divides the number of columns.
//
// # Blocks of GGUF files
//
// A [BlockFormat] is one of the formats that ggml (https://github.com/ggml-org/ggml, ggml-common.h) defines and GGUF files hold. d and dmin
// are float16, numbers are little-endian, q[i] is the code of weight i.
//
//	Q4_0    d, 16 bytes            w = d (q - 8): the low half of byte i is q[i], the high half q[i+16]
//	IQ4_NL  d, 16 bytes            w = d T[q] with a table T of 16 values, codes as in Q4_0
//	Q5_0    d, 32 bits, 16 bytes   w = d (q - 16): low four bits as in Q4_0, the fifth of q[i] is bit i
//	Q8_0    d, 32 bytes            w = d q, q = -128 .. 127
//	Q4_K    d, dmin, 12 bytes, 128 bytes
//	Q5_K    d, dmin, 12 bytes, 32 bytes, 128 bytes
//	        w = d s[j] q - dmin m[j] for run j of 32 weights; the 12 bytes hold eight s and eight m of 6 bits; each 32 of the
//	        128 bytes hold two runs, the first in the low halves; the fifth bit of weight i of run j is bit j of byte i of the 32
//	Q6_K    128 bytes, 64 bytes, 16 bytes, d
//	        w = d s[j] (q - 32) for run j of 16 weights, s[j] = -128 .. 127; see the code for the order of bits
//
// # Vectors of a KV cache
//
// [TQHB] rotates a vector and stores a byte for each number, an index of the quantiser of least mean squared error for the normal
// distribution: levels c[i] that are the means of the cells between (c[i-1]+c[i])/2 and (c[i]+c[i+1])/2. Package
// internal/lloydmax solves these equations with Newton's method to 1e-12 and says how; the mean squared errors are
//
//	5 bits  2.504668e-03      6 bits  6.442397e-04      8 bits  4.118508e-05
//
// Errors are of type [*Error] and wrap [ErrShape] or [ErrValue], which are this package's own: it does not know package runtime.
package quant
