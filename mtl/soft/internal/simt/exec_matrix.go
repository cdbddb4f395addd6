package simt

import (
	"math"
	"math/bits"
	"unsafe"
)

// An 8x8 simdgroup matrix is spread over the lanes, two neighbouring cells of a row in each.

func matrixRow(lane int) int { return (lane/4)&4 + (lane/2)%4 }
func matrixCol(lane int) int { return ((lane/4)&2)*2 + (lane%2)*2 }

// matrixRows and matrixCols are the row and the first column of each lane.
var matrixRows, matrixCols, matrixDiag0, matrixDiag1 = func() (r, c, d0, d1 [32]uint64) {
	for l := range r {
		r[l], c[l] = uint64(matrixRow(l)), uint64(matrixCol(l))
		if r[l] == c[l] {
			d0[l] = 1
		}
		if r[l] == c[l]+1 {
			d1[l] = 1
		}
	}
	return
}()

// toFloat reads a value of a floating-point kind as float64.
func toFloat(kind uint32, v uint64) float64 {
	switch kind {
	case kindHalf:
		return float64(math.Float32frombits(halfToF32(uint32(v))))
	case kindBFloat:
		return float64(math.Float32frombits(uint32(v) << 16))
	case kindFloat:
		return float64(math.Float32frombits(uint32(v)))
	}
	return math.Float64frombits(v)
}

func fromFloat(kind uint32, d float64) uint64 {
	switch kind {
	case kindHalf:
		return uint64(f64ToHalf(d))
	case kindBFloat:
		return uint64(f64ToBFloat(d))
	case kindFloat:
		return uint64(math.Float32bits(float32(d)))
	}
	return math.Float64bits(d)
}

// execMultiply is A·B + C; args are the two elements of A, B and C. The products and their sum are taken in double
// precision, in the order of the columns of A, and rounded once to the result's type. xinst.sub holds the kinds of D, A, B
// and C, four bits each. Lanes that do not run contribute what their registers hold.
func execMultiply(w *warp, in *inst) {
	x := in.x
	var m [3][8][8]float64
	for k := range m {
		kind := x.sub >> (4 * (k + 1)) & 15
		e0, e1 := w.gatherArg(x.args[2*k]), w.gatherArg(x.args[2*k+1])
		for l := 0; l < 32; l++ {
			r, c := matrixRow(l)&7, matrixCol(l)&7
			m[k][r][c], m[k][r][(c+1)&7] = toFloat(kind, e0[l]), toFloat(kind, e1[l])
		}
	}
	kind := x.sub & 15
	for k := w.mask; k != 0; k &= k - 1 {
		l := bits.TrailingZeros32(k) & 31
		r, c := matrixRow(l)&7, matrixCol(l)&7
		a := &m[0][r]
		s0, s1 := 0.0, 0.0
		for i := range a {
			s0 += float64(a[i] * m[1][i][c])
			s1 += float64(a[i] * m[1][i][(c+1)&7])
		}
		w.put(in, 0, l, fromFloat(kind, s0+m[2][r][c]))
		w.put(in, 1, l, fromFloat(kind, s1+m[2][r][(c+1)&7]))
	}
}

// execTileCopy is simdgroup_async_copy in one or two dimensions, done at once by the simdgroup as a whole. Its arguments
// are those of the intrinsic, which must agree in all lanes: element size, destination, its stride, tile width and height,
// source, its stride, tile width and height, offset x and y, clamp mode. Cells of the destination tile that lie outside the
// source tile are set to zero (mode 0) or to the nearest cell inside it.
func execTileCopy(w *warp, in *inst) {
	x := in.x
	l := w.firstLane()
	arg := func(i int) uint64 { return w.get(x.args[i], l) }
	esize, dst, dstStride, dw, dh := arg(0), arg(1), arg(2), arg(3), arg(4)
	src, srcStride, sw, sh, ox, oy, mode := arg(5), arg(6), arg(7), arg(8), int64(arg(9)), int64(arg(10)), arg(11)
	if dw > 1<<20 || dh > 1<<20 || dw*dh > 1<<20 || esize == 0 || esize > 1<<10 {
		w.fault(&Fault{Kind: FaultOutOfBounds, Slot: -1, Detail: "a tile of absurd size"}, in, l)
	}
	for y := uint64(0); y < dh; y++ {
		for c := uint64(0); c < dw; c++ {
			d := unsafe.Slice((*byte)(w.resolve(dst+(y*dstStride+c)*esize, l, esize, 0, true, in)), esize)
			sx, sy := int64(c)+ox, int64(y)+oy
			if sx < 0 || sy < 0 || sx >= int64(sw) || sy >= int64(sh) {
				if mode == 0 || sw == 0 || sh == 0 {
					w.checkTile(in, dst+(y*dstStride+c)*esize, l, esize, checkWrite)
					clear(d)
					continue
				}
				sx, sy = max(0, min(sx, int64(sw)-1)), max(0, min(sy, int64(sh)-1))
			}
			from := src + (uint64(sy)*srcStride+uint64(sx))*esize
			s := unsafe.Slice((*byte)(w.resolve(from, l, esize, 0, false, in)), esize)
			w.checkTile(in, from, l, esize, checkRead)
			w.checkTile(in, dst+(y*dstStride+c)*esize, l, esize, checkWrite)
			copy(d, s)
		}
	}
}
