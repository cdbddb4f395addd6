package simt

import (
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// elementKind is the kind and width of a cross-lane element: the intrinsic's suffix says whether integers are signed.
func (lw *lowerer) elementKind(t *air.Type, suffix []string) uint32 {
	t = t.Scalar()
	w := uint32(t.ScalarBits())
	switch t.Kind {
	case air.HalfKind:
		return kindHalf<<8 | w
	case air.BFloatKind:
		return kindBFloat<<8 | w
	case air.FloatKind:
		return kindFloat<<8 | w
	case air.DoubleKind:
		return kindDouble<<8 | w
	}
	if len(suffix) > 0 && suffix[0] == "s" {
		return kindInt<<8 | w
	}
	return kindUint<<8 | w
}

var reductions = map[string]uint32{"sum": redSum, "product": redProduct, "min": redMin, "max": redMax, "and": redAnd, "or": redOr, "xor": redXor}

var shuffles = map[string]uint32{"shuffle": shufLane, "broadcast": shufLane, "shuffle_xor": shufXor, "shuffle_up": shufUp, "shuffle_down": shufDown,
	"shuffle_rotate_up": shufRotUp, "shuffle_rotate_down": shufRotDown,
	"shuffle_and_fill_up": shufFillUp, "shuffle_and_fill_down": shufFillDown}

// simdIntrinsic lowers air.simd_* and air.quad_*.
func (lw *lowerer) simdIntrinsic(c *callCtx, stem string, suffix []string, quad bool) ([]*val, bool) {
	if op, ok := reductions[stem]; ok {
		args := c.arg(0)
		kb := lw.elementKind(c.ret, suffix)
		fn := execReduce
		if quad {
			fn = execQuadReduce
		} else if op == redSum && kb == kindFloat<<8|32 && len(args) == 1 {
			fn = execSumF32
		}
		return lw.cross(c, fn, op, kb, !quad, args, args[0].wide, len(args)), true
	}
	if mode, ok := shuffles[stem]; ok {
		vs := c.arg(0)
		args := append([]*val(nil), vs...)
		rest := 1
		var fill []*val
		if mode >= shufFillUp {
			fill = c.arg(1)
			rest = 2
		}
		lane := lw.to32(c.scalar(rest))
		args = append(append(args, lane), fill...)
		if mode >= shufFillUp {
			if rest+1 < len(c.in.Args) {
				args = append(args, lw.to32(c.scalar(rest+1)))
			} else {
				args = append(args, lw.c32(simdWidth))
			}
		}
		if quad {
			mode |= shufQuad
		}
		r := lw.cross(c, execShuffle, mode, 0, false, args, vs[0].wide, len(vs))
		// All lanes read the same lane if they name the same.
		r[0].args[0].ext.uniArgs = mode == shufLane
		return r, true
	}
	bit := func() []*val { return []*val{lw.to32(c.scalar(0))} }
	one := func(fn func(*warp, *inst), sub uint32, uniform bool, args []*val) ([]*val, bool) {
		return lw.cross(c, fn, sub, 0, uniform, args, c.ret.ScalarBits() > 32, 1), true
	}
	if quad {
		switch stem {
		case "broadcast_first":
			args := c.arg(0)
			return lw.cross(c, execQuadBroadcastFirst, 0, 0, false, args, args[0].wide, len(args)), true
		case "ballot":
			return one(execAskLane, askQuadBallot, false, bit())
		case "all":
			return one(execAskLane, askQuadAll, false, bit())
		case "any":
			return one(execAskLane, askQuadAny, false, bit())
		case "is_first":
			return one(execAskLane, askQuadIsFirst, false, nil)
		case "active_threads_mask":
			return one(execAskLane, askQuadActive, false, nil)
		case "vote_all":
			return []*val{lw.eq(lw.emit(opAnd32, 0, bit()[0], lw.c32(15)), lw.c32(15))}, true
		case "vote_any":
			return []*val{lw.emit(opNe32, 0, lw.emit(opAnd32, 0, bit()[0], lw.c32(15)), lw.c32(0))}, true
		case "is_helper_thread":
			return []*val{lw.c32(0)}, true
		}
	} else {
		switch stem {
		case "broadcast_first":
			args := c.arg(0)
			return lw.cross(c, execBroadcastFirst, 0, 0, true, args, args[0].wide, len(args)), true
		case "ballot":
			return one(execAsk, askBallot, true, bit())
		case "all":
			return one(execAsk, askAll, true, bit())
		case "any":
			return one(execAsk, askAny, true, bit())
		case "vote_all":
			return one(execAsk, askVoteAll, true, c.arg(0))
		case "vote_any":
			return one(execAsk, askVoteAny, true, c.arg(0))
		case "active_threads_mask":
			return one(execAsk, askActive, true, nil)
		case "is_first":
			return one(execAskLane, askIsFirst, false, nil)
		case "is_helper_thread":
			return []*val{lw.c32(0)}, true
		}
	}
	if p, ok := strings.CutPrefix(stem, "prefix_"); ok {
		kind, name, _ := strings.Cut(p, "_")
		op, known := reductions[name]
		if !known || op > redProduct || kind != "inclusive" && kind != "exclusive" {
			return nil, false
		}
		if kind == "exclusive" {
			op |= prefixExclusive
		}
		if quad {
			op |= prefixQuad
		}
		args := c.arg(0)
		return lw.cross(c, execPrefix, op, lw.elementKind(c.ret, suffix), false, args, args[0].wide, len(args)), true
	}
	return nil, false
}
