package nn

import (
	"errors"
	"maps"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

var errThrownAway = errors.New("the pass is not to be submitted")

// decodeCalls are all entry points with small operands: those of one layer and the ends of a step.
func decodeCalls(t testing.TB, rt *runtime.Runtime) map[string]func(p *runtime.Pass) error {
	t.Helper()
	r := source(95)
	m, other := randomBank(t, rt, r, 64, 64, 64), randomBank(t, rt, r, 64, 64, 64)
	x, weight, y := newBuffer(t, rt, normals(r, 64, 1)), newBuffer(t, rt, normals(r, 64, 1)), output[float32](t, rt, 64)
	k, v := output[float32](t, rt, 64), output[float32](t, rt, 64)
	x16, ids := newBuffer(t, rt, half.BFloat16s(normals(r, 64, 1))), newBuffer(t, rt, []uint32{3})
	y16, value, limit, token := output[half.BFloat16](t, rt, 64), output[float32](t, rt, 1), newBuffer(t, rt, []float32{30}), output[uint32](t, rt, 1)
	rope := newRope(t, rt, r, ropeCase{t: 1, hq: 2, hkv: 1, d: 64, rotary: 64, capacity: 256})
	llama := newRope(t, rt, r, ropeCase{t: 1, hq: 2, hkv: 1, d: 64, rotary: 32, capacity: 256, pairing: RoPENeighbours, factor: 2, noQNorm: true, noKNorm: true, qBias: true, kBias: true, vBias: true})
	attn := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 2, hkv: 1, capacity: 4, tkv: 2, qPos: 1})
	attnOut, attnScratch := output[half.BFloat16](t, rt, attn.q.n), output[float32](t, rt, AttnDecodeScratch(attn.d))
	tiledOut := output[float32](t, rt, attn.q.n)
	options := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 2, hkv: 1, capacity: 4, tkv: 2, qPos: 1, softcap: 9, sinks: true})
	step := newDecode(t, rt, []uint32{1, 2}, 2, 8, 16, 128, 1)
	calls := map[string]func(p *runtime.Pass) error{
		"EmbedLookupQ4MLX": func(p *runtime.Pass) error { return EmbedLookupQ4MLX(p, y.s, m.bank, ids.s, 1, 8) },
		"RMSNormBF16":      func(p *runtime.Pass) error { return RMSNormBF16(p, y16.s, x.s, weight.s, 1, 64, 1e-6) },
		"RMSNormResidualAddF32": func(p *runtime.Pass) error {
			return RMSNormResidualAddF32(p, y.s, x.s, weight.s, 1, 64, 1e-6, 1)
		},
		"GEMVQ4MLX": func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, m.bank, x16.s) },
		"GEMVQ4MLXQKV": func(p *runtime.Pass) error {
			return GEMVQ4MLXQKV(p, GEMVQKV{Q: y.s, K: k.s, V: v.s, WQ: m.bank, WK: other.bank, WV: other.bank, X: x16.s})
		},
		"GEMVQ4MLXGateUpGELU": func(p *runtime.Pass) error { return GEMVQ4MLXGateUpGELU(p, y16.s, m.bank, other.bank, x16.s) },
		"RMSQKVRoPEKVStore":   func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, rope.a) },
		"FlashAttnRows": func(p *runtime.Pass) error {
			return FlashAttnRows(p, attnOut.s, attn.q.s, attn.k.s, attn.v.s, attn.live, attn.d)
		},
		"FlashAttnRows with options": func(p *runtime.Pass) error {
			return FlashAttnRows(p, attnOut.s, options.q.s, options.k.s, options.v.s, options.live, options.d)
		},
		"FlashAttnDecode": func(p *runtime.Pass) error {
			return FlashAttnDecode(p, attnOut.s, attn.q.s, attn.k.s, attn.v.s, attn.live, attnScratch.s, attn.d)
		},
		"Attention": func(p *runtime.Pass) error {
			return Attention(p, attnOut.s, attn.q.s, attn.k.s, attn.v.s, attn.live, attnScratch.s, attn.d)
		},
		"FlashAttnTiled": func(p *runtime.Pass) error {
			return FlashAttnTiled(p, tiledOut.s, attn.q.s, attn.k.s, attn.v.s, attn.live, attn.d)
		},
		"RMSQKVRoPE":                     func(p *runtime.Pass) error { return RMSQKVRoPE(p, rope.heads(), 3) },
		"RMSQKVRoPEPosBuf":               func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, rope.queries(), rope.a.Position) },
		"RMSQKVRoPE with options":        func(p *runtime.Pass) error { return RMSQKVRoPE(p, llama.heads(), 3) },
		"RMSQKVRoPEKVStore with options": func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, llama.a) },
		"SoftcapArgmax":                  func(p *runtime.Pass) error { return SoftcapArgmax(p, token.s, value.s, x.s, limit.s, 64) },
		"DecodeAdvance":                  func(p *runtime.Pass) error { return DecodeAdvance(p, step.a) },
	}
	maps.Copy(calls, elementCalls(t, rt))
	maps.Copy(calls, int8Calls(t, rt))
	maps.Copy(calls, rowExactCalls(t, rt))
	maps.Copy(calls, embedLookupCalls(t, rt))
	maps.Copy(calls, affineCalls(t, rt))
	return calls
}

