package msl

import (
	"fmt"

	"github.com/ingot-metal/ingot/metallib/air"
)

// matrixLanes is the length of the vector that stands for a simdgroup matrix. Only its first two elements are a lane's own.
const matrixLanes = 64

func isMatrix(t *air.Type) bool { return t.Kind == air.VectorKind && t.Len == matrixLanes }

// shuffle takes shufflevector apart where a simdgroup matrix is in it. Clang makes these of a lane's elements; Apple's compiler takes them
// out and puts them in one by one, and nothing else is known to be taken by its back end.
func (w *rewriting) shuffle(in *air.Instr) error {
	from := in.Args[0].Type()
	if !isMatrix(from) && !isMatrix(in.Ty) {
		w.add(in)
		return nil
	}
	mask, err := shuffleMask(in)
	if err != nil {
		return err
	}
	n := int(from.Len)
	// What most elements of a matrix stay the same of is what the others are put into.
	var base air.Value = &air.Const{Kind: air.UndefConst, Ty: in.Ty}
	start := -1
	if isMatrix(in.Ty) && isMatrix(from) {
		same := [2]int{}
		for i, j := range mask {
			if j >= 0 && j%n == i {
				same[j/n]++
			}
		}
		which := 0
		if same[1] > same[0] {
			which = 1
		}
		if same[which] > 0 {
			base, start = w.resolve(in.Args[which]), which*n
		}
	}
	for i, j := range mask {
		if j < 0 || start >= 0 && j == start+i {
			continue
		}
		v := w.element(in.Args[j/n], j%n)
		if v == nil {
			continue
		}
		base = w.op(air.OpInsertElement, in.Ty, base, v, air.ConstInt(w.m.Int(32), uint64(i)))
	}
	w.with[in] = base
	return nil
}

// resolve is what took the place of a value.
func (w *rewriting) resolve(v air.Value) air.Value {
	for {
		next, ok := w.with[v]
		if !ok {
			return v
		}
		v = next
	}
}

// element is an element of a vector, nil if it is undefined.
func (w *rewriting) element(v air.Value, i int) air.Value {
	for {
		v = w.resolve(v)
		if c, ok := v.(*air.Const); ok && (c.Kind == air.UndefConst || c.Kind == air.PoisonConst) {
			return nil
		}
		in, ok := v.(*air.Instr)
		if !ok || in.Op != air.OpInsertElement {
			break
		}
		at, ok := in.Args[2].(*air.Const)
		if !ok || at.Kind != air.IntConst {
			break
		}
		if at.Bits == uint64(i) {
			return w.resolve(in.Args[1])
		}
		v = in.Args[0]
	}
	return w.op(air.OpExtractElement, v.Type().Elem, v, air.ConstInt(w.m.Int(32), uint64(i)))
}

// shuffleMask is the mask of a shufflevector, -1 for elements that are undefined.
func shuffleMask(in *air.Instr) ([]int, error) {
	c, ok := in.Args[2].(*air.Const)
	if !ok {
		return nil, fmt.Errorf("shufflevector has a mask that is not constant")
	}
	mask := make([]int, c.Ty.Len)
	for i := range mask {
		switch c.Kind {
		case air.NullConst:
		case air.DataConst:
			mask[i] = int(int32(c.Data[i]))
		case air.AggregateConst:
			e, ok := c.Elems[i].(*air.Const)
			switch {
			case ok && e.Kind == air.IntConst:
				mask[i] = int(int32(e.Bits))
			case ok && e.Kind == air.NullConst:
			default:
				mask[i] = -1
			}
		default:
			mask[i] = -1
		}
		if mask[i] >= 2*int(in.Args[0].Type().Len) {
			mask[i] = -1
		}
	}
	return mask, nil
}
