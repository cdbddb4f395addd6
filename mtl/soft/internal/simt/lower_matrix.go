package simt

import "github.com/ingot-metal/ingot/metallib/air"

// laneTable is a constant that differs by lane.
func (lw *lowerer) laneTable(t *[32]uint64) *val {
	v := lw.tables[t]
	if v == nil {
		v = lw.newVal(opLaneTab, true, 0)
		v.blk, v.ext = nil, &ext{table: t}
		lw.tables[t] = v
	}
	return v
}

// matrixIntrinsic lowers the operations on 8x8 simdgroup matrices. Loads and stores become ordinary accesses of each
// lane's two cells.
func (lw *lowerer) matrixIntrinsic(c *callCtx, stem string, parts []string) ([]*val, bool) {
	switch stem {
	case "init_filled":
		v := c.scalar(0)
		return []*val{v, v}, true
	case "init_diag":
		v, zero := c.scalar(0), lw.constant(0, c.scalar(0).wide)
		d0, d1 := lw.to32(lw.laneTable(&matrixDiag0)), lw.to32(lw.laneTable(&matrixDiag1))
		return []*val{lw.sel(d0, v, zero), lw.sel(d1, v, zero)}, true
	case "multiply_accumulate":
		if len(c.in.Args) != 3 {
			return nil, false
		}
		kinds := lw.elementKind(c.ret, nil) >> 8
		var args []*val
		for i := 0; i < 3; i++ {
			if !lw.isMatrix(c.argType(i)) {
				return nil, false
			}
			kinds |= lw.elementKind(c.argType(i), nil) >> 8 << (4 * (i + 1))
			args = append(args, c.arg(i)...)
		}
		return lw.cross(c, execMultiply, kinds, 0, false, args, c.ret.ScalarBits() > 32, 2), true
	case "load":
		if len(c.in.Args) != 4 {
			return nil, false
		}
		p, q := lw.matrixCells(c, 0, c.ret.Elem)
		return []*val{lw.load(p, c.ret.Elem, 0)[0], lw.load(q, c.ret.Elem, 0)[0]}, true
	case "store":
		if len(c.in.Args) != 5 {
			return nil, false
		}
		t := c.argType(0).Elem
		v := c.arg(0)
		p, q := lw.matrixCells(c, 1, t)
		lw.store(p, v[:1], t, 0)
		lw.store(q, v[1:], t, 0)
		return nil, true
	}
	return nil, false
}

// matrixCells are the addresses of a lane's two cells; from argument i on: pointer, elements per row, origin (column, row),
// transposed.
func (lw *lowerer) matrixCells(c *callCtx, i int, t *air.Type) (p, q *val) {
	base, stride := c.scalar(i), lw.to64(c.scalar(i+1))
	origin, trans := c.arg(i+2), c.scalar(i+3)
	size := uint64(t.ScalarBits()) / 8
	row, col := lw.laneTable(&matrixRows), lw.laneTable(&matrixCols)
	if !trans.isConst() {
		r := lw.sel(trans, col, row)
		k := lw.sel(trans, row, col)
		// The second cell lies one column further, or one row if transposed.
		step := lw.sel(trans, stride, lw.c64(1))
		return lw.cellAddress(base, stride, origin, r, k, step, size)
	}
	if trans.imm != 0 {
		return lw.cellAddress(base, stride, origin, col, row, stride, size)
	}
	return lw.cellAddress(base, stride, origin, row, col, lw.c64(1), size)
}

func (lw *lowerer) cellAddress(base, stride *val, origin []*val, row, col, step *val, size uint64) (p, q *val) {
	// What is the same in all lanes is added first.
	at := lw.emit(opAdd64, 0, lw.emit(opMul64, 0, lw.to64(origin[1]), stride), lw.to64(origin[0]))
	p = lw.emit(opIndex64, size, base, at)
	p = lw.emit(opIndex64, size, p, lw.emit(opMul64, 0, row, stride))
	p = lw.emit(opIndex64, size, p, col)
	return p, lw.emit(opIndex64, size, p, step)
}

// asyncCopy lowers the copies between device and threadgroup memory, which are complete when they return; the event that
// they yield is null.
func (lw *lowerer) asyncCopy(c *callCtx, stem string) ([]*val, bool) {
	one, zero := lw.c64(1), lw.c64(0)
	var args []*val
	switch {
	case stem == "simdgroup_async_copy_1d" && len(c.in.Args) == 5:
		n := c.scalar(4)
		args = []*val{c.scalar(0), c.scalar(2), n, n, one, c.scalar(3), n, n, one, zero, zero, zero}
	case stem == "simdgroup_async_copy_2d" && len(c.in.Args) == 12:
		dt, st, off := c.arg(5), c.arg(9), c.arg(10)
		args = []*val{c.scalar(0), c.scalar(2), c.scalar(3), dt[0], dt[1], c.scalar(6), c.scalar(7), st[0], st[1], off[0], off[1], lw.to64(c.scalar(11))}
	default:
		return nil, false
	}
	lw.add(opMem, false, 0, &ext{fn: execTileCopy, effect: true}, args...)
	if c.ret.Kind == air.VoidKind {
		return nil, true
	}
	return []*val{zero}, true
}
