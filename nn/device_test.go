package nn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// openOn is a runtime on a software device with options.
func openOn(t testing.TB, o soft.Options, opts ...runtime.Option) *runtime.Runtime {
	t.Helper()
	dev := soft.New(o)
	rt, err := runtime.Open(slices.Concat([]runtime.Option{runtime.WithDevice(dev)}, testLibrary(t), opts)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// A device whose pipelines allow few threads: the kernels with a threadgroup per row take what they get.
func TestFewThreads(t *testing.T) {
	for _, threads := range []int{32, 64, 96, 512, 1000} {
		rt, r := openOn(t, soft.Options{MaxThreads: threads}), source(101)
		x, weight := normals(r, 4500, 1), normals(r, 4500, 1)
		in, wt, out, io := newBuffer(t, rt, x), newBuffer(t, rt, weight), output[half.BFloat16](t, rt, 4500), newBuffer(t, rt, x)
		encode(t, rt, 2, func(p *runtime.Pass) error {
			if err := RMSNormBF16(p, out.s, in.s, wt.s, 1, 4500, 1e-6); err != nil {
				return err
			}
			return RMSNormResidualAddF32(p, io.s, in.s, wt.s, 1, 4500, 1e-6, 1)
		})
		want := oracle.RMSNorm(x, weight, 1, 4500, 1e-6)
		var w worst
		w.compare(t, fmt.Sprint(threads), widen(out.written()), want, func(i int) float64 { return math.Abs(want[i])*(1.0/256+1e-6) + 1e-30 })
		want = oracle.RMSNormResidualAdd(x, x, weight, 1, 4500, 1e-6, 1)
		w.compare(t, fmt.Sprint(threads), widen(io.get()), want, func(i int) float64 { return 1e-5 })
		checkArgmax(t, rt, &w, fmt.Sprint(threads), normals(r, 5000, 1), 30)
	}
}

// layer is one decode step of a small model with one layer on a runtime, over memory of its own: embedding, attention,
// feed-forward block, logits, argmax and advance.
func layer(t testing.TB, rt *runtime.Runtime) (step func(p *runtime.Pass) error, reset func(), result func() []uint32) {
	t.Helper()
	const hidden, heads, d, ffn, vocab, positions = 64, 2, AttnHeadDim, 96, 200, 24
	r := source(102)
	table := randomBank(t, rt, r, vocab, hidden, 32)
	wq, wk, wv := randomBank(t, rt, r, heads*d, hidden, 32), randomBank(t, rt, r, d, hidden, 32), randomBank(t, rt, r, d, hidden, 32)
	wo, gate, up, down := randomBank(t, rt, r, hidden, heads*d, 32), randomBank(t, rt, r, ffn, hidden, 32), randomBank(t, rt, r, ffn, hidden, 32), randomBank(t, rt, r, hidden, ffn, 32)
	weights := make([]*buffer[float32], 7)
	for i := range weights {
		n := hidden
		if i > 4 {
			n = d
		}
		weights[i] = newBuffer(t, rt, normals(r, n, 0.3))
	}
	freq, _, err := RoPEParameters{Theta: 10000, RotaryDim: d}.InverseFrequencies()
	if err != nil {
		t.Fatal(err)
	}
	x, x16, y := output[float32](t, rt, hidden), output[half.BFloat16](t, rt, hidden), output[float32](t, rt, hidden)
	q, k, v, a16 := output[float32](t, rt, heads*d), output[float32](t, rt, d), output[float32](t, rt, d), output[half.BFloat16](t, rt, heads*d)
	cacheK, cacheV := newBuffer(t, rt, make([]float32, positions*d)), newBuffer(t, rt, make([]float32, positions*d))
	mid, logits, limit := output[half.BFloat16](t, rt, ffn), output[float32](t, rt, vocab), newBuffer(t, rt, []float32{30})
	inv, zero, argmax, value := newBuffer(t, rt, freq), newBuffer(t, rt, []uint32{0}), output[uint32](t, rt, 1), output[float32](t, rt, 1)
	seq := newDecode(t, rt, []uint32{3, 1, 4, 1, 5}, 5, 16, positions, d)
	seq.a.Argmax = argmax.s
	state := func(i int) runtime.Slice[uint32] { return seq.state.s.Slice(i, i+1) }

	const eps = 1e-6
	calls := []func(p *runtime.Pass) error{
		func(p *runtime.Pass) error { return EmbedLookupQ4MLX(p, x.s, table.bank, state(StateToken), 1, 8) },
		func(p *runtime.Pass) error { return RMSNormBF16(p, x16.s, x.s, weights[0].s, 1, hidden, eps) },
		func(p *runtime.Pass) error {
			return GEMVQ4MLXQKV(p, GEMVQKV{Q: q.s, K: k.s, V: v.s, WQ: wq.bank, WK: wk.bank, WV: wv.bank, X: x16.s})
		},
		func(p *runtime.Pass) error {
			return RMSQKVRoPEKVStore(p, QKVRoPE[float32]{Q: q.s, K: k.s, V: v.s, QWeight: weights[5].s, KWeight: weights[6].s, CacheK: cacheK.s, CacheV: cacheV.s,
				Position: state(StatePosition), CacheOffset: state(StateCacheOffset), InvFreq: inv.s, T: 1, HeadsQ: heads, HeadsKV: 1, HeadDim: d, RotaryDim: d, Capacity: positions * d, Eps: eps})
		},
		func(p *runtime.Pass) error {
			return FlashAttnRows(p, a16.s, q.s, cacheK.s, cacheV.s, AttnLive{Tkv: state(StateKVLength), QPos: state(StatePosition), KVPos: zero.s},
				AttnDims{Batch: 1, Tq: 1, Heads: heads, HeadsKV: 1, HeadDim: d, Capacity: positions, Window: 6, Scale: 0.08})
		},
		func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, wo.bank, a16.s) },
		func(p *runtime.Pass) error {
			return RMSNormResidualAddF32(p, x.s, y.s, weights[1].s, 1, hidden, eps, 1)
		},
		func(p *runtime.Pass) error { return RMSNormBF16(p, x16.s, x.s, weights[2].s, 1, hidden, eps) },
		func(p *runtime.Pass) error { return GEMVQ4MLXGateUpGELU(p, mid.s, gate.bank, up.bank, x16.s) },
		func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, down.bank, mid.s) },
		func(p *runtime.Pass) error {
			return RMSNormResidualAddF32(p, x.s, y.s, weights[3].s, 1, hidden, eps, 1)
		},
		func(p *runtime.Pass) error { return RMSNormBF16(p, x16.s, x.s, weights[4].s, 1, hidden, eps) },
		func(p *runtime.Pass) error { return GEMVQ4MLX(p, logits.s, table.bank, x16.s) },
		func(p *runtime.Pass) error { return SoftcapArgmax(p, argmax.s, value.s, logits.s, limit.s, vocab) },
		func(p *runtime.Pass) error { return DecodeAdvance(p, seq.a) },
	}
	step = func(p *runtime.Pass) error {
		for _, call := range calls {
			if err := call(p); err != nil {
				return err
			}
		}
		return nil
	}
	targets := []target{seq.state, seq.out, cacheK, cacheV, logits, value}
	reset = func() {
		for _, b := range targets {
			b.reset()
		}
	}
	result = func() (bits []uint32) {
		for _, b := range targets {
			bits = append(bits, b.bits()...)
		}
		return bits
	}
	return step, reset, result
}

