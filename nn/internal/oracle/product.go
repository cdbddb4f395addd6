package oracle

// Product is a matrix product with what follows it in the same launch, for each of a batch of matrices:
//
//	out[m][n] = Act(Alpha·Σ_k a[m][k]·b[k][n] + Beta·c[m][n] + Bias[n])
//
// Half-precision and bfloat16 matrices are passed as the float32 numbers they are; a result in such a type is rounded by
// the caller.
type Product struct {
	A []float32 // [M][K], or [K][M] if TransA
	B []float32 // [K][N], or [N][K] if TransB
	C []float32 // [M][N]; not read if Beta is 0, so that what it holds does not matter, NaN included

	TransA, TransB bool
	M, N, K        int

	Alpha, Beta float64
	Bias        []float32 // [N], nil for none; the same for the whole batch
	Act         Activation

	// Batch is how many products there are; 0 counts as 1. The strides are the elements from one matrix to the next; 0 uses
	// the same one for all.
	Batch                     int
	StrideA, StrideB, StrideC int
}

// Result is the product, [Batch][M][N].
func (p Product) Result() []float64 {
	return p.each(func(sum, c, bias float64) float64 { return p.Act.Apply(sum + c + bias) },
		func(x float64) float64 { return x })
}

// Magnitude is the scale of the rounding error: the sum of the absolute values of all the terms in the formula, Alpha's
// products, Beta·c and the bias, times the activation's [Activation.Slope].
func (p Product) Magnitude() []float64 {
	return p.each(func(sum, c, bias float64) float64 { return p.Act.Slope() * (sum + c + bias) }, abs)
}

// each computes every element; term sees the terms first.
func (p Product) each(element func(sum, c, bias float64) float64, term func(float64) float64) []float64 {
	batch := max(p.Batch, 1)
	out := make([]float64, 0, batch*p.M*p.N)
	for i := range batch {
		a, b := i*p.StrideA, i*p.StrideB
		for m := range p.M {
			for n := range p.N {
				var sum, c, bias float64
				for k := range p.K {
					sum += term(p.Alpha * float64(p.A[a+at(m, k, p.M, p.K, p.TransA)]) * float64(p.B[b+at(k, n, p.K, p.N, p.TransB)]))
				}
				if p.Beta != 0 {
					c = term(p.Beta * float64(p.C[i*p.StrideC+m*p.N+n]))
				}
				if p.Bias != nil {
					bias = term(float64(p.Bias[n]))
				}
				out = append(out, element(sum, c, bias))
			}
		}
	}
	return out
}

// at is the index of an element of a row-major matrix, or of one whose transpose is.
func at(row, col, rows, cols int, transposed bool) int {
	if transposed {
		return col*rows + row
	}
	return row*cols + col
}

// IntProduct is a product of matrices of signed bytes with scales for its rows and columns:
//
//	out[m][n] = AScale[m]·BScale[n]·Σ_k a[m][k]·b[k][n]
type IntProduct struct {
	A []int8 // [M][K], or [K][M] if TransA
	B []int8 // [K][N], or [N][K] if TransB

	TransA, TransB bool
	M, N, K        int

	AScale []float32 // [M], nil for none
	BScale []float32 // [N], nil for none
}

// Sums are the sums without the scales, [M][N], exact. An accumulator of 32 bits holds them up to K = 131,071: all −128,
// K of them make K·2¹⁴, which at 131,072 is 2³¹, one too many.
func (p IntProduct) Sums() []int64 {
	out := make([]int64, p.M*p.N)
	for m := range p.M {
		for n := range p.N {
			for k := range p.K {
				out[m*p.N+n] += int64(p.A[at(m, k, p.M, p.K, p.TransA)]) * int64(p.B[at(k, n, p.K, p.N, p.TransB)])
			}
		}
	}
	return out
}

// Result is the product, [M][N]. An implementation rounds its exact sums to float32 and then its products with the
// scales: its error is relative to the result.
func (p IntProduct) Result() []float64 {
	out := make([]float64, p.M*p.N)
	for i, sum := range p.Sums() {
		out[i] = float64(sum)
		if p.AScale != nil {
			out[i] *= float64(p.AScale[i/p.N])
		}
		if p.BScale != nil {
			out[i] *= float64(p.BScale[i%p.N])
		}
	}
	return out
}
