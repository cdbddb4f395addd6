package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// Words of the decode state on the device. Kernels of a step bind single ones, state.Slice(StatePosition,
// StatePosition+1) for example; word 7 is reserved.
const (
	StateToken        = 0 // token that the step embeds
	StatePosition     = 1 // its position
	StateKVLength     = 2 // keys in the cache once the step has stored its own: position + 1
	StateCacheOffset  = 3 // element of the cache where the step stores: position * KVStride
	StateProduced     = 4 // tokens in the output list
	StateStatus       = 5 // a DecodeStatus
	StatePromptLength = 6 // tokens of the prompt list that count
	DecodeStateWords  = 8
)

// DecodeStatus says whether a sequence goes on, or why not.
type DecodeStatus uint32

// The statuses of a sequence.
const (
	DecodeRunning    DecodeStatus = 0 // goes on
	DecodeEndToken   DecodeStatus = 1 // an end token was produced; it is the last of the output
	DecodeOutputFull DecodeStatus = 2 // the output list has no room for another token
	DecodeCacheFull  DecodeStatus = 3 // the cache has no room for another position
	DecodeNoToken    DecodeStatus = 4 // no logit was finite
)

// String is a word or two in English.
func (s DecodeStatus) String() string {
	switch s {
	case DecodeRunning:
		return "running"
	case DecodeEndToken:
		return "end token"
	case DecodeOutputFull:
		return "output full"
	case DecodeCacheFull:
		return "cache full"
	case DecodeNoToken:
		return "no token"
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// DecodeState is the state of a sequence on the host: what is written to the device before the first step, and what was
// read back after some.
type DecodeState struct {
	Token, Position, KVLength, CacheOffset, Produced uint32
	Status                                           DecodeStatus
	PromptLength                                     uint32
}

// StartDecode is the state before the first step of a prompt: its first token at position 0.
func StartDecode(prompt []uint32) (DecodeState, error) {
	if len(prompt) == 0 || len(prompt) > maxDim {
		return DecodeState{}, &runtime.Error{Func: "nn.StartDecode", Arg: "prompt", Have: fmt.Sprintf("%d tokens", len(prompt)),
			Need: fmt.Sprintf("1 to %d", maxDim), Err: runtime.ErrShape}
	}
	return DecodeState{Token: prompt[0], KVLength: 1, PromptLength: uint32(len(prompt))}, nil
}

// StartDecodeAt is the state before the step of a prompt's token at a position, when the tokens before it are in the cache
// already. kvStride is that of [DecodeStep].
func StartDecodeAt(prompt []uint32, position, kvStride int) (DecodeState, error) {
	s, err := StartDecode(prompt)
	c := check{fn: "nn.StartDecodeAt"}
	if err != nil {
		c.refuse("prompt", fmt.Sprintf("%d tokens", len(prompt)), fmt.Sprintf("1 to %d", maxDim), runtime.ErrShape)
	}
	if c.err == nil && (position < 0 || position >= len(prompt)) {
		c.refuse("position", fmt.Sprint(position), fmt.Sprintf("that of one of %d tokens", len(prompt)), runtime.ErrShape)
	}
	c.dim("kvStride", kvStride, 1)
	offset := c.product("position * kvStride", math.MaxUint32, position, kvStride)
	if c.err != nil {
		return DecodeState{}, c.err
	}
	s.Token, s.Position, s.KVLength, s.CacheOffset = prompt[position], uint32(position), uint32(position)+1, uint32(offset)
	return s, nil
}

// Words is the state as it lies on the device.
func (s DecodeState) Words() [DecodeStateWords]uint32 {
	return [DecodeStateWords]uint32{
		StateToken: s.Token, StatePosition: s.Position, StateKVLength: s.KVLength, StateCacheOffset: s.CacheOffset,
		StateProduced: s.Produced, StateStatus: uint32(s.Status), StatePromptLength: s.PromptLength,
	}
}

// DecodeStateOf is the inverse of [DecodeState.Words].
func DecodeStateOf(words [DecodeStateWords]uint32) DecodeState {
	return DecodeState{
		Token: words[StateToken], Position: words[StatePosition], KVLength: words[StateKVLength], CacheOffset: words[StateCacheOffset],
		Produced: words[StateProduced], Status: DecodeStatus(words[StateStatus]), PromptLength: words[StatePromptLength],
	}
}

// DecodeStep are the operands of [DecodeAdvance].
type DecodeStep struct {
	State     runtime.Slice[uint32] // in and out: [DecodeStateWords]
	Prompt    runtime.Slice[uint32] // all of it is the capacity; the state says how much is a prompt
	Argmax    runtime.Slice[uint32] // one: the token that the step's logits gave
	Output    runtime.Slice[uint32] // out: produced tokens; all of it is the capacity
	EndTokens runtime.Slice[uint32] // ends the sequence; the zero Slice for none
	// KVCapacity is how many positions the cache has room for, KVStride how many elements of it a position takes.
	KVCapacity, KVStride int
}

// DecodeAdvance ends a decode step: it sets the state to what the next step needs, so that a recorded step is replayed
// over prompt and generation without the host.
//
//	next  = position + 1
//	token = Prompt[next] while next < prompt length, then Argmax[0], which is appended to Output
//	state = token, next, next + 1 (KV length), next * KVStride (cache offset)
//
// The sequence ends, and the state's status says why, with an end token (appended to Output), when Output or the cache is
// full, or when there is no token to go on with ([NoToken]). The counters then keep their values, and from there on the
// call is a no-op: replaying a step once too often does no harm, and nothing is written past a list or the cache. The
// kernel trusts no live value: the prompt length is limited to the length of Prompt, the output count to that of Output.
//
// Argmax is not used during the prompt, so a step may leave out its logits there.
//
// Slots: 0 State, 1 Prompt, 2 Argmax, 3 Output, 8 EndTokens (Argmax if there are none); scalars 4 length of Prompt,
// 5 length of Output, 6 KVCapacity, 7 KVStride, 9 length of EndTokens (uint32).
//
// State and Output must not overlap each other or anything else. Deterministic. Errors: ErrShape (lists have at least one
// element), ErrLimit (KVCapacity * KVStride is at most 2^32-1), ErrForeign, ErrClosed, ErrOverlap.
func DecodeAdvance(p *runtime.Pass, a DecodeStep) error {
	return decodeAdvance("nn.DecodeAdvance", p, &a, nil)
}

// UnsafeDecodeAdvance is [DecodeAdvance] with scalars 4 to 7 and 9 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeDecodeAdvance(p *runtime.Pass, a DecodeStep, bind func(*runtime.ScalarBinder) error) error {
	return decodeAdvance("nn.UnsafeDecodeAdvance", p, &a, bind)
}

// ValidateDecodeAdvance makes the checks of [DecodeAdvance] without encoding anything.
func ValidateDecodeAdvance(rt *runtime.Runtime, a DecodeStep) error {
	c := startOn("nn.ValidateDecodeAdvance", rt)
	c.decodeStep(&a)
	return c.result()
}

func (c *check) decodeStep(a *DecodeStep) (end runtime.View) {
	c.dim("KVCapacity", a.KVCapacity, 1)
	c.dim("KVStride", a.KVStride, 1)
	c.product("KVCapacity * KVStride", math.MaxUint32, a.KVCapacity, a.KVStride)
	c.dim("length of Prompt", a.Prompt.Len(), 0)
	c.dim("length of Output", a.Output.Len(), 0)
	c.dim("length of EndTokens", a.EndTokens.Len(), 0)
	need := func(arg string, s runtime.Slice[uint32], n int) {
		c.owned(arg, s.View())
		c.capacity(arg, s.View(), n, 4, 4)
	}
	need("State", a.State, DecodeStateWords)
	need("Prompt", a.Prompt, 1)
	need("Argmax", a.Argmax, 1)
	need("Output", a.Output, 1)
	end = a.Argmax.View()
	if !isZero(a.EndTokens.View()) {
		need("EndTokens", a.EndTokens, 0)
		if a.EndTokens.Len() > 0 {
			end = a.EndTokens.View()
		}
	}
	c.disjoint(2, operand{"State", a.State.View()}, operand{"Output", a.Output.View()}, operand{"Prompt", a.Prompt.View()},
		operand{"Argmax", a.Argmax.View()}, operand{"EndTokens", end})
	return end
}

func decodeAdvance(fn string, p *runtime.Pass, a *DecodeStep, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	end := c.decodeStep(a)
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("decode_advance")
	l.ReadWrite(0, first(a.State.View(), DecodeStateWords, 4))
	l.Read(1, a.Prompt.View())
	l.Read(2, first(a.Argmax.View(), 1, 4))
	l.Write(3, a.Output.View())
	l.Uint32(4, uint32(a.Prompt.Len()))
	l.Uint32(5, uint32(a.Output.Len()))
	l.Uint32(6, uint32(a.KVCapacity))
	l.Uint32(7, uint32(a.KVStride))
	l.Read(8, end)
	l.Uint32(9, uint32(a.EndTokens.Len()))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(1), runtime.D1(1))
}