// A whole step on devices that run concurrent work in any order, need or refuse what others do not, and with checks on
// every hazard: 20 tokens of prompt and generation, encoded directly and replayed, give the same bits everywhere.
func TestStepOnEveryDevice(t *testing.T) {
	var want []uint32
	for _, c := range []struct {
		name string
		o    soft.Options
		opts []runtime.Option
	}{
		{"plain", soft.Options{}, nil},
		{"one worker", soft.Options{Workers: 1}, nil},
		{"reversed", soft.Options{Order: soft.Reversed}, nil},
		{"shuffled", soft.Options{Order: soft.Shuffled, Seed: 7}, nil},
		{"first families", soft.Options{Families: soft.AppleFamilies(7)}, nil},
		{"no indirect compute", soft.Options{NoIndirectCompute: true}, nil},
		{"macOS 14", soft.Options{OSVersion: soft.Version{Major: 14}}, nil},
		{"without programs", soft.Options{}, []runtime.Option{runtime.WithoutIndirect()}},
		{"no Apple GPU", soft.Options{ConstantAlignment: 32, Families: []mtl.GPUFamily{mtl.GPUFamilyMac2, mtl.GPUFamilyCommon1, mtl.GPUFamilyCommon2, mtl.GPUFamilyCommon3, mtl.GPUFamilyMetal3}}, nil},
	} {
		rt := openOn(t, c.o, c.opts...)
		step, reset, result := layer(t, rt)
		prog, err := rt.Record(step)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for _, way := range []string{"direct", "replayed"} {
			reset()
			for range 20 {
				if way == "direct" {
					encode(t, rt, 15, step)
				} else if err := prog.Run(); err != nil {
					t.Fatal(c.name, err)
				}
			}
			got := result()
			if want == nil {
				want = got
				if s := DecodeStateOf([DecodeStateWords]uint32(got[:DecodeStateWords])); s.Produced != 16 || s.Status != DecodeOutputFull || s.Position != 19 {
					t.Fatalf("%+v", s)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: not the same bits as plain and direct", c.name, way)
			}
		}
		if err := prog.Release(); err != nil {
			t.Error(err)
		}
	}
}

// Calls allocate nothing.
func TestCallsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	rt := open(t)
	for name, call := range decodeCalls(t, rt) {
		err := rt.Run(func(p *runtime.Pass) error {
			for range 300 { // arenas and tables grow first
				if err := call(p); err != nil {
					return err
				}
			}
			if n := testing.AllocsPerRun(200, func() {
				if err := call(p); err != nil {
					t.Error(name, err)
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations a call", name, n)
			}
			return errThrownAway
		})
		if err != errThrownAway {
			t.Fatal(name, err)
		}
	}
}
