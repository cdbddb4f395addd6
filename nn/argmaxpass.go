package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

// ArgmaxOperands are the operands of one pass of an argmax in several.
type ArgmaxOperands struct {
	Index   runtime.Slice[uint32]  // results [ArgmaxGroups(N)]
	Value   runtime.Slice[float32] // results [ArgmaxGroups(N)]
	Values  runtime.Slice[float32] // [N]: logits, or the values of the pass before
	Indices runtime.Slice[uint32]  // [N]: the indices of the pass before; the zero Slice in the first
	Softcap runtime.Slice[float32] // [1]: the cap; the zero Slice for none
	N       int
}

// ArgmaxPass chooses from each group g of [ArgmaxGroup] neighbouring values:
//
//	Index[g] = the index of the greatest finite value, the lowest one among equals, or NoToken
//	Value[g] = cap * tanh(value / cap) of that value, with cap = Softcap[0]; the value itself without Softcap; 0 with NoToken
//
// The index of Values[i] is Indices[i], or i itself without Indices. Values whose index is NoToken, and those that are NaN
// or infinite, are ignored. A cap that is not positive and finite means none; values are compared uncapped, as by
// [SoftcapArgmax]. Index and Value are the Indices and Values of the next pass, until one group is left; of all passes one
// may have the Softcap. [Argmax] makes all passes.
//
// Slots: 0 Values, 1 Index, 2 Value, 4 Indices (without them Values, which are not read there), 6 Softcap (as well);
// scalars 3 N, 5 whether there are Indices, 7 whether there is a Softcap, 0 or 1 (uint32).
//
// What is written must not overlap anything else. Deterministic. Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func ArgmaxPass(p *runtime.Pass, a ArgmaxOperands) error {
	return argmaxPass("nn.ArgmaxPass", p, &a, nil)
}

// UnsafeArgmaxPass is [ArgmaxPass] with scalars 3, 5 and 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeArgmaxPass(p *runtime.Pass, a ArgmaxOperands, bind func(*runtime.ScalarBinder) error) error {
	return argmaxPass("nn.UnsafeArgmaxPass", p, &a, bind)
}

func argmaxPass(fn string, p *runtime.Pass, a *ArgmaxOperands, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("N", a.N, 1)
	groups := ArgmaxGroups(a.N)
	c.memory(memory{"Values", a.Values.View(), a.N, 4}, memory{"Index", a.Index.View(), groups, 4}, memory{"Value", a.Value.View(), groups, 4})
	indices, limit := c.optional("Indices", a.Indices.View(), a.N), c.optional("Softcap", a.Softcap.View(), 1)
	if c.err != nil {
		return c.result()
	}
	values, index, value := first(a.Values.View(), a.N, 4), first(a.Index.View(), groups, 4), first(a.Value.View(), groups, 4)
	c.disjoint(2, operand{"Index", index}, operand{"Value", value}, operand{"Values", values}, operand{"Indices", indices}, operand{"Softcap", limit})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(argmaxKernel)
	pass := argmaxOne{index, value, values, indices, limit, a.N}
	return prepared{l, pass.bind(l, bind)}.dispatch()
}

// optional is the view of the first n elements of four bytes of an argument that may be the zero Slice: then, and if it is
// refused, the zero View.
func (c *check) optional(arg string, v runtime.View, n int) runtime.View {
	if isZero(v) {
		return v
	}
	c.memory(memory{arg, v, n, 4})
	if c.err != nil {
		return runtime.View{}
	}
	return first(v, n, 4)
}

// isZero tells the zero View from the one that a wrong slicing gives.
func isZero(v runtime.View) bool { return v == runtime.View{} }

// argmaxOne are the views of one pass, checked; indices and limit may be zero.
type argmaxOne struct {
	index, value, values, indices, limit runtime.View

	n int
}

const argmaxKernel = "argmax_f32"

func (a argmaxOne) bind(l *runtime.Launch, bind func(*runtime.ScalarBinder) error) grid {
	flag := func(v *runtime.View) uint32 {
		if isZero(*v) {
			*v = a.values // a slot must not be empty; the kernel does not read this one
			return 0
		}
		return 1
	}
	hasIndices, hasLimit := flag(&a.indices), flag(&a.limit)
	l.Read(0, a.values)
	l.Write(1, a.index)
	l.Write(2, a.value)
	l.Uint32(3, uint32(a.n))
	l.Read(4, a.indices)
	l.Uint32(5, hasIndices)
	l.Read(6, a.limit)
	l.Uint32(7, hasLimit)
	l.Scalars(bind)
	return grid{runtime.D1(ArgmaxGroups(a.n)), runtime.D1(fitThreads(l, ArgmaxGroup))}
}

