package runtime

import "math"

// Known answers of the products of dense matrices.

// denseSelf is a known answer of such a product, or one with a vector if m is 1 and it is launched so.
type denseSelf struct {
	m, n, k        int
	transA, transB bool
	relu           bool // with a bias, Alpha 2, Beta -1 and ReLU
}

// constants are the values of the function constants of gemm_dense.h from the first one on: how a and b are stored, whether
// their rows start at multiples of four elements, whether there are C and a bias, the activation, and results of float32.
func (d denseSelf) constants(first int) []constant {
	bit := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	all := []constant{{100, constantBool, bit(d.transA)}, {101, constantBool, bit(d.transB)}, {102, constantBool, 0}, {103, constantBool, 0},
		{104, constantBool, bit(d.relu)}, {105, constantBool, bit(d.relu)}, {106, constantUint32, bit(d.relu)}, {107, constantUint32, 0}}
	return all[first-all[0].index:]
}

// bindDense binds operands, which elements of every type hold exactly, and the known answer.
func bindDense[T Element](d denseSelf, m *selfMemory, convert func([]float32) []T) {
	a, b, c, bias := pattern(d.m*d.k, 33), pattern(d.k*d.n, 34), pattern(d.m*d.n, 35), pattern(d.n, 36)
	at := func(x []float32, row, col, rows, cols int, trans bool) float64 {
		if trans {
			return float64(x[col*rows+row])
		}
		return float64(x[row*cols+col])
	}
	want, scale := make([]float64, d.m*d.n), 0.0
	for i := range want {
		sum, size := 0.0, 0.0
		for k := range d.k {
			product := at(a, i/d.n, k, d.m, d.k, d.transA) * at(b, k, i%d.n, d.k, d.n, d.transB)
			sum += product
			size += math.Abs(product)
		}
		if d.relu {
			sum = math.Max(0, 2*sum-float64(c[i])+float64(bias[i%d.n]))
			size = 2*size + math.Abs(float64(c[i])) + math.Abs(float64(bias[i%d.n]))
		}
		want[i], scale = sum, max(scale, size)
	}
	input(m, 0, convert(a))
	input(m, 1, convert(b))
	output(m, 2, zeros(len(want)), want, 1e-5, scale, f32)
	m.uints(4, uint32(d.n), uint32(d.k), 0, 0)
	input(m, 8, bias)
	alpha, beta := float32(1), float32(0)
	if d.relu {
		alpha, beta = 2, -1
	}
	m.float(9, alpha)
	m.float(10, beta)
	input(m, 11, c)
	m.uints(12, 0, 0)
}

// The shapes have two tiles, or two threadgroups, and a rest of everything.

// selfMatrices is a product on simdgroup matrices. Devices that have them have bfloat.
func selfMatrices[T Element](d denseSelf, m *selfMemory, convert func([]float32) []T, tile int) (groups, threads Size) {
	m.unsupported = !m.rt.info.SIMDMatrix
	m.constants = d.constants(100)
	bindDense(d, m, convert)
	m.uints(3, uint32(d.m))
	return D3((d.n+tile-1)/tile, (d.m+tile-1)/tile, 1), D1(tile * tile / 32)
}

func selfGEMMF32(m *selfMemory) (groups, threads Size) {
	same := func(x []float32) []float32 { return x }
	return selfMatrices(denseSelf{m: 35, n: 34, k: 21, transB: true, relu: true}, m, same, 32)
}

func selfGEMMF16(m *selfMemory) (groups, threads Size) {
	return selfMatrices(denseSelf{m: 66, n: 67, k: 33}, m, toF16, 64)
}

func selfGEMMBF16(m *selfMemory) (groups, threads Size) {
	return selfMatrices(denseSelf{m: 9, n: 35, k: 40, transA: true}, m, toBF16, 32)
}

func selfGEMVDense(m *selfMemory) (groups, threads Size) {
	d := denseSelf{m: 1, n: 11, k: 131, transB: true, relu: true}
	m.constants = d.constants(102)
	bindDense(d, m, toF16)
	return D1(2), D1(64)
}

func selfGEMVDenseTrans(m *selfMemory) (groups, threads Size) {
	d := denseSelf{m: 1, n: 133, k: 19}
	m.constants = d.constants(103)
	bindDense(d, m, toBF16)
	return D1(2), D1(96)
}

// selfGEMMWeights multiplies with blocks of a float16 scale and 32 signed codes.
func selfGEMMWeights(m *selfMemory) (groups, threads Size) {
	const rows, n, k = 35, 67, 64
	m.unsupported = !m.rt.info.SIMDMatrix
	m.constants = []constant{{102, constantBool, 1}, {104, constantBool, 0}, {105, constantBool, 0}, {106, constantUint32, 0}, {107, constantUint32, 0}, {108, constantUint32, 0}}
	data, weights := selfBlocksQ8(n * k / 32)
	x := pattern(rows*k, 62)
	want, scale := make([]float64, rows*n), 0.0
	for i := range want {
		size := 0.0
		for c := range k {
			product := float64(x[i/n*k+c]) * weights[i%n*k+c]
			want[i] += product
			size += math.Abs(product)
		}
		scale = max(scale, size)
	}
	input(m, 0, x)
	input(m, 1, data)
	output(m, 2, zeros(len(want)), want, 1e-5, scale, f32)
	m.uints(3, rows, n, k)
	input(m, 8, []float32{0})
	m.float(9, 1)
	m.float(10, 0)
	input(m, 11, []float32{0})
	return D2(2, 2), D1(64)
}
