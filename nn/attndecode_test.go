package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// decodeShapes has its chunks where those of every head dimension end.
var decodeShapes = []attnCase{
	{b: 1, h: 2, hkv: 1, capacity: 1, tkv: 1},                                                  // the first step
	{b: 1, h: 4, hkv: 1, capacity: 150, tkv: 100, qPos: 99, window: 64, sinks: true},           // MQA, a sliding layer
	{b: 1, h: 4, hkv: 2, capacity: 129, tkv: 129, qPos: 128},                                   // one key in the second chunk of 128
	{b: 1, h: 2, hkv: 2, capacity: 257, tkv: 257, qPos: 256, softcap: 2},                       // and of 256
	{b: 1, h: 1, hkv: 1, capacity: 300, tkv: 256, qPos: 255},                                   // chunks that end with the keys
	{b: 1, h: 3, hkv: 3, capacity: 280, tkv: 270, qPos: 269, window: 3},                        // a window in one chunk: others see nothing
	{b: 2, h: 6, hkv: 2, capacity: 11, tkv: 6, qPos: 5, window: 3, sinks: true, softcap: 4},    // capacity is the stride of a batch
	{b: 1, h: 2, hkv: 1, capacity: 20, tkv: 20, qPos: 109, kvPos: 90},                          // a ring's tail
	{b: 1, h: 2, hkv: 1, capacity: 12, tkv: 12, qPos: 3, kvPos: 8, sinks: true},                // before all keys
	{b: 1, h: 1, hkv: 1, capacity: 300, tkv: 300, qPos: 10},                                    // chunks after the query
	{b: 1, h: 2, hkv: 1, capacity: 8, tkv: 0, qPos: 5, sinks: true},                            // nothing in the cache
	{b: 1, h: 1, hkv: 1, capacity: 16, tkv: 4, qPos: 40, window: 8},                            // keys all behind the window
	{b: 1, h: 2, hkv: 1, capacity: 130, tkv: math.MaxUint32, qPos: 500},                        // a count beyond the capacity
	{b: 1, h: 2, hkv: 2, capacity: 9, tkv: 9, qPos: 8, window: 1},                              // sees itself only
	{b: 1, h: 5, hkv: 1, capacity: 270, tkv: 265, qPos: 264, window: 1000, scale: 8},           // scores in the hundreds, a window longer than the text
	{b: 3, h: 2, hkv: 1, capacity: 5, tkv: 5, qPos: math.MaxUint32, kvPos: math.MaxUint32 - 3}, // positions at the limit
	{b: 0, h: 2, hkv: 1, capacity: 4, tkv: 4},
}

// decodeOnce runs FlashAttnDecode with both outputs and holds it against the oracle.
func decodeOnce[E interface {
	Float
	word
}](t *testing.T, rt *runtime.Runtime, s *attnSetup, kv cache[E], where string, w *worst) []float32 {
	t.Helper()
	o, o16 := output[float32](t, rt, s.q.n), output[half.BFloat16](t, rt, s.q.n)
	scratch := output[float32](t, rt, AttnDecodeScratch(s.d))
	encode(t, rt, 4*min(s.q.n, 1), func(p *runtime.Pass) error {
		if err := FlashAttnDecode(p, o.s, s.q.s, kv.k.s, kv.v.s, s.live, scratch.s, s.d); err != nil {
			return err
		}
		return FlashAttnDecode(p, o16.s, s.q.s, kv.k.s, kv.v.s, s.live, scratch.s, s.d)
	})
	got := o.written()
	w.compare(t, where, widen(got), s.host.Rows(), s.allowed())
	for i, b := range o16.written() {
		if b != half.BFloat16FromFloat32(got[i]) {
			t.Fatalf("%s: element %d: bfloat16 %v of float32 %v", where, i, b, got[i])
		}
	}
	scratch.get() // nothing beside it
	return got
}

