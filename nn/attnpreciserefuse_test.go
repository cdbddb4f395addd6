package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestPreciseBlocksRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	const tq, tk = 40, 20 // 2 by 2 tiles
	mask, blocks := newBuffer(t, rt, make([]half.Float16, tq*tk)), output[uint8](t, rt, 4)
	theirMask, theirBlocks := newBuffer(t, foreign, make([]half.Float16, tq*tk)), output[uint8](t, foreign, 4)
	inMask, err := runtime.As[uint8](mask.s.View())
	if err != nil {
		t.Fatal(err)
	}
	gone, err := runtime.NewSlice[uint8](rt, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Release(); err != nil {
		t.Fatal(err)
	}
	type mask16 = runtime.Slice[half.Float16]
	type codes8 = runtime.Slice[uint8]
	call := func(b codes8, m mask16, headDim, tq, tk int) func(p *runtime.Pass) error {
		return func(p *runtime.Pass) error { return PreciseBlocks(p, b, m, headDim, tq, tk) }
	}
	refuses(t, rt, "nn.PreciseBlocks", []target{blocks, mask}, []refusal{
		{"no pass", func(*runtime.Pass) error { return PreciseBlocks(nil, blocks.s, mask.s, 64, tq, tk) }, runtime.ErrMisuse, []string{"p", "nil"}},
		{"head dimension", call(blocks.s, mask.s, 96, tq, tk), runtime.ErrShape, []string{"HeadDim", "96"}},
		{"rows negative", call(blocks.s, mask.s, 64, -1, tk), runtime.ErrShape, []string{"tq", "-1"}},
		{"rows huge", call(blocks.s, mask.s, 64, math.MaxInt, tk), runtime.ErrShape, []string{"tq"}},
		{"keys negative", call(blocks.s, mask.s, 64, tq, -1), runtime.ErrShape, []string{"tk", "-1"}},
		{"keys huge", call(blocks.s, mask.s, 64, tq, math.MaxInt32+1), runtime.ErrShape, []string{"tk", "2147483648"}},
		{"mask beyond memory", call(blocks.s, mask.s, 64, math.MaxInt32, math.MaxInt32), runtime.ErrLimit, []string{"tq * tk"}},
		{"mask short", call(blocks.s, mask.s.Slice(0, tq*tk-1), 64, tq, tk), runtime.ErrShape, []string{"mask", "799", "800"}},
		{"mask zero", call(blocks.s, mask16{}, 64, tq, tk), runtime.ErrShape, []string{"mask"}},
		{"mask foreign", call(blocks.s, theirMask.s, 64, tq, tk), runtime.ErrForeign, []string{"mask"}},
		{"blocks short", call(blocks.s.Slice(0, 3), mask.s, 64, tq, tk), runtime.ErrShape, []string{"blocks", "3 elements", "4"}},
		{"blocks zero", call(codes8{}, mask.s, 64, tq, tk), runtime.ErrShape, []string{"blocks"}},
		{"blocks foreign", call(theirBlocks.s, mask.s, 64, tq, tk), runtime.ErrForeign, []string{"blocks"}},
		{"blocks released", call(gone, mask.s, 64, tq, tk), runtime.ErrClosed, []string{"blocks"}},
		{"blocks in the mask", call(inMask.Slice(4, 8), mask.s, 64, tq, tk), runtime.ErrOverlap, []string{"blocks", "mask"}},
	})
	encode(t, rt, 0, call(blocks.s, mask.s, 64, 0, tk))
	encode(t, rt, 0, call(blocks.s, mask.s, 64, tq, 0))
	blocks.untouched()
}

// Memory that FlashAttnPrecise has no use for, and shapes that no other check would find.
func TestFlashAttnPreciseRefusesMemory(t *testing.T) {
	rt, other, r := open(t), open(t), source(512)
	c := preciseCase{d: 64, b: 1, h: 2, hkv: 1, tq: 6, tk: 20, capacity: 24, mask: "blocks", form: PreciseF16}
	s, foreign := newPrecise(t, rt, r, c), newPrecise(t, other, r, c)
	gone := dying[half.Float16](t, rt, s.d.Mask.Len(), true)
	goneBlocks := dying[uint8](t, rt, s.d.Blocks.Len(), true)
	plain := func(d *PreciseDims) { d.Mask, d.Blocks = runtime.Slice[half.Float16]{}, runtime.Slice[uint8]{} }
	for _, b := range []struct {
		name     string
		out      vec32
		change   func(d *PreciseDims)
		sentinel error
		parts    []string
	}{
		{"heads negative", s.out.s, func(d *PreciseDims) { d.Heads = -2 }, runtime.ErrShape, []string{"Heads", "-2, need 0 to"}},
		{"capacity huge", s.out.s, func(d *PreciseDims) { d.Capacity = math.MaxInt }, runtime.ErrShape, []string{"Capacity", "2147483647"}},
		{"shape huge", s.out.s, func(d *PreciseDims) { plain(d); d.Batch, d.Tq = math.MaxInt32, math.MaxInt32 }, runtime.ErrLimit, []string{"Batch * Heads * Tq * HeadDim"}},
		{"cache huge", s.out.s, func(d *PreciseDims) { plain(d); d.Batch, d.Tq, d.Capacity = math.MaxInt32, 0, math.MaxInt32 }, runtime.ErrLimit, []string{"Capacity"}},
		{"out short", s.out.s.Slice(0, 767), func(*PreciseDims) {}, runtime.ErrShape, []string{"out", "767", "768"}},
		{"out zero", vec32{}, func(*PreciseDims) {}, runtime.ErrShape, []string{"out"}},
		{"out foreign", foreign.out.s, func(*PreciseDims) {}, runtime.ErrForeign, []string{"out"}},
		{"out misaligned", s.out.whole.Slice(pad-1, pad-1+768), func(*PreciseDims) {}, runtime.ErrShape, []string{"out", "multiple of 8"}},
		{"mask foreign", s.out.s, func(d *PreciseDims) { d.Mask = foreign.d.Mask }, runtime.ErrForeign, []string{"Mask"}},
		{"mask released", s.out.s, func(d *PreciseDims) { d.Mask = gone }, runtime.ErrClosed, []string{"Mask"}},
		{"blocks foreign", s.out.s, func(d *PreciseDims) { d.Blocks = foreign.d.Blocks }, runtime.ErrForeign, []string{"Blocks"}},
		{"blocks released", s.out.s, func(d *PreciseDims) { d.Blocks = goneBlocks }, runtime.ErrClosed, []string{"Blocks"}},
	} {
		d := s.d
		b.change(&d)
		refuses(t, rt, "nn.FlashAttnPrecise", []target{s.out}, []refusal{{b.name, func(p *runtime.Pass) error {
			return alike(t, FlashAttnPrecise(p, b.out, s.q.s, s.k.s, s.v, d), ValidateFlashAttnPrecise(rt, b.out, s.q.s, s.k.s, s.v, d))
		}, b.sentinel, b.parts}})
	}
}