// ArgmaxArgs are the operands of an argmax in several passes.
type ArgmaxArgs struct {
	Token           runtime.Slice[uint32]  // result [1]
	Value           runtime.Slice[float32] // result [1]
	Logits, Softcap runtime.Slice[float32] // [N]; [1], or the zero Slice for no cap
	ScratchIndex    runtime.Slice[uint32]  // [ArgmaxScratch(N)]
	ScratchValue    runtime.Slice[float32] // [ArgmaxScratch(N)]
	N               int
}

// Argmax finds the most likely token in [ArgmaxPasses] passes of many threadgroups, where [SoftcapArgmax] has one pass of
// one:
//
//	Token[0] = the index of the greatest finite logit, the lowest one among equals, or NoToken
//	Value[0] = cap * tanh(logit / cap) of that logit, with cap = Softcap[0]; 0 with NoToken
//
// It gives the same bits as SoftcapArgmax. Logits are compared uncapped and the winner is capped, once, by the last pass.
// A cap that is not positive and finite means none. NaN and infinite logits are ignored; logits are not written.
//
// The scratch slices, of [ArgmaxScratch] elements each, hold the results between passes; their contents mean nothing
// afterwards. Up to [ArgmaxGroup] logits need none: the zero Slice will do. Longer slices are allowed everywhere. N is at
// least 1.
//
// Slots: those of [ArgmaxPass].
//
// What is written must not overlap anything else. Deterministic. Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func Argmax(p *runtime.Pass, a ArgmaxArgs) error {
	c := start("nn.Argmax", p)
	v := c.argmax(&a)
	if c.err != nil {
		return c.result()
	}
	prepare := func(pass argmaxOne) prepared {
		l := p.Kernel(argmaxKernel)
		return prepared{l, pass.bind(l, nil)}
	}
	if ArgmaxPasses(a.N) > 1 {
		// What is wrong with a later pass must show before the first one is encoded.
		if err := v.passes(a.N, func(pass argmaxOne) error { return prepare(pass).check() }); err != nil {
			return err
		}
	}
	return v.passes(a.N, func(pass argmaxOne) error { return prepare(pass).dispatch() })
}

// UnsafeArgmax is [Argmax] with the scalars of all its passes in the caller's own storage: bind is called for each pass, from
// 0 to [ArgmaxPasses](N) - 1, before any is encoded, and puts 3, 5 and 7 of that pass.
//
// Unsafe: see the package documentation. Each pass has an N of its own, that of its input: a smaller N of one must go with
// those of the passes after it.
func UnsafeArgmax(p *runtime.Pass, a ArgmaxArgs, bind func(pass int, b *runtime.ScalarBinder) error) error {
	c := start("nn.UnsafeArgmax", p)
	v := c.argmax(&a)
	if c.err != nil {
		return c.result()
	}
	if bind == nil {
		return Argmax(p, a)
	}
	var launches []prepared
	err := v.passes(a.N, func(pass argmaxOne) error {
		n := len(launches)
		l := p.NewLaunch(argmaxKernel)
		launches = append(launches, prepared{l, pass.bind(l, func(b *runtime.ScalarBinder) error { return bind(n, b) })})
		return nil
	})
	if err != nil {
		return err
	}
	return dispatchAll(launches...)
}

// ValidateArgmax makes the checks of [Argmax] without encoding anything.
func ValidateArgmax(rt *runtime.Runtime, a ArgmaxArgs) error {
	c := startOn("nn.ValidateArgmax", rt)
	c.argmax(&a)
	return c.result()
}

type argmaxViews struct{ token, value, logits, limit, index, scratch runtime.View }

// passes calls each with the views of one pass after the other, until it gives an error.
func (v *argmaxViews) passes(n int, each func(argmaxOne) error) error {
	values, indices := v.logits, runtime.View{}
	for done := 0; ; {
		groups := ArgmaxGroups(n)
		if groups == 1 {
			return each(argmaxOne{v.token, v.value, values, indices, v.limit, n})
		}
		index, value := v.index.Bytes(4*done, 4*(done+groups)), v.scratch.Bytes(4*done, 4*(done+groups))
		if err := each(argmaxOne{index, value, values, indices, runtime.View{}, n}); err != nil {
			return err
		}
		values, indices = value, index
		n, done = groups, done+groups
	}
}

