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

// Dense is the whole matrix, row-major.
func (m Q4) Dense() []float64 {
	out := make([]float64, 0, m.Rows*m.Cols)
	for r := range m.Rows {
		for c := range m.Cols {
			out = append(out, m.At(r, c))
		}
	}
	return out
}

// EmbedQ4 looks up one row of the table for each id: out[i][c] = scale·w[ids[i]][c]. An id that the table has no row for
// gives zeros. The result is [len(ids)][Cols].
func EmbedQ4(table Q4, ids []uint32, scale float64) []float64 {
	out := make([]float64, len(ids)*table.Cols)
	for i, id := range ids {
		if uint64(id) >= uint64(table.Rows) {
			continue
		}
		for c := range table.Cols {
			out[i*table.Cols+c] = scale * table.At(int(id), c)
		}
	}
	return out
}

// GEMVQ4 is the matrix-vector product y[r] = Σ_c w[r][c]·x[c]. x holds bfloat16 numbers on the device; here they are
// whatever the caller passes.
func GEMVQ4[T Real](w Q4, x []T) []float64 {
	y := make([]float64, w.Rows)
	for r := range w.Rows {
		for c := range w.Cols {
			y[r] += w.At(r, c) * float64(x[c])
		}
	}
	return y
}

// GEMVQ4Magnitude is Σ_c |w[r][c]·x[c]|: the scale against which the rounding error of a product is measured, since a
// sum that cancels has an error proportional to its terms, not to itself. For the affine form the terms are s·q·x and
// b·x, taken apart, as kernels that sum them apart need.
func GEMVQ4Magnitude[T Real](w Q4, x []T) []float64 {
	y := make([]float64, w.Rows)
	for r := range w.Rows {
		for c := range w.Cols {
			g := r*(w.Cols/w.Group) + c/w.Group
			v := abs(float64(x[c]))
			y[r] += abs(w.Scales[g])*float64(w.Code(r, c))*v + abs(w.Biases[g])*v
		}
	}
	return y
}

// GEMVQ4QKV is three products with one vector: queries, keys and values of one position.
func GEMVQ4QKV[T Real](wq, wk, wv Q4, x []T) (q, k, v []float64) {
	return GEMVQ4(wq, x), GEMVQ4(wk, x), GEMVQ4(wv, x)
}

// GEMVQ4GateUpGELU is the first half of a gated feed-forward block: mid[r] = gelu((Wg·x)[r]) · (Wu·x)[r], with
// [GELUTanh] as gelu.
func GEMVQ4GateUpGELU[T Real](gate, up Q4, x []T) []float64 {
	g, u := GEMVQ4(gate, x), GEMVQ4(up, x)
	for i := range g {
		g[i] = GELUTanh(g[i]) * u[i]
	}
	return g
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