// elementCalls are the entry points that work on elements and rows.
func elementCalls(t testing.TB, rt *runtime.Runtime) map[string]func(p *runtime.Pass) error {
	t.Helper()
	r := source(97)
	table := randomSigned(t, rt, r, 4, 64, 64)
	x, y, out, one := newBuffer(t, rt, normals(r, 64, 1)), newBuffer(t, rt, normals(r, 64, 1)), output[float32](t, rt, 64), output[float32](t, rt, 1)
	x16, h16, live, limit := newBuffer(t, rt, half.BFloat16s(normals(r, 64, 1))), output[half.Float16](t, rt, 64), newBuffer(t, rt, []uint32{1}), newBuffer(t, rt, []float32{30})
	token, logits := output[uint32](t, rt, 1), newBuffer(t, rt, normals(r, 600, 1))
	index, best := output[uint32](t, rt, 3), output[float32](t, rt, 3)
	return map[string]func(p *runtime.Pass) error{
		"RMSNormF32":      func(p *runtime.Pass) error { return RMSNormF32(p, out.s, x.s, y.s, 1, 64, 1e-6) },
		"MLPSiLU":         func(p *runtime.Pass) error { return MLPSiLU(p, out.s, x.s, y.s, 64) },
		"MLPGELUTanh":     func(p *runtime.Pass) error { return MLPGELUTanh(p, x16.s, x.s, y.s, 64) },
		"ScaleInPlaceF32": func(p *runtime.Pass) error { return ScaleInPlaceF32(p, out.s, 64, 2) },
		"AddBias":         func(p *runtime.Pass) error { return AddBias(p, out.s, x.s, y.s, 1, 64) },
		"Add":             func(p *runtime.Pass) error { return Add(p, out.s, x.s, y.s, 64) },
		"AddInPlace":      func(p *runtime.Pass) error { return AddInPlace(p, x16.s, x16.s, 64) },
		"SoftcapLogits":   func(p *runtime.Pass) error { return SoftcapLogits(p, out.s, limit.s, 64) },
		"Cast":            func(p *runtime.Pass) error { return Cast(p, h16.s, x16.s, 64) },
		"Copy":            func(p *runtime.Pass) error { return Copy(p, out.s, x.s, 64) },
		"SoftmaxRowsF32":  func(p *runtime.Pass) error { return SoftmaxRowsF32(p, out.s, x.s, 2, 32) },
		"RowSumF32":       func(p *runtime.Pass) error { return RowSumF32(p, out.s, x.s, 2, 32) },
		"RowMaxF32":       func(p *runtime.Pass) error { return RowMaxF32(p, out.s, x.s, 2, 32) },
		"SoftcapSample":   func(p *runtime.Pass) error { return SoftcapSample(p, token.s, x.s, limit.s, 64) },
		"ArgmaxPass": func(p *runtime.Pass) error {
			return ArgmaxPass(p, ArgmaxOperands{Index: token.s, Value: one.s, Values: x.s, N: 64})
		},
		"Argmax": func(p *runtime.Pass) error {
			return Argmax(p, ArgmaxArgs{Token: token.s, Value: one.s, Logits: logits.s, Softcap: limit.s, ScratchIndex: index.s, ScratchValue: best.s, N: 600})
		},
		"KVStoreTimestep": func(p *runtime.Pass) error { return KVStoreTimestep(p, out.s, x.s, live.s, 32, 64) },
		"KVStoreTimestepPair": func(p *runtime.Pass) error {
			return KVStoreTimestepPair(p, KVPair[float32]{CacheK: out.s.Slice(0, 32), CacheV: out.s.Slice(32, 64), K: x.s, V: y.s, Offset: live.s, N: 16, Capacity: 32})
		},
		"KVRingDensify": func(p *runtime.Pass) error {
			return KVRingDensify(p, KVRing[float32]{Dst: out.s, Src: x.s, Filled: live.s, Start: live.s, Slot: 8, Capacity: 8})
		},
		"EmbedLookupQ4": func(p *runtime.Pass) error { return EmbedLookupQ4(p, out.s, table.bank, live.s, 1, 8) },
	}
}

// BenchmarkEncode is the host's cost of one call, without the device's work.
func BenchmarkEncode(b *testing.B) {
	rt := open(b)
	for name, call := range decodeCalls(b, rt) {
		b.Run(name, func(b *testing.B) { encodeMany(b, rt, call) })
	}
}

// A refused call changes nothing, also in the middle of a pass that has work before and after it.
func TestRefusedCallInTheMiddle(t *testing.T) {
	rt, r := open(t), source(96)
	x, weight, out := newBuffer(t, rt, normals(r, 64, 1)), newBuffer(t, rt, normals(r, 64, 1)), output[half.BFloat16](t, rt, 128)
	encode(t, rt, 2, func(p *runtime.Pass) error {
		if err := RMSNormBF16(p, out.s.Slice(0, 64), x.s, weight.s, 1, 64, 1e-6); err != nil {
			return err
		}
		if err := RMSNormBF16(p, out.s, x.s, weight.s, 2, 64, 1e-6); err == nil {
			t.Error("rows beyond x were not refused")
		}
		return RMSNormBF16(p, out.s.Slice(64, 128), x.s, weight.s, 1, 64, 1e-6)
	})
	got := out.written()
	for i := range 64 {
		if got[i] != got[64+i] {
			t.Fatalf("element %d: %v and %v", i, got[i], got[64+i])
		}
	}
}

// After its closure has returned, a pass takes nothing.
func TestPassThatIsOver(t *testing.T) {
	rt := open(t)
	for name, call := range decodeCalls(t, rt) {
		var kept *runtime.Pass
		if err := rt.Run(func(p *runtime.Pass) error { kept = p; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := call(kept); !errors.Is(err, runtime.ErrMisuse) {
			t.Errorf("%s: %v, want one over %v", name, err, runtime.ErrMisuse)
		}
	}
}
