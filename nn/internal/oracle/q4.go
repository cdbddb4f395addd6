package oracle

// Q4 is a matrix in MLX's 4-bit affine format: w[r][c] = s·q + b.
//
// q is an unsigned code from 0 to 15. Words holds eight codes each, the lowest four bits first, row after row
// ([Rows][Cols/8]). s and b belong to a group of Group neighbouring columns of one row ([Rows][Cols/Group]).
type Q4 struct {
	Words          []uint32
	Scales, Biases []float64
	Rows, Cols     int
	Group          int
}

// SplitBF16x2 separates pairs of bfloat16 numbers, the first of a pair in the low half of its word: the form in which a
// bank keeps a group's scale and bias together.
func SplitBF16x2(pairs []uint32) (low, high []float64) {
	low, high = make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		low[i], high[i] = BF16(uint16(p)), BF16(uint16(p>>16))
	}
	return low, high
}

// Code is the 4-bit code of one element.
func (m Q4) Code(row, col int) uint32 {
	word := m.Words[row*(m.Cols/8)+col/8]
	return word >> (4 * (col % 8)) & 15
}

// At is one element: s·q + b.
func (m Q4) At(row, col int) float64 {
	g := row*(m.Cols/m.Group) + col/m.Group
	return m.Scales[g]*float64(m.Code(row, col)) + m.Biases[g]
}

// Shape implements [Matrix].
func (m Q4) Shape() (rows, cols int) { return m.Rows, m.Cols }

// Magnitude implements [Matrix]: |s·q| + |b|.
func (m Q4) Magnitude(row, col int) float64 {
	g := row*(m.Cols/m.Group) + col/m.Group
	return abs(m.Scales[g])*float64(m.Code(row, col)) + abs(m.Biases[g])
}

// Dense is the whole matrix, row-major.
func (m Q4) Dense() []float64 { return Expand(m) }

// EmbedQ4 is [Embed] of a table in this format.
func EmbedQ4(table Q4, ids []uint32, scale float64) []float64 { return Embed(table, ids, scale) }

// GEMVQ4 is [GEMV] of a matrix in this format. x holds bfloat16 numbers on the device; here they are whatever the caller
// passes.
func GEMVQ4[T Real](w Q4, x []T) []float64 { return GEMV(w, x) }

// GEMVQ4Magnitude is Σ_c |w[r][c]·x[c]|: the scale against which the rounding error of a product is measured, since a
// sum that cancels has an error proportional to its terms, not to itself. For the affine form the terms are s·q·x and
// b·x, taken apart, as kernels that sum them apart need.
func GEMVQ4Magnitude[T Real](w Q4, x []T) []float64 { return GEMVMagnitude(w, x) }

// GEMVQ4QKV is three products with one vector: queries, keys and values of one position.
func GEMVQ4QKV[T Real](wq, wk, wv Q4, x []T) (q, k, v []float64) {
	return GEMV(wq, x), GEMV(wk, x), GEMV(wv, x)
}

// GEMVQ4GateUpGELU is [GateUp] of matrices in this format with [ActGELU].
func GEMVQ4GateUpGELU[T Real](gate, up Q4, x []T) []float64 { return GateUp(gate, up, x, ActGELU) }

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
