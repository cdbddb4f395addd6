package nn

import (
	"fmt"
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
)

// dense is a product of dense matrices with its epilogue, whatever the types of elements: out [m, n] = a [m, k] b [k, n]. A
// product with a vector is one with m = 1, whose matrix is b.
type dense struct {
	names *denseNames

	out, a, b, c, bias runtime.View
	kind, outKind      int        // of the elements of a, and of out and c: see elementKind
	weight             WeightType // of b, which is numbers of a's kind or rows of weights of any type
	transA, transB     bool
	m, n, k, batch     int

	strideA, strideB, strideC, strideOut int

	alpha, beta float32
	act         Activation
	tile        int

	// What check finds out: whether there is a bias, and whether a and b start at multiples of four elements.
	hasBias, wideA, wideB bool
}

// denseNames are what errors call the arguments.
type denseNames struct{ out, a, b, m, n, k, strideA, strideB, strideOut string }

var (
	gemmNames        = denseNames{"out", "a", "b", "M", "N", "K", "StrideA", "StrideB", "StrideOut"}
	gemvNames        = denseNames{"y", "x", "w", "M", "Rows", "Cols", "StrideX", "StrideW", "StrideY"}
	gemmWeightsNames = denseNames{out: "y", a: "x", b: "w", m: "m"}
)

// epilogue puts what follows the sums into the product.
func (d *dense) epilogue(alpha, beta float32, c runtime.View, strideC int, bias runtime.View, act Activation) {
	d.alpha, d.beta, d.c, d.strideC, d.bias, d.act = alpha, beta, c, strideC, bias, act
}

// kindSize is the size of an element of a kind.
func kindSize(kind int) int {
	if kind == kindFloat32 {
		return 4
	}
	return 2
}

// check validates the product, cuts its views to what a kernel touches, and says whether there is anything to do.
func (d *dense) check(c *check) (work bool) {
	if d.batch == 0 {
		d.batch = 1
	}
	c.finite("Alpha", d.alpha)
	c.finite("Beta", d.beta)
	if c.err == nil && d.act > ActSiLU {
		c.refuse("Act", d.act.String(), "one of the activations", runtime.ErrScalar)
	}
	c.dim(d.names.m, d.m, 0)
	c.dim(d.names.n, d.n, 0)
	c.dim(d.names.k, d.k, 0)
	c.dim("Batch", d.batch, 1)
	c.dim(d.names.strideA, d.strideA, 0)
	c.dim(d.names.strideB, d.strideB, 0)
	c.dim(d.names.strideOut, d.strideOut, 0)
	c.dim("StrideC", d.strideC, 0)
	nOut := c.elements("M * N", d.m, d.n)
	if c.err == nil && d.batch > 1 && d.strideOut < nOut {
		c.refuse(d.names.strideOut, strconv.Itoa(d.strideOut), fmt.Sprintf("at least %d, the elements of a result", nOut), runtime.ErrOverlap)
	}
	nA := d.reach(c, d.names.strideA, d.strideA, c.elements("M * K", d.m, d.k))
	nB := d.reach(c, d.names.strideB, d.strideB, c.elements("K * N", d.k, d.n))
	nC := 0
	if d.beta != 0 {
		nC = d.reach(c, "StrideC", d.strideC, nOut)
	}
	nOut = d.reach(c, d.names.strideOut, d.strideOut, nOut)
	d.hasBias = !isZero(d.bias)

	size, sizeOut, unit := kindSize(d.kind), kindSize(d.outKind), d.weight.info()
	c.owned(d.names.a, d.a)
	c.owned(d.names.b, d.b)
	if d.beta != 0 {
		c.owned("C", d.c)
	}
	if d.hasBias {
		c.owned("Bias", d.bias)
	}
	c.owned(d.names.out, d.out)
	c.capacity(d.names.a, d.a, nA, size, size)
	c.capacity(d.names.b, d.b, nB/unit.values, unit.bytes, unit.align)
	if d.beta != 0 {
		c.capacity("C", d.c, nC, sizeOut, sizeOut)
	}
	if d.hasBias {
		c.capacity("Bias", d.bias, d.n, 4, 4)
	}
	c.capacity(d.names.out, d.out, nOut, sizeOut, sizeOut)
	if c.err != nil || nOut == 0 {
		return false
	}
	d.a, d.b, d.out = first(d.a, nA, size), first(d.b, nB/unit.values, unit.bytes), first(d.out, nOut, sizeOut)
	out := operand{d.names.out, d.out}
	c.disjoint(1, out, operand{d.names.a, d.a}, operand{d.names.b, d.b})
	if d.hasBias {
		d.bias = first(d.bias, d.n, 4)
		c.disjoint(1, out, operand{"Bias", d.bias})
	}
	if d.beta != 0 {
		d.c = first(d.c, nC, sizeOut)
		c.sameOrDisjoint(out, operand{"C", d.c})
	}
	d.wideA, d.wideB = d.a.Offset()%(4*size) == 0, d.b.Offset()%(4*unit.bytes) == 0
	return c.err == nil
}

