package simt

import (
	"math"
	"math/bits"
)

// Operations across the lanes of a simdgroup (or of quads of four) see the lanes of the running group. A lane that does
// not run contributes nothing to a reduction, and 0 to what reads it directly.

// The element kinds of cross-lane arithmetic (in xinst.bits: kind<<8 | width).
const (
	kindUint = iota
	kindInt
	kindHalf
	kindBFloat
	kindFloat
	kindDouble
)

// The reductions (xinst.sub).
const (
	redSum = iota
	redProduct
	redMin
	redMax
	redAnd
	redOr
	redXor
)

// combine is one step of a reduction or prefix on values of one kind.
func combine(op, kb uint32, a, b uint64) uint64 {
	w := uint64(kb & 0xff)
	switch kb >> 8 {
	case kindHalf:
		return uint64(f32ToHalf(combine32(op, halfToF32(uint32(a)), halfToF32(uint32(b)))))
	case kindBFloat:
		return uint64(f32ToBFloat(combine32(op, uint32(a)<<16, uint32(b)<<16)))
	case kindFloat:
		return uint64(combine32(op, uint32(a), uint32(b)))
	case kindDouble:
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		switch op {
		case redSum:
			x += y
		case redProduct:
			x *= y
		case redMin:
			x = math.Min(x, y)
		default:
			x = math.Max(x, y)
		}
		return math.Float64bits(x)
	case kindInt:
		switch op {
		case redMin:
			return uint64(min(sext(a, w), sext(b, w))) & widthMask(w)
		case redMax:
			return uint64(max(sext(a, w), sext(b, w))) & widthMask(w)
		}
	}
	switch op {
	case redSum:
		a += b
	case redProduct:
		a *= b
	case redMin:
		a = min(a, b)
	case redMax:
		a = max(a, b)
	case redAnd:
		a &= b
	case redOr:
		a |= b
	case redXor:
		a ^= b
	}
	return a & widthMask(w)
}

func combine32(op, a, b uint32) uint32 {
	x, y := math.Float32frombits(a), math.Float32frombits(b)
	switch op {
	case redSum:
		x += y
	case redProduct:
		x *= y
	case redMin:
		x = fmin32(x, y)
	case redMax:
		x = fmax32(x, y)
	}
	return math.Float32bits(x)
}

// reduceTree combines the lanes of mask pairwise: neighbours, then pairs, then fours and so on. The order is fixed, so
// sums are the same everywhere. Both halves of v are of n lanes, a power of two.
func reduceTree(op, kb uint32, v *[32]uint64, mask uint32, from, n int) uint64 {
	var has [32]bool
	var t [32]uint64
	for i := 0; i < n; i++ {
		has[i] = mask>>(from+i)&1 != 0
		t[i] = v[from+i]
	}
	for step := 1; step < n; step *= 2 {
		for i := 0; i < n; i += 2 * step {
			switch {
			case has[i] && has[i+step]:
				t[i] = combine(op, kb, t[i], t[i+step])
			case has[i+step]:
				t[i], has[i] = t[i+step], true
			}
		}
	}
	return t[0]
}

func (w *warp) gatherArg(o operand) (v [32]uint64) {
	switch {
	case o.uni:
		x := w.get(o, 0)
		for l := range v {
			v[l] = x
		}
	case o.wide:
		v = *w.u64(o.reg)
	default:
		s := w.u32(o.reg)
		for l := range v {
			v[l] = uint64(s[l])
		}
	}
	return v
}

// scatter writes result k in the running lanes.
func (w *warp) scatter(in *inst, k int, v *[32]uint64) {
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		w.put(in, k, l, v[l])
	}
}

// execReduce is simd_sum and its like: one result for all lanes.
func execReduce(w *warp, in *inst) {
	x := in.x
	for k, o := range x.args {
		v := w.gatherArg(o)
		w.putAll(in, k, reduceTree(x.sub, x.bits, &v, w.mask, 0, 32))
	}
}