func (c *check) argmax(a *ArgmaxArgs) (v argmaxViews) {
	c.dim("N", a.N, 1)
	c.memory(memory{"Logits", a.Logits.View(), a.N, 4}, memory{"Token", a.Token.View(), 1, 4}, memory{"Value", a.Value.View(), 1, 4})
	v.limit = c.optional("Softcap", a.Softcap.View(), 1)
	if c.err != nil {
		return v
	}
	if n := ArgmaxScratch(a.N); n > 0 {
		c.memory(memory{"ScratchIndex", a.ScratchIndex.View(), n, 4}, memory{"ScratchValue", a.ScratchValue.View(), n, 4})
		v.index, v.scratch = first(a.ScratchIndex.View(), n, 4), first(a.ScratchValue.View(), n, 4)
	}
	if c.err != nil {
		return v
	}
	v.token, v.value, v.logits = first(a.Token.View(), 1, 4), first(a.Value.View(), 1, 4), first(a.Logits.View(), a.N, 4)
	c.disjoint(4, operand{"Token", v.token}, operand{"Value", v.value}, operand{"ScratchIndex", v.index}, operand{"ScratchValue", v.scratch},
		operand{"Logits", v.logits}, operand{"Softcap", v.limit})
	return v
}

// MaxSampleLogits is the most logits that [SoftcapSample] takes.
const MaxSampleLogits = 256

// SoftcapSample caps a few logits in place and finds the most likely token of them:
//
//	token[0] = the index of the greatest finite logit, the lowest one among equals, or NoToken
//	logits[i] = cap * tanh(logits[i] / cap),  cap = softcap[0],  i < n
//
// The token is that of the logits as they came, and NaN and infinite ones are ignored. What is said of caps and of such
// logits at [SoftcapLogits] holds here. For more logits there are [SoftcapArgmax] and [Argmax].
//
// Shapes: logits [n], token and softcap [1]; longer slices are allowed. n is 1 to [MaxSampleLogits].
//
// Slots: 0 logits, 1 token, 2 softcap; scalar 3 n (uint32).
//
// logits and token must not overlap each other or softcap. Deterministic. Errors: ErrShape, ErrForeign, ErrClosed,
// ErrOverlap.
//
// Source: softcapping, Gemma 2 report, arXiv:2408.00118.
func SoftcapSample(p *runtime.Pass, token runtime.Slice[uint32], logits, softcap runtime.Slice[float32], n int) error {
	return softcapSample("nn.SoftcapSample", p, token, logits, softcap, n, nil)
}

// UnsafeSoftcapSample is [SoftcapSample] with scalar 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeSoftcapSample(p *runtime.Pass, token runtime.Slice[uint32], logits, softcap runtime.Slice[float32], n int,
	bind func(*runtime.ScalarBinder) error) error {
	return softcapSample("nn.UnsafeSoftcapSample", p, token, logits, softcap, n, bind)
}

func softcapSample(fn string, p *runtime.Pass, token runtime.Slice[uint32], logits, softcap runtime.Slice[float32], n int,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	if c.err == nil && (n < 1 || n > MaxSampleLogits) {
		c.refuse("n", fmt.Sprint(n), fmt.Sprintf("1 to %d; SoftcapArgmax and Argmax take more", MaxSampleLogits), runtime.ErrShape)
	}
	c.memory(memory{"logits", logits.View(), n, 4}, memory{"token", token.View(), 1, 4}, memory{"softcap", softcap.View(), 1, 4})
	if c.err != nil {
		return c.result()
	}
	io, index, limit := first(logits.View(), n, 4), first(token.View(), 1, 4), first(softcap.View(), 1, 4)
	c.disjoint(2, operand{"logits", io}, operand{"token", index}, operand{"softcap", limit})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("softcap_sample")
	l.ReadWrite(0, io)
	l.Write(1, index)
	l.Read(2, limit)
	l.Uint32(3, uint32(n))
	l.Scalars(bind)
	return dispatchGroups(l, 1, ceilDiv(n, SIMDWidth)*SIMDWidth)
}