// reach is how many elements a batch of matrices of n elements takes, from the first to the last.
func (d *dense) reach(c *check, arg string, stride, n int) int {
	if n == 0 {
		return 0
	}
	return c.elements(arg, d.batch-1, stride) + n
}

// nothing is bound in the place of operands that a kernel does not read: all slots must have something.
var nothing [16]byte

// launch begins the launch of a kernel of the product that has some function constants, with everything bound but m and the
// strides.
func (d *dense) launch(p *runtime.Pass, kernel string, constants uint32) *runtime.Launch {
	l := p.Kernel(kernel)
	if d.k == 0 {
		l.Bytes(0, nothing[:])
		l.Bytes(1, nothing[:])
	} else {
		l.Read(0, d.a)
		l.Read(1, d.b)
	}
	l.Write(2, d.out)
	l.Uint32(4, uint32(d.n))
	l.Uint32(5, uint32(d.k))
	if d.hasBias {
		l.Read(8, d.bias)
	} else {
		l.Bytes(8, nothing[:])
	}
	l.Float32(9, d.alpha)
	l.Float32(10, d.beta)
	if d.beta != 0 {
		l.Read(11, d.c)
	} else {
		l.Bytes(11, nothing[:])
	}
	for i := constTransA; i <= constX; i++ {
		switch v, number := d.constant(i); {
		case constants>>(i-constTransA)&1 == 0:
		case number:
			l.ConstantUint32(i, v)
		default:
			l.ConstantBool(i, v != 0)
		}
	}
	return l
}

// strides binds what a batch of products takes.
func (d *dense) strides(l *runtime.Launch) {
	l.Uint32(6, uint32(d.strideA))
	l.Uint32(7, uint32(d.strideB))
	l.Uint32(12, uint32(d.strideC))
	l.Uint32(13, uint32(d.strideOut))
}

// The function constants of gemm_dense.h, and after them that of gemm_weights.metal.
const (
	constTransA = 100 + iota
	constTransB
	constWideA
	constWideB
	constHasC
	constHasBias
	constAct
	constOut
	constX
)

// Sets of function constants, a bit for each in that order.
const (
	hasTransA uint32 = 1 << iota
	hasTransB
	hasWideA
	hasWideB
	hasC
	hasBias
	hasAct
	hasOut
	hasX
)

// What the kernels have: all of them what follows the sums.
const (
	constantsOfEpilogue   = hasC | hasBias | hasAct | hasOut
	constantsOfGEMVTrans  = constantsOfEpilogue | hasWideB
	constantsOfGEMV       = constantsOfGEMVTrans | hasWideA
	constantsOfGEMM       = constantsOfGEMV | hasTransA | hasTransB
	constantsOfGEMMBlocks = constantsOfEpilogue | hasWideA | hasX
	constantsOfGEMMMixed  = constantsOfGEMMBlocks | hasWideB
)

// constant is the value of a function constant for the product; a bool that holds is 1.
func (d *dense) constant(i int) (v uint32, number bool) {
	holds := false
	switch i {
	case constTransA:
		holds = d.transA
	case constTransB:
		holds = d.transB
	case constWideA:
		holds = d.wideA
	case constWideB:
		holds = d.wideB
	case constHasC:
		holds = d.beta != 0
	case constHasBias:
		holds = d.hasBias
	case constAct:
		return uint32(d.act), true
	case constOut:
		return uint32(d.outKind), true
	case constX:
		return uint32(d.kind), true
	}
	return uint32(flagOf(holds)), false
}

// specialization names the pipeline that launch takes.
func (d *dense) specialization(kernel string, constants uint32) runtime.Specialization {
	s := runtime.Specialization{Kernel: kernel}
	for i := constTransA; i <= constX; i++ {
		switch v, number := d.constant(i); {
		case constants>>(i-constTransA)&1 == 0:
		case number:
			s.Constants = append(s.Constants, runtime.ConstantUint32(i, v))
		default:
			s.Constants = append(s.Constants, runtime.ConstantBool(i, v != 0))
		}
	}
	return s
}
