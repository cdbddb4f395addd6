package oracle

// Matrix is a matrix of weights in any format.
type Matrix interface {
	// Shape is the number of rows and columns.
	Shape() (rows, cols int)

	// At is one element.
	At(row, col int) float64

	// Magnitude is the sum of the absolute values of the terms that make up one element, where a format has several: an
	// implementation may multiply and sum them apart. It is |At| where there is one.
	Magnitude(row, col int) float64
}

// Dense is a row-major matrix of numbers.
type Dense[T Real] struct {
	Data       []T
	Rows, Cols int
}

// Shape implements [Matrix].
func (m Dense[T]) Shape() (rows, cols int) { return m.Rows, m.Cols }

// At implements [Matrix].
func (m Dense[T]) At(row, col int) float64 { return float64(m.Data[row*m.Cols+col]) }

// Magnitude implements [Matrix].
func (m Dense[T]) Magnitude(row, col int) float64 { return abs(m.At(row, col)) }

// Expand is the whole matrix, row-major.
func Expand(m Matrix) []float64 {
	rows, cols := m.Shape()
	out := make([]float64, 0, rows*cols)
	for r := range rows {
		for c := range cols {
			out = append(out, m.At(r, c))
		}
	}
	return out
}

// Embed looks up one row of the table for each id: out[i][c] = scale·table[ids[i]][c]. An id that the table has no row
// for gives zeros. The result is [len(ids)][columns].
func Embed(table Matrix, ids []uint32, scale float64) []float64 {
	rows, cols := table.Shape()
	out := make([]float64, len(ids)*cols)
	for i, id := range ids {
		if uint64(id) >= uint64(rows) {
			continue
		}
		for c := range cols {
			out[i*cols+c] = scale * table.At(int(id), c)
		}
	}
	return out
}

// GEMM multiplies m vectors by a matrix of weights: y[i][r] = Σ_c w[r][c]·x[i][c]. x is [m][columns], y is [m][rows].
func GEMM[T Real](w Matrix, x []T, m int) []float64 {
	rows, cols := w.Shape()
	return products(rows, cols, w.At, x, m, func(v float64) float64 { return v })
}

// GEMMMagnitude is Σ_c |w[r][c]·x[i][c]|, with the terms of a weight taken apart as [Matrix.Magnitude] has them. A
// product with a residual has its absolute value on top.
func GEMMMagnitude[T Real](w Matrix, x []T, m int) []float64 {
	rows, cols := w.Shape()
	return products(rows, cols, w.Magnitude, x, m, abs)
}

// GEMMAdd is [GEMM] plus a residual, y[i][r] + residual[i][r]. The residual has m rows as y has, not one for all.
func GEMMAdd[T, R Real](w Matrix, x []T, residual []R, m int) []float64 {
	return Add(GEMM(w, x, m), residual)
}

// GEMV is [GEMM] with one vector: y[r] = Σ_c w[r][c]·x[c].
func GEMV[T Real](w Matrix, x []T) []float64 { return GEMM(w, x, 1) }

// GEMVMagnitude is [GEMMMagnitude] with one vector.
func GEMVMagnitude[T Real](w Matrix, x []T) []float64 { return GEMMMagnitude(w, x, 1) }

// GEMVAdd is [GEMV] plus a residual: y[r] + residual[r].
func GEMVAdd[T, R Real](w Matrix, x []T, residual []R) []float64 { return GEMMAdd(w, x, residual, 1) }

// GEMVs is the product of several matrices with the same vector, as one launch computes keys and values, or queries, keys
// and values.
func GEMVs[T Real](x []T, w ...Matrix) [][]float64 {
	out := make([][]float64, len(w))
	for i, m := range w {
		out[i] = GEMV(m, x)
	}
	return out
}

// GateUp is the first half of a gated feed-forward block: mid[r] = act((gate·x)[r])·(up·x)[r].
func GateUp[T Real](gate, up Matrix, x []T, act Activation) []float64 {
	return Gated(GEMV(gate, x), GEMV(up, x), act)
}

// GateUpMagnitude is the scale of the rounding error of [GateUp]: what errors in proportion to the magnitudes G and U of
// the two sums come to after the activation and the product,
//
//	Slope(act)·G·|u| + |act(g)|·U
func GateUpMagnitude[T Real](gate, up Matrix, x []T, act Activation) []float64 {
	g, u := GEMV(gate, x), GEMV(up, x)
	gs, us := GEMVMagnitude(gate, x), GEMVMagnitude(up, x)
	for i := range g {
		g[i] = act.Slope()*gs[i]*abs(u[i]) + abs(act.Apply(g[i]))*us[i]
	}
	return g
}

// products sums the terms of weights times x. Each weight is worked out once, since a format may make that dear.
func products[T Real](rows, cols int, weight func(row, col int) float64, x []T, m int, value func(float64) float64) []float64 {
	y := make([]float64, m*rows)
	for r := range rows {
		for c := range cols {
			w := weight(r, c)
			for i := range m {
				y[i*rows+r] += w * value(float64(x[i*cols+c]))
			}
		}
	}
	return y
}