func testDecode[E interface {
	Float
	word
}](t *testing.T, seed uint64) {
	rt, r := open(t), source(seed)
	var w worst
	for _, d := range AttnHeadDims() {
		for _, c := range decodeShapes {
			c.d, c.tq = d, 1
			s := newAttn(t, rt, r, c)
			kv := cacheOf[E](t, rt, s)
			got := decodeOnce(t, rt, s, kv, fmt.Sprintf("%+v", c), &w)
			// The output may be the queries.
			scratch := output[float32](t, rt, AttnDecodeScratch(s.d))
			encode(t, rt, 2*min(s.q.n, 1), func(p *runtime.Pass) error {
				return FlashAttnDecode(p, s.q.s, s.q.s, kv.k.s, kv.v.s, s.live, scratch.s, s.d)
			})
			for i, v := range s.q.get() {
				if v != got[i] {
					t.Fatalf("%+v: in place, element %d: %v, want %v", c, i, v, got[i])
				}
			}
		}
	}
	w.log(t, "1e-6 of the values, and the scores' errors,", "FlashAttnDecode")
}

func TestFlashAttnDecode(t *testing.T) {
	numbersOnly(t)
	t.Run("f32", func(t *testing.T) { testDecode[float32](t, 321) })
	t.Run("f16", func(t *testing.T) { testDecode[half.Float16](t, 322) })
	t.Run("bf16", func(t *testing.T) { testDecode[half.BFloat16](t, 323) })
}

// Every kernel that another setting chooses computes the same.
func TestFlashAttnDecodeSettings(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(324)
	var w worst
	for _, setting := range decodeSettings {
		for _, c := range []attnCase{
			{b: 1, tq: 1, h: 2, hkv: 1, capacity: 280, tkv: 270, qPos: 269, d: setting.dim},
			{b: 2, tq: 1, h: 2, hkv: 2, capacity: 70, tkv: 65, qPos: 60, window: 20, d: setting.dim, sinks: true, softcap: 3},
		} {
			s := newAttn(t, rt, r, c)
			s.d.Lanes, s.d.Chunk = setting.lanes, setting.n
			decodeOnce(t, rt, s, cache[float32]{s.k, s.v}, setting.plain[0], &w)
		}
	}
	w.log(t, "1e-6 of the values, and the scores' errors,", "FlashAttnDecode")
}

// What the first kernel leaves: the formula's partial results for chunks with keys, none of another.
func TestFlashAttnDecodePartials(t *testing.T) {
	rt, r := open(t), source(325)
	for _, c := range []attnCase{
		{b: 2, tq: 1, h: 2, hkv: 1, capacity: 300, tkv: 200, qPos: 199, d: 128},
		{b: 1, tq: 1, h: 2, hkv: 2, capacity: 300, tkv: 290, qPos: 289, window: 10, d: 256},
		{b: 1, tq: 1, h: 1, hkv: 1, capacity: 300, tkv: 290, qPos: 100, d: 512},
		{b: 1, tq: 1, h: 1, hkv: 1, capacity: 300, tkv: 192, qPos: 191, d: 128}, // keys that end where a chunk does
		{b: 1, tq: 1, h: 1, hkv: 1, capacity: 300, tkv: 0, qPos: 191, d: 256},
	} {
		s := newAttn(t, rt, r, c)
		s.d.Chunk = 64
		scratch, o := output[float32](t, rt, AttnDecodeScratch(s.d)), output[float32](t, rt, s.q.n)
		encode(t, rt, 2, func(p *runtime.Pass) error {
			return FlashAttnDecode(p, o.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d)
		})
		want, got, d := s.host.Partials(64), scratch.get(), c.d+2
		chunks, live := AttnDecodeChunks(c.capacity, 64), s.host.LiveChunks(64)
		untouched := func(from, to int) {
			for i := from; i < to; i++ {
				if math.Float32bits(got[i]) != bitsOf(sentinel[float32]()) {
					t.Fatalf("%+v: element %d of the scratch was written", c, i)
				}
			}
		}
		for i, w := range want {
			at := i * d
			switch {
			case i%chunks >= live:
				untouched(at, at+d)
			case w.L == 0:
				if got[at] != oracle.Unseen || got[at+1] != 0 {
					t.Fatalf("%+v: chunk %d that is not seen: %v, %v", c, i, got[at], got[at+1])
				}
				untouched(at+2, at+d)
			default:
				if math.Abs(float64(got[at])-w.M) > 1e-4 || math.Abs(float64(got[at+1])-w.L) > 1e-4*w.L {
					t.Fatalf("%+v: chunk %d: %v, %v, want %v, %v", c, i, got[at], got[at+1], w.M, w.L)
				}
				for j, v := range w.Acc {
					if math.Abs(float64(got[at+2+j])-v) > 1e-4*w.L {
						t.Fatalf("%+v: chunk %d, element %d: %v, want %v", c, i, j, got[at+2+j], v)
					}
				}
			}
		}
		// The merge alone, from the device's own partial results.
		size := oracle.ReduceMagnitude(s.host, got, 64)
		var w worst
		w.compare(t, "merge", widen(o.written()), oracle.Reduce(s.host, got, 64), func(i int) float64 { return size[i]*2e-6 + 1e-30 })
	}
}

