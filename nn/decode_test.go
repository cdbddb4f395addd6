package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

// decodeSetup is a sequence on the device.
type decodeSetup struct {
	a                               DecodeStep
	state, prompt, argmax, out, end *buffer[uint32]
}

func newDecode(t testing.TB, rt *runtime.Runtime, prompt []uint32, room, outputs, kvCapacity, kvStride int, end ...uint32) *decodeSetup {
	t.Helper()
	start, err := StartDecode(prompt)
	if err != nil {
		t.Fatal(err)
	}
	words := start.Words()
	list := make([]uint32, room)
	copy(list, prompt)
	s := &decodeSetup{state: newBuffer(t, rt, words[:]), prompt: newBuffer(t, rt, list), argmax: newBuffer(t, rt, []uint32{0}), out: output[uint32](t, rt, outputs)}
	s.a = DecodeStep{State: s.state.s, Prompt: s.prompt.s, Argmax: s.argmax.s, Output: s.out.s, KVCapacity: kvCapacity, KVStride: kvStride}
	if len(end) > 0 {
		s.end = newBuffer(t, rt, end)
		s.a.EndTokens = s.end.s
	}
	return s
}

func (s *decodeSetup) read() DecodeState {
	var words [DecodeStateWords]uint32
	copy(words[:], s.state.get())
	return DecodeStateOf(words)
}

// Whole sequences against the oracle, step by step and well past their ends, recorded and replayed.
func TestDecodeAdvance(t *testing.T) {
	defer logExact(t, "DecodeAdvance")()
	rt, r := open(t), source(61)
	for _, c := range []struct {
		name                    string
		prompt, output, kv, row int
		end                     []uint32
		steps                   int
		noToken                 int // the step whose argmax is none, or -1
		status                  DecodeStatus
	}{
		{"one token", 1, 4, 10, 128, nil, 8, -1, DecodeOutputFull},
		{"prompt and generation", 5, 4, 20, 128, nil, 14, -1, DecodeOutputFull},
		{"cache full", 3, 50, 7, 256, nil, 12, -1, DecodeCacheFull},
		{"cache full in the prompt", 9, 50, 4, 2, nil, 8, -1, DecodeCacheFull},
		{"cache of one", 3, 5, 1, 2, nil, 4, -1, DecodeCacheFull},
		{"output of one", 2, 1, 9, 3, nil, 5, -1, DecodeOutputFull},
		{"output full before the cache", 2, 3, 5, 3, nil, 8, -1, DecodeOutputFull},
		{"output and cache full at once", 2, 4, 5, 3, nil, 8, -1, DecodeOutputFull},
		{"end token", 4, 30, 40, 8, []uint32{3}, 40, -1, DecodeEndToken},
		{"end token that fills the output", 2, 1, 9, 3, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, 5, -1, DecodeEndToken},
		{"several end tokens", 2, 60, 80, 8, []uint32{99, 5, 2}, 70, -1, DecodeEndToken},
		{"no logits", 2, 9, 20, 8, []uint32{99}, 8, 4, DecodeNoToken},
		{"no logits in the prompt", 6, 3, 20, 8, []uint32{99}, 14, 2, DecodeOutputFull},
		{"largest offsets", 2, 9, 16, math.MaxUint32 / 16, nil, 12, -1, DecodeOutputFull},
		{"running", 7, 30, 64, 128, []uint32{1000}, 20, -1, DecodeRunning},
	} {
		prompt := make([]uint32, c.prompt)
		for i := range prompt {
			prompt[i] = r.Uint32N(1000) + 10
		}
		s := newDecode(t, rt, prompt, c.prompt, c.output, c.kv, c.row, c.end...)
		o := oracle.StartDecode(prompt, c.output, c.kv, c.row, c.end...)
		prog, err := rt.Record(func(p *runtime.Pass) error { return DecodeAdvance(p, s.a) })
		if err != nil {
			t.Fatal(c.name, err)
		}
		for step := range c.steps {
			argmax := r.Uint32N(8)
			if step == c.noToken {
				argmax = NoToken
			}
			exactCases++
			s.argmax.set([]uint32{argmax})
			o.Advance(argmax)
			if step%2 == 0 {
				encode(t, rt, 1, func(p *runtime.Pass) error { return DecodeAdvance(p, s.a) })
			} else if err := prog.Run(); err != nil {
				t.Fatal(c.name, err)
			}
			want := DecodeState{o.Token, o.Position, o.KVLength, o.CacheOffset, uint32(len(o.Output)), DecodeStatus(o.Status), uint32(c.prompt)}
			if got := s.read(); got != want {
				t.Fatalf("%s: step %d: %+v, want %+v", c.name, step, got, want)
			}
			got := s.out.get()
			if !slices.Equal(got[:len(o.Output)], o.Output) {
				t.Fatalf("%s: step %d: output %v, want %v", c.name, step, got, o.Output)
			}
			for i, v := range got[len(o.Output):] {
				if v != sentinel[uint32]() {
					t.Fatalf("%s: step %d: output %d was written early", c.name, step, len(o.Output)+i)
				}
			}
		}
		if got := s.read().Status; got != c.status {
			t.Errorf("%s: ended as %v, want %v", c.name, got, c.status)
		}
		s.prompt.untouched()
		prog.Release()
	}
}