// execSumF32 is execReduce for the sum of 32 running lanes of single precision.
func execSumF32(w *warp, in *inst) {
	if w.mask != allLanes || in.x.args[0].uni {
		execReduce(w, in)
		return
	}
	s := w.f32(in.x.args[0].reg)
	var t [16]float32
	for i := range t {
		t[i] = s[2*i] + s[2*i+1]
	}
	for n := 8; n > 0; n /= 2 {
		for i := 0; i < n; i++ {
			t[i] = t[2*i] + t[2*i+1]
		}
	}
	w.putAll(in, 0, uint64(math.Float32bits(t[0])))
}

// execQuadReduce is quad_sum and its like.
func execQuadReduce(w *warp, in *inst) {
	x := in.x
	for k, o := range x.args {
		v := w.gatherArg(o)
		var r [32]uint64
		for q := 0; q < 32; q += 4 {
			t := reduceTree(x.sub, x.bits, &v, w.mask, q, 4)
			r[q], r[q+1], r[q+2], r[q+3] = t, t, t, t
		}
		w.scatter(in, k, &r)
	}
}

// The prefix operations: sub is the reduction, plus these flags.
const (
	prefixExclusive = 1 << 8
	prefixQuad      = 1 << 9
)

func execPrefix(w *warp, in *inst) {
	x := in.x
	op := x.sub & 0xff
	for k, o := range x.args {
		v := w.gatherArg(o)
		var r [32]uint64
		acc := identity(op, x.bits)
		for l := range v {
			if x.sub&prefixQuad != 0 && l&3 == 0 {
				acc = identity(op, x.bits)
			}
			if w.mask>>l&1 == 0 {
				continue
			}
			next := combine(op, x.bits, acc, v[l])
			if x.sub&prefixExclusive != 0 {
				r[l] = acc
			} else {
				r[l] = next
			}
			acc = next
		}
		w.scatter(in, k, &r)
	}
}

// identity is the neutral element of a sum or product.
func identity(op, kb uint32) uint64 {
	if op == redSum {
		return 0
	}
	switch kb >> 8 {
	case kindHalf:
		return 0x3c00
	case kindBFloat:
		return 0x3f80
	case kindFloat:
		return 0x3f800000
	case kindDouble:
		return math.Float64bits(1)
	}
	return 1
}

// The ways to choose the lane to read (xinst.sub).
const (
	shufLane = iota
	shufXor
	shufUp
	shufDown
	shufRotUp
	shufRotDown
	shufFillUp
	shufFillDown
	shufQuad = 1 << 8 // within quads
)

// execShuffle reads other lanes: args are the values, then the lane or distance, and for the filling forms the fill values
// (as many as values) and the modulo at the end.
func execShuffle(w *warp, in *inst) {
	x := in.x
	width := 32
	if x.sub&shufQuad != 0 {
		width = 4
	}
	mode := x.sub & 0xff
	n := x.n
	sel := w.gatherArg(x.args[n])
	for k := 0; k < n; k++ {
		v := w.gatherArg(x.args[k])
		var fill, mod [32]uint64
		if mode >= shufFillUp {
			fill = w.gatherArg(x.args[n+1+k])
			mod = w.gatherArg(x.args[len(x.args)-1])
		}
		var r [32]uint64
		for m := w.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			quad, i := l&^(width-1), l&(width-1)
			d := int(sel[l] & 0xffff)
			j := i
			switch mode {
			case shufLane:
				j = d & (width - 1)
			case shufXor:
				j = (i ^ d) & (width - 1)
			case shufUp: // the lowest lanes keep their own value
				if d <= i {
					j = i - d
				}
			case shufDown:
				if i+d < width {
					j = i + d
				}
			case shufRotUp:
				j = (i - d) & (width - 1)
			case shufRotDown:
				j = (i + d) & (width - 1)
			case shufFillUp, shufFillDown:
				// Lanes work in segments of the modulo's width; what comes from outside a segment is filled, from the fill
				// value of the lane at the other end.
				seg := int(mod[l])
				if seg <= 0 || seg > width || seg&(seg-1) != 0 {
					seg = width
				}
				first := i &^ (seg - 1)
				j = i - d
				if mode == shufFillDown {
					j = i + d
				}
				if j < first || j >= first+seg {
					from := quad + first + (j-first)&(seg-1)
					if w.mask>>from&1 != 0 {
						r[l] = fill[from]
					}
					continue
				}
			}
			if j += quad; w.mask>>j&1 != 0 {
				r[l] = v[j]
			}
		}
		w.scatter(in, k, &r)
	}
}