// What the query does not see may be anything, in the chunk of what it sees as well as elsewhere; so may the scratch.
func TestFlashAttnDecodeIgnoresTheInvisible(t *testing.T) {
	rt, r := open(t), source(326)
	for _, poison := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
		for _, d := range []int{8, 16, 32, 64, 80, 128, 512} {
			s := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 2, hkv: 1, capacity: 300, tkv: 290, qPos: 280, window: 40, d: d})
			for j := range 300 {
				if !s.host.Visible(0, j) {
					for i := range d {
						s.host.K[j*d+i], s.host.V[j*d+i] = poison, poison
					}
				}
			}
			s.k.set(s.host.K)
			s.v.set(s.host.V)
			var w worst
			decodeOnce(t, rt, s, cache[float32]{s.k, s.v}, fmt.Sprint(poison), &w)
		}
	}
}

// A head gives the same bits in any batch and with any capacity, and the same on devices that take fewer threads.
func TestFlashAttnDecodeDoesNotDependOnOthers(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(327)
	small := openOn(t, soft.Options{MaxThreads: 64})
	for _, d := range AttnHeadDims() {
		const capacity, tkv = 150, 140
		s := newAttn(t, rt, r, attnCase{b: 2, tq: 1, h: 4, hkv: 1, capacity: capacity, tkv: tkv, qPos: 145, d: d})
		var w worst
		want := decodeOnce(t, rt, s, cache[float32]{s.k, s.v}, "all", &w)
		other := *s
		other.q, other.k, other.v = newBuffer(t, small, s.host.Q), newBuffer(t, small, s.host.K), newBuffer(t, small, s.host.V)
		other.live = AttnLive{newBuffer(t, small, []uint32{tkv}).s, newBuffer(t, small, []uint32{145}).s, newBuffer(t, small, []uint32{0}).s}
		for i, v := range decodeOnce(t, small, &other, cache[float32]{other.k, other.v}, "few threads", &w) {
			if v != want[i] {
				t.Fatalf("head dimension %d: element %d is %v with few threads, else %v", d, i, v, want[i])
			}
		}
		for b := range 2 {
			one := *s
			one.q = newBuffer(t, rt, s.host.Q[b*4*d:(b+1)*4*d])
			one.k, one.v = newBuffer(t, rt, s.host.K[b*capacity*d:][:tkv*d]), newBuffer(t, rt, s.host.V[b*capacity*d:][:tkv*d])
			one.d.Batch, one.d.Capacity = 1, tkv
			one.host.B, one.host.Capacity = 1, tkv
			one.host.Q, one.host.K, one.host.V = s.host.Q[b*4*d:(b+1)*4*d], s.host.K[b*capacity*d:][:tkv*d], s.host.V[b*capacity*d:][:tkv*d]
			for i, v := range decodeOnce(t, rt, &one, cache[float32]{one.k, one.v}, "alone", &w) {
				if v != want[b*4*d+i] {
					t.Fatalf("head dimension %d, batch %d: element %d is %v alone, %v among others", d, b, i, v, want[b*4*d+i])
				}
			}
		}
	}
}

