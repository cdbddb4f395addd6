package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

// Q4MLXSimdBank is a bank in one of the layouts that the kernels read in which a simdgroup computes four rows: row-major, or
// in tiles of four interleaved rows. Both give the same bits.
type Q4MLXSimdBank interface {
	Q4MLXBank | Q4MLXInterleavedBank
	weights() weights
}

// weights is what the kernels take of a bank of any type.
type weights struct {
	maker            string          // the function that makes such a bank
	parts            [3]runtime.View // for consecutive slots
	n                int             // how many parts there are
	rows, cols, size int
	interleaved      bool
}

func (b Q4MLXBank) weights() weights {
	return weights{"NewQ4MLXBank", [3]runtime.View{b.packed.View(), b.sb.View()}, 2, b.rows, b.cols, b.size, false}
}

func (b Q4Bank) weights() weights {
	return weights{"NewQ4Bank", [3]runtime.View{b.packed.View(), b.scales.View(), b.zeros.View()}, 3, b.rows, b.cols, b.size, false}
}

// kernel is one of two names, by the layout.
func (w *weights) kernel(rowMajor, interleaved string) string {
	if w.interleaved {
		return interleaved
	}
	return rowMajor
}

// bind gives the parts to a launch.
func (w *weights) bind(l *runtime.Launch, slot int) {
	for i, v := range w.parts[:w.n] {
		l.Read(slot+i, v)
	}
}

// weights refuses a bank that cannot be used.
func (c *check) weights(arg string, w *weights) {
	if c.err == nil && w.rows == 0 {
		c.refuse(arg, "the zero bank", "a bank from "+w.maker, runtime.ErrShape)
	}
}

// sameShape is weights for a bank that must have the columns and the group size of another, and rows rows if that is not 0.
func (c *check) sameShape(arg string, w, other *weights, rows int) {
	c.weights(arg, w)
	if c.err != nil {
		return
	}
	if w.cols != other.cols {
		c.refuse(arg, fmt.Sprintf("%d columns", w.cols), fmt.Sprint(other.cols), runtime.ErrShape)
	}
	if w.size != other.size {
		c.refuse(arg, fmt.Sprintf("groups of %d", w.size), fmt.Sprint(other.size), runtime.ErrShape)
	}
	if rows != 0 && w.rows != rows {
		c.refuse(arg, fmt.Sprintf("%d rows", w.rows), fmt.Sprint(rows), runtime.ErrShape)
	}
}

func (c *check) weightsOwned(arg string, w *weights) {
	for _, v := range w.parts[:w.n] {
		c.owned(arg, v)
	}
}

// apart refuses a written range that overlaps a bank.
func (c *check) apart(written operand, arg string, w *weights) {
	for _, v := range w.parts[:w.n] {
		c.disjoint(1, written, operand{arg, v})
	}
}
