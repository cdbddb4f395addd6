package nn

import (
	"fmt"
	"math"
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// maxDim bounds every dimension, so that a kernel's 32-bit index arithmetic cannot wrap before it is widened.
const maxDim = math.MaxInt32

// FloatOrBFloat is the element type of outputs that a kernel stores in either precision.
type FloatOrBFloat interface{ float32 | half.BFloat16 }

// isBFloat says which of the two T is.
func isBFloat[T FloatOrBFloat]() bool {
	var zero T
	_, is := any(zero).(half.BFloat16)
	return is
}

// check validates the arguments of one call and keeps the first error. It formats text only when there is one.
type check struct {
	fn  string
	rt  *runtime.Runtime
	of  string // the argument whose runtime that is, if it is not that of the call
	err *runtime.Error
}

// start begins the validation of a call of fn on the pass.
func start(fn string, p *runtime.Pass) check {
	c := check{fn: fn}
	if p == nil {
		c.refuse("p", "nil", "a pass that is being encoded", runtime.ErrMisuse)
		return c
	}
	c.rt = p.Runtime()
	return c
}

// startOn begins a validation without a pass.
func startOn(fn string, rt *runtime.Runtime) check {
	c := check{fn: fn, rt: rt}
	if rt == nil {
		c.refuse("rt", "nil", "an open runtime", runtime.ErrMisuse)
	}
	return c
}

func (c *check) refuse(arg, have, need string, sentinel error) {
	if c.err == nil {
		c.err = &runtime.Error{Func: c.fn, Arg: arg, Have: have, Need: need, Err: sentinel}
	}
}

// result is the error as an interface: nil if there is none.
func (c *check) result() error {
	if c.err != nil {
		return c.err
	}
	return nil
}

// dim refuses a dimension outside least..maxDim.
func (c *check) dim(arg string, v, least int) {
	if c.err == nil && (v < least || v > maxDim) {
		c.refuse(arg, strconv.Itoa(v), fmt.Sprintf("%d to %d", least, maxDim), runtime.ErrShape)
	}
}

// finite refuses NaN and infinities.
func (c *check) finite(arg string, v float32) {
	if c.err == nil && v-v != 0 {
		c.refuse(arg, strconv.FormatFloat(float64(v), 'g', -1, 32), "a finite number", runtime.ErrScalar)
	}
}

// positive refuses what is not finite and greater than zero.
func (c *check) positive(arg string, v float32) {
	if c.err == nil && !(v > 0 && v <= math.MaxFloat32) {
		c.refuse(arg, strconv.FormatFloat(float64(v), 'g', -1, 32), "a finite number greater than 0", runtime.ErrScalar)
	}
}

// product multiplies dimensions that were checked, refusing more than limit.
func (c *check) product(arg string, limit uint64, dims ...int) int {
	if c.err != nil {
		return 0
	}
	n := uint64(1)
	for _, d := range dims {
		if d == 0 {
			return 0
		}
		if n > limit/uint64(d) {
			have := ""
			for j, e := range dims {
				if j > 0 {
					have += " * "
				}
				have += strconv.Itoa(e)
			}
			c.refuse(arg, have, fmt.Sprintf("a product of at most %d", limit), runtime.ErrLimit)
			return 0
		}
		n *= uint64(d)
	}
	return int(n)
}

// elements is the product of dimensions as a number of elements of up to 8 bytes.
func (c *check) elements(arg string, dims ...int) int {
	return c.product(arg, math.MaxInt/8, dims...)
}

// owned refuses memory that cannot be used or belongs to another runtime.
func (c *check) owned(arg string, v runtime.View) {
	if c.err != nil {
		return
	}
	if err := v.Valid(); err != nil {
		e, ok := err.(*runtime.Error)
		if !ok {
			e = &runtime.Error{Have: err.Error(), Need: "live memory", Err: runtime.ErrClosed}
		}
		c.refuse(arg, e.Have, e.Need, e.Err)
		return
	}
	if v.Runtime() != c.rt {
		need := "memory of the call's runtime"
		if c.of != "" {
			need = "memory of the runtime of " + c.of
		}
		c.refuse(arg, "memory of another runtime", need, runtime.ErrForeign)
	}
}

// capacity refuses fewer than need elements of size bytes, and a start that is not a multiple of align bytes.
func (c *check) capacity(arg string, v runtime.View, need, size, align int) {
	if c.err != nil {
		return
	}
	if v.Len()/size < need {
		c.refuse(arg, fmt.Sprintf("%d elements", v.Len()/size), fmt.Sprintf("at least %d", need), runtime.ErrShape)
		return
	}
	if v.Offset()%align != 0 {
		c.refuse(arg, fmt.Sprintf("a start at byte %d", v.Offset()), fmt.Sprintf("a multiple of %d bytes", align), runtime.ErrShape)
	}
}

// needsMatrices refuses a device that has no simdgroup matrices.
func (c *check) needsMatrices() {
	if c.err == nil && !c.rt.Device().SIMDMatrix {
		c.refuse("device", "one without simdgroup matrices", "one of Apple family 7 or later", runtime.ErrLimit)
	}
}

// operand is a named range of bytes that a kernel reads or writes.
type operand struct {
	name string
	view runtime.View
}

// writable refuses to write to read-only memory.
func (c *check) writable(written operand) {
	if c.err == nil && written.view.ReadOnly() {
		c.refuse(written.name, "read-only memory", "memory that can be written", runtime.ErrMisuse)
	}
}

// disjoint refuses a written range that is read-only or overlaps another one. The first writes operands are written.
func (c *check) disjoint(writes int, operands ...operand) {
	if c.err != nil {
		return
	}
	for i := range operands[:writes] {
		c.writable(operands[i])
		for j := i + 1; j < len(operands); j++ {
			if operands[i].view.Overlaps(operands[j].view) {
				c.overlap(operands[i].name, operands[j].name)
				return
			}
		}
	}
}

func (c *check) overlap(written, other string) {
	c.refuse(written, "memory that overlaps "+other, "memory of its own", runtime.ErrOverlap)
}

// first is the view of the first n elements of size bytes.
func first(v runtime.View, n, size int) runtime.View { return v.Bytes(0, n*size) }