func TestFlashAttnDecodeRecorded(t *testing.T) {
	rt, r := open(t), source(328)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 4, hkv: 2, capacity: 300, tkv: 10, qPos: 9, window: 70, d: 192, softcap: 9, sinks: true})
	o, scratch := output[float32](t, rt, s.q.n), output[float32](t, rt, AttnDecodeScratch(s.d))
	call := func(p *runtime.Pass) error {
		return FlashAttnDecode(p, o.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d)
	}
	replaysMany(t, rt, 2, []target{o, scratch}, func(i int) {
		s.tkv.set([]uint32{uint32(10 + 130*i)})
		s.qPos.set([]uint32{uint32(9 + 131*i)})
		s.kvPos.set([]uint32{uint32(i)})
	}, call)
	partial := []scalar{{slot: 4, u: 1}, {slot: 7, u: 4}, {slot: 8, u: 2}, {slot: 9, u: 70}, {slot: 10, f: s.d.Scale, float: true}, {slot: 13, u: 300}, {slot: 15, f: 9, float: true}}
	reduce := []scalar{{slot: 2, u: 1}, {slot: 4, u: 4}, {slot: 5}, {slot: 6, u: 300}, {slot: 8, u: 1}}

	// Of each kernel alone, whose twin is the call of one dispatch.
	c := startOn("test", rt)
	plan := attnDecode(&c, o.s.View(), false, s.q.s, s.k.s, s.v.s, s.live, scratch.s, &s.d)
	if c.err != nil {
		t.Fatal(c.err)
	}
	launchPartial := func(p *runtime.Pass, bind binding) error {
		l := p.Kernel(plan.partial)
		return prepared{l, plan.bindPartial(l, &s.d, bind)}.dispatch()
	}
	launchReduce := func(p *runtime.Pass, bind binding) error {
		l := p.Kernel(plan.reduce)
		return prepared{l, plan.bindReduce(l, false, &s.d, bind)}.dispatch()
	}
	twin(t, rt, []target{scratch}, partial, func(p *runtime.Pass) error { return launchPartial(p, nil) },
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return launchPartial(p, bind)
		})
	encode(t, rt, 1, func(p *runtime.Pass) error { return launchPartial(p, nil) })
	twin(t, rt, []target{o}, reduce, func(p *runtime.Pass) error { return launchReduce(p, nil) },
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return launchReduce(p, bind)
		})

	// And of both.
	encode(t, rt, 2, call)
	want := o.bits()
	o.reset()
	pool, err := runtime.NewScalarPool(rt, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Release() })
	bind := func(list []scalar) func(b *runtime.ScalarBinder) error {
		return func(b *runtime.ScalarBinder) error {
			for _, s := range list {
				if err := s.bind(b, pool); err != nil {
					return err
				}
			}
			return nil
		}
	}
	encode(t, rt, 2, func(p *runtime.Pass) error {
		return UnsafeFlashAttnDecode(p, o.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d, bind(partial), bind(reduce))
	})
	for i, b := range o.bits() {
		if b != want[i] {
			t.Fatalf("element %d: %#x with own scalars, else %#x", i, b, want[i])
		}
	}
	refuses(t, rt, "", []target{o}, []refusal{{"the first kernel's scalars", func(p *runtime.Pass) error {
		return UnsafeFlashAttnDecode(p, o.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d, bind(reduce), nil)
	}, runtime.ErrKernel, nil}, {"the second kernel's scalars", func(p *runtime.Pass) error {
		return UnsafeFlashAttnDecode(p, o.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d, bind(partial), bind(reduce[1:]))
	}, runtime.ErrMisuse, nil}, {"the second kernel's scalars alone", func(p *runtime.Pass) error {
		return UnsafeFlashAttnDecode(p, o.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d, nil, bind(partial))
	}, runtime.ErrScalar, nil}})
}

func TestFlashAttnDecodeRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(329)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 2, hkv: 1, capacity: 8, tkv: 4})
	o, scratch := output[float32](t, rt, s.q.n), output[float32](t, rt, AttnDecodeScratch(s.d))
	fx := output[float32](t, foreign, 1024)
	type args struct {
		o, q, k, v, scratch runtime.Slice[float32]
		live                AttnLive
		d                   AttnDims
	}
	base := args{o.s, s.q.s, s.k.s, s.v.s, scratch.s, s.live, s.d}
	refusals := []refusal{{"no pass", func(*runtime.Pass) error {
		return FlashAttnDecode(nil, base.o, base.q, base.k, base.v, base.live, base.scratch, base.d)
	}, runtime.ErrMisuse, nil}}
	routed := []refusal{}
	for _, c := range []struct {
		name     string
		change   func(a *args)
		sentinel error
		parts    []string
	}{
		{"two rows", func(a *args) { a.d.Tq = 2 }, runtime.ErrShape, []string{"Tq", "2"}},
		{"no rows", func(a *args) { a.d.Tq = 0 }, runtime.ErrShape, []string{"Tq", "0"}},
		{"scale NaN", func(a *args) { a.d.Scale = float32(math.NaN()) }, runtime.ErrScalar, []string{"Scale"}},
		{"softcap infinite", func(a *args) { a.d.Softcap = float32(math.Inf(1)) }, runtime.ErrScalar, []string{"Softcap"}},
		{"batch negative", func(a *args) { a.d.Batch = -1 }, runtime.ErrShape, []string{"Batch"}},
		{"heads not shared evenly", func(a *args) { a.d.Heads, a.d.HeadsKV = 3, 2 }, runtime.ErrShape, []string{"Heads", "multiple"}},
		{"head dimension", func(a *args) { a.d.HeadDim = 100 }, runtime.ErrShape, []string{"HeadDim", "100"}},
		{"lanes", func(a *args) { a.d.Lanes = 5 }, runtime.ErrShape, []string{"Lanes", "5"}},
		{"chunk", func(a *args) { a.d.Chunk = 100 }, runtime.ErrShape, []string{"Chunk", "100"}},
		{"chunk negative", func(a *args) { a.d.Chunk = -64 }, runtime.ErrShape, []string{"Chunk"}},
		{"no capacity", func(a *args) { a.d.Capacity = 0 }, runtime.ErrShape, []string{"Capacity"}},
		{"window negative", func(a *args) { a.d.Window = -1 }, runtime.ErrShape, []string{"Window"}},
		{"grid huge", func(a *args) { a.d.Batch, a.d.Heads = 1<<20, 1<<20 }, runtime.ErrLimit, []string{"Batch * Heads"}},
		{"capacity beyond K", func(a *args) { a.d.Capacity = 9 }, runtime.ErrShape, []string{"k", "1024", "1152"}},
		{"V short", func(a *args) { a.v = a.v.Slice(0, 1020) }, runtime.ErrShape, []string{"v"}},
		{"q short", func(a *args) { a.q = a.q.Slice(0, 252) }, runtime.ErrShape, []string{"q"}},
		{"out short", func(a *args) { a.o = a.o.Slice(0, 255) }, runtime.ErrShape, []string{"out"}},
		{"scratch short", func(a *args) { a.scratch = a.scratch.Slice(0, scratch.n-1) }, runtime.ErrShape, []string{"scratch", "260"}},
		{"scratch zero", func(a *args) { a.scratch = runtime.Slice[float32]{} }, runtime.ErrShape, []string{"scratch"}},
		{"scratch foreign", func(a *args) { a.scratch = fx.s }, runtime.ErrForeign, []string{"scratch"}},
		{"q foreign", func(a *args) { a.q = fx.s }, runtime.ErrForeign, []string{"q"}},
		{"QPos empty", func(a *args) { a.live.QPos = a.live.QPos.Slice(0, 0) }, runtime.ErrShape, []string{"QPos"}},
		{"out is k", func(a *args) { a.o = a.k }, runtime.ErrOverlap, []string{"out", "k"}},
		{"scratch in v", func(a *args) { a.scratch = a.v.Slice(0, 300) }, runtime.ErrOverlap, []string{"scratch", "v"}},
		{"out in scratch", func(a *args) { a.o = a.scratch.Slice(0, 256) }, runtime.ErrOverlap, []string{"scratch", "out"}},
		{"q in scratch", func(a *args) { a.q = a.scratch.Slice(0, 256) }, runtime.ErrOverlap, []string{"scratch", "q"}},
	} {
		a := base
		c.change(&a)
		refusals = append(refusals, refusal{c.name, func(p *runtime.Pass) error { return FlashAttnDecode(p, a.o, a.q, a.k, a.v, a.live, a.scratch, a.d) }, c.sentinel, c.parts})
		checkRefused(t, "nn.ValidateFlashAttnDecode", refusal{c.name + ", validated", nil, c.sentinel, c.parts},
			ValidateFlashAttnDecode(rt, a.o, a.q, a.k, a.v, a.live, a.scratch, a.d))
		if a.d.Tq == 1 {
			routed = append(routed, refusal{c.name, func(p *runtime.Pass) error { return Attention(p, a.o, a.q, a.k, a.v, a.live, a.scratch, a.d) }, c.sentinel, c.parts})
			checkRefused(t, "nn.ValidateAttention", refusal{c.name + ", validated", nil, c.sentinel, c.parts}, ValidateAttention(rt, a.o, a.q, a.k, a.v, a.live, a.scratch, a.d))
		}
	}
	outs := []target{o, scratch, s.q, s.k, s.v}
	refuses(t, rt, "nn.FlashAttnDecode", outs, refusals)
	refuses(t, rt, "nn.Attention", outs, routed)
	if err := ValidateFlashAttnDecode(rt, o.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d); err != nil {
		t.Error(err)
	}
	if err := ValidateFlashAttnDecode(nil, o.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d); err == nil {
		t.Error("no runtime: not refused")
	}
}

