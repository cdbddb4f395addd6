package simt

import "testing"

// BenchmarkLanes measures single operations over 32 lanes.
func BenchmarkLanes(b *testing.B) {
	w := &warp{file: make([]uint64, 2048), mask: allLanes}
	w.setBase()
	for i := range w.f32(512) {
		w.u32(512)[i], w.f32(1024)[i], w.f32(1536)[i] = uint32(i*77), float32(i)*1.1, float32(i)*0.3
	}
	for _, o := range []op{opAdd32, opFMulAdd32, opFMA32, opUMaskFMA32, opUMaskMulAdd32, opBFloatToF32, opHalfToF32, opF32ToHalf, opExp32, opSLt32, opIndexU32} {
		in := &inst{d: 0, a: 512, b: 1024, c: 1536, imm: 0xf0}
		fn := laneOps[o].vec[0]
		b.Run(laneOps[o].name, func(b *testing.B) {
			for b.Loop() {
				fn(w, in)
			}
		})
	}
}