// execBroadcastFirst gives all running lanes the value of the first of them.
func execBroadcastFirst(w *warp, in *inst) {
	l := w.firstLane()
	for k, o := range in.x.args {
		w.putAll(in, k, w.get(o, l))
	}
}

// execQuadBroadcastFirst does so per quad.
func execQuadBroadcastFirst(w *warp, in *inst) {
	for k, o := range in.x.args {
		v := w.gatherArg(o)
		var r [32]uint64
		for q := 0; q < 32; q += 4 {
			if b := w.mask >> q & 15; b != 0 {
				t := v[q+bits.TrailingZeros32(b)]
				r[q], r[q+1], r[q+2], r[q+3] = t, t, t, t
			}
		}
		w.scatter(in, k, &r)
	}
}

// ballot has the bit of every running lane whose value is not zero.
func (w *warp) ballot(o operand) (r uint32) {
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if w.get(o, l)&1 != 0 {
			r |= 1 << l
		}
	}
	return r
}

// The queries (xinst.sub).
const (
	askBallot = iota
	askAll
	askAny
	askVoteAll // of a ballot's mask
	askVoteAny
	askActive
	askUniform
)

// execAsk answers questions about the running lanes with one result for all.
func execAsk(w *warp, in *inst) {
	x := in.x
	var r uint64
	switch x.sub {
	case askBallot:
		r = uint64(w.ballot(x.args[0]))
	case askAll:
		r = uint64(b2u(w.ballot(x.args[0]) == w.mask))
	case askAny:
		r = uint64(b2u(w.ballot(x.args[0]) != 0))
	case askVoteAll:
		r = uint64(b2u(uint32(w.get(x.args[0], w.firstLane()))&w.all == w.all))
	case askVoteAny:
		r = uint64(b2u(uint32(w.get(x.args[0], w.firstLane()))&w.all != 0))
	case askActive:
		r = uint64(w.mask)
	case askUniform:
		r = 1
		first := w.get(x.args[0], w.firstLane())
		for m := w.mask; m != 0; m &= m - 1 {
			if w.get(x.args[0], bits.TrailingZeros32(m)&31) != first {
				r = 0
			}
		}
	}
	w.putAll(in, 0, r)
}

// The queries whose answer differs by lane.
const (
	askIsFirst = iota
	askQuadBallot
	askQuadAll
	askQuadAny
	askQuadIsFirst
	askQuadActive
)

func execAskLane(w *warp, in *inst) {
	x := in.x
	var b uint32
	if len(x.args) > 0 {
		b = w.ballot(x.args[0])
	}
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		q := l &^ 3
		active, set := w.mask>>q&15, b>>q&15
		var r uint32
		switch x.sub {
		case askIsFirst:
			r = b2u(l == w.firstLane())
		case askQuadBallot:
			r = set
		case askQuadAll:
			r = b2u(set == active)
		case askQuadAny:
			r = b2u(set != 0)
		case askQuadIsFirst:
			r = b2u(l == q+bits.TrailingZeros32(active))
		case askQuadActive:
			r = active
		}
		w.put(in, 0, l, uint64(r))
	}
}