// Attention gives the bits of the function that it routes to, and needs no scratch for more rows than one.
func TestAttention(t *testing.T) {
	rt, r := open(t), source(330)
	var w32 worst
	for _, tq := range []int{1, 2, 7} {
		s := newAttn(t, rt, r, attnCase{b: 2, tq: tq, h: 4, hkv: 2, capacity: 20, tkv: 18, qPos: 11, window: 8, d: 96, sinks: true})
		kv := cacheOf[half.Float16](t, rt, s)
		o, want, scratch := output[float32](t, rt, s.q.n), output[float32](t, rt, s.q.n), output[float32](t, rt, AttnDecodeScratch(s.d))
		count := 1
		if tq == 1 {
			count = 2
		} else if scratch.n != 0 {
			t.Errorf("%d rows need %d elements of scratch", tq, scratch.n)
		}
		if err := ValidateAttention(rt, o.s, s.q.s, kv.k.s, kv.v.s, s.live, scratch.s, s.d); err != nil {
			t.Fatal(err)
		}
		encode(t, rt, count, func(p *runtime.Pass) error { return Attention(p, o.s, s.q.s, kv.k.s, kv.v.s, s.live, scratch.s, s.d) })
		encode(t, rt, count, func(p *runtime.Pass) error {
			if AttnKernelFor(tq, 20) == AttnDecodeKernel {
				return FlashAttnDecode(p, want.s, s.q.s, kv.k.s, kv.v.s, s.live, scratch.s, s.d)
			}
			return FlashAttnRows(p, want.s, s.q.s, kv.k.s, kv.v.s, s.live, s.d)
		})
		w := want.bits()
		for i, b := range o.bits() {
			if b != w[i] {
				t.Fatalf("%d rows: element %d differs from the function's", tq, i)
			}
		}
		w32.compare(t, fmt.Sprint(tq), widen(o.written()), s.host.Rows(), s.allowed())
	}
	w32.log(t, "1e-6 of the values, and the scores' errors,", "Attention")
}