// A state that a host, or a fault, left in disorder: nothing is read or written out of range.
func TestDecodeAdvanceUntrustedState(t *testing.T) {
	rt := open(t)
	const big = math.MaxUint32
	for _, c := range []struct {
		name  string
		state DecodeState
		want  DecodeState
		out   int // tokens appended
	}{
		{"prompt longer than its list", DecodeState{Position: 3, PromptLength: big}, DecodeState{Token: 7, Position: 4, KVLength: 5, CacheOffset: 40, Produced: 1, PromptLength: big}, 1},
		{"position beyond the cache", DecodeState{Position: 20, PromptLength: 4}, DecodeState{Position: 20, Produced: 1, Status: DecodeCacheFull, PromptLength: 4}, 1},
		{"position at the end of 32 bits", DecodeState{Position: big, PromptLength: 4}, DecodeState{Position: big, Produced: 1, Status: DecodeCacheFull, PromptLength: 4}, 1},
		{"output count at the end of the list", DecodeState{Position: 5, Produced: 6}, DecodeState{Position: 5, Produced: 6, Status: DecodeOutputFull}, 0},
		{"output count beyond the list", DecodeState{Position: 5, Produced: 99}, DecodeState{Position: 5, Produced: 99, Status: DecodeOutputFull}, 0},
		{"output count at the end of 32 bits", DecodeState{Position: 5, Produced: big}, DecodeState{Position: 5, Produced: big, Status: DecodeOutputFull}, 0},
		{"unknown status", DecodeState{Position: 5, Status: 77}, DecodeState{Position: 5, Status: 77}, 0},
		{"no prompt", DecodeState{}, DecodeState{Token: 7, Position: 1, KVLength: 2, CacheOffset: 10, Produced: 1}, 1},
	} {
		s := newDecode(t, rt, []uint32{1, 2, 3, 4}, 4, 6, 20, 10)
		words := c.state.Words()
		s.state.set(words[:])
		s.argmax.set([]uint32{7})
		encode(t, rt, 1, func(p *runtime.Pass) error { return DecodeAdvance(p, s.a) })
		if got := s.read(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		for i, v := range s.out.get() {
			if (v != sentinel[uint32]()) != (i < c.out) {
				t.Errorf("%s: output %d is %v", c.name, i, v)
			}
		}
	}
}

func TestDecodeAdvanceRecorded(t *testing.T) {
	rt := open(t)
	s := newDecode(t, rt, []uint32{5, 6}, 3, 4, 10, 128, 1)
	call := func(p *runtime.Pass) error { return DecodeAdvance(p, s.a) }
	outs := []target{s.state, s.out}
	replays(t, rt, outs, func(i int) {
		s.argmax.set([]uint32{uint32(40 + i)})
		words := DecodeState{Position: uint32(i), PromptLength: 2}.Words()
		s.state.set(words[:])
	}, call)
	twin(t, rt, outs, []scalar{{slot: 4, u: 3}, {slot: 5, u: 4}, {slot: 6, u: 10}, {slot: 7, u: 128}, {slot: 9, u: 1}}, call,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeDecodeAdvance(p, s.a, bind)
		})
}

func TestDecodeAdvanceRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	s := newDecode(t, rt, []uint32{1, 2}, 2, 8, 16, 128, 1)
	fu := output[uint32](t, foreign, 16)
	refusals := []refusal{{"no pass", func(*runtime.Pass) error { return DecodeAdvance(nil, s.a) }, runtime.ErrMisuse, nil}}
	for _, c := range []struct {
		name     string
		change   func(a *DecodeStep)
		sentinel error
		parts    []string
	}{
		{"no cache", func(a *DecodeStep) { a.KVCapacity = 0 }, runtime.ErrShape, []string{"KVCapacity"}},
		{"no stride", func(a *DecodeStep) { a.KVStride = 0 }, runtime.ErrShape, []string{"KVStride"}},
		{"cache beyond 32 bits", func(a *DecodeStep) { a.KVCapacity, a.KVStride = 1<<20, 1<<13 }, runtime.ErrLimit, []string{"KVCapacity * KVStride"}},
		{"cache huge", func(a *DecodeStep) { a.KVCapacity = math.MaxInt }, runtime.ErrShape, []string{"KVCapacity"}},
		{"state short", func(a *DecodeStep) { a.State = a.State.Slice(0, 7) }, runtime.ErrShape, []string{"State", "7", "8"}},
		{"no prompt", func(a *DecodeStep) { a.Prompt = a.Prompt.Slice(0, 0) }, runtime.ErrShape, []string{"Prompt"}},
		{"prompt zero", func(a *DecodeStep) { a.Prompt = runtime.Slice[uint32]{} }, runtime.ErrShape, []string{"Prompt"}},
		{"no argmax", func(a *DecodeStep) { a.Argmax = a.Argmax.Slice(1, 1) }, runtime.ErrShape, []string{"Argmax"}},
		{"no output", func(a *DecodeStep) { a.Output = a.Output.Slice(0, 0) }, runtime.ErrShape, []string{"Output"}},
		{"end tokens out of range", func(a *DecodeStep) { a.EndTokens = a.EndTokens.Slice(0, 9) }, runtime.ErrShape, []string{"EndTokens"}},
		{"output foreign", func(a *DecodeStep) { a.Output = fu.s }, runtime.ErrForeign, []string{"Output"}},
		{"end tokens foreign", func(a *DecodeStep) { a.EndTokens = fu.s }, runtime.ErrForeign, []string{"EndTokens"}},
		{"output is state", func(a *DecodeStep) { a.Output = a.State }, runtime.ErrOverlap, []string{"State", "Output"}},
		{"argmax in state", func(a *DecodeStep) { a.Argmax = a.State.Slice(0, 1) }, runtime.ErrOverlap, []string{"State", "Argmax"}},
		{"prompt in output", func(a *DecodeStep) { a.Prompt = a.Output.Slice(0, 2) }, runtime.ErrOverlap, []string{"Output", "Prompt"}},
		{"end tokens in output", func(a *DecodeStep) { a.EndTokens = a.Output.Slice(3, 4) }, runtime.ErrOverlap, []string{"Output", "EndTokens"}},
	} {
		a := s.a
		c.change(&a)
		refusals = append(refusals, refusal{c.name, func(p *runtime.Pass) error { return DecodeAdvance(p, a) }, c.sentinel, c.parts})
		checkRefused(t, "nn.ValidateDecodeAdvance", refusal{c.name + ", validated", nil, c.sentinel, c.parts}, ValidateDecodeAdvance(rt, a))
	}
	refuses(t, rt, "nn.DecodeAdvance", []target{s.state, s.out}, refusals)
	for _, end := range []runtime.Slice[uint32]{{}, s.end.s, s.end.s.Slice(0, 0)} {
		a := s.a
		a.EndTokens = end
		if err := ValidateDecodeAdvance(rt, a); err != nil {
			t.Error(err)
		}
	}
}

func TestDecodeState(t *testing.T) {
	s, err := StartDecode([]uint32{42, 7, 9})
	if err != nil || s != (DecodeState{Token: 42, KVLength: 1, PromptLength: 3}) {
		t.Errorf("%+v %v", s, err)
	}
	s = DecodeState{1, 2, 3, 4, 5, 6, 7}
	words := s.Words()
	if words[StateToken] != 1 || words[StatePosition] != 2 || words[StateKVLength] != 3 || words[StateCacheOffset] != 4 ||
		words[StateProduced] != 5 || words[StateStatus] != 6 || words[StatePromptLength] != 7 || words[7] != 0 {
		t.Error(words)
	}
	if DecodeStateOf(words) != s {
		t.Error(DecodeStateOf(words))
	}
	if _, err := StartDecode(nil); err == nil {
		t.Error("an empty prompt was accepted")
	}
	prompt := []uint32{42, 7, 9}
	for position, want := range []DecodeState{
		{Token: 42, KVLength: 1, PromptLength: 3},
		{Token: 7, Position: 1, KVLength: 2, CacheOffset: 128, PromptLength: 3},
		{Token: 9, Position: 2, KVLength: 3, CacheOffset: 256, PromptLength: 3},
	} {
		if s, err := StartDecodeAt(prompt, position, 128); err != nil || s != want {
			t.Errorf("position %d: %+v %v", position, s, err)
		}
	}
	if s, err := StartDecodeAt(prompt, 1, math.MaxInt32); err != nil || s.CacheOffset != math.MaxInt32 {
		t.Errorf("%+v %v", s, err)
	}
	for _, c := range []struct {
		prompt           []uint32
		position, stride int
		arg              string
		sentinel         error
	}{
		{nil, 0, 1, "prompt", runtime.ErrShape},
		{prompt, -1, 1, "position", runtime.ErrShape},
		{prompt, 3, 1, "position", runtime.ErrShape},
		{prompt, 0, 0, "kvStride", runtime.ErrShape},
		{make([]uint32, 4), 3, math.MaxInt32, "position * kvStride", runtime.ErrLimit},
	} {
		var e *runtime.Error
		s, err := StartDecodeAt(c.prompt, c.position, c.stride)
		if !errors.As(err, &e) || e.Func != "nn.StartDecodeAt" || e.Arg != c.arg || !errors.Is(err, c.sentinel) || s != (DecodeState{}) {
			t.Errorf("%d of %d tokens, stride %d: %+v %v", c.position, len(c.prompt), c.stride, s, err)
		}
	}
	for s, want := range map[DecodeStatus]string{DecodeRunning: "running", DecodeEndToken: "end token", DecodeOutputFull: "output full",
		DecodeCacheFull: "cache full", DecodeNoToken: "no token", 9: "status 9"} {
		if fmt.Sprint(s) != want {
			t.Errorf("%v, want %s", s, want)
		}
	}
}
