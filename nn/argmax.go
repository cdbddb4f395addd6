package nn

import "github.com/ingot-metal/ingot/runtime"

// NoToken is the index that [SoftcapArgmax] gives when no logit is finite.
const NoToken = 0xffffffff

// SoftcapArgmax finds the most likely token:
//
//	token[0] = the index of the greatest finite logit, the lowest one among equals, or NoToken
//	value[0] = cap * tanh(logit / cap) of that logit, with cap = softcap[0]; 0 with NoToken
//
// A cap that is not positive and finite means none. Capping is strictly increasing, so it does not change which logit is the
// greatest; the uncapped ones are compared, which keeps apart what rounding and saturation would make equal. NaN and
// infinite logits are ignored. logits are not written.
//
// Shapes: logits [n], token, value and softcap [1]; longer slices are allowed. n is at least 1.
//
// Slots: 0 logits, 1 token, 2 softcap, 4 value; scalar 3 n (uint32).
//
// token and value must not overlap each other or an input. Deterministic. Errors: ErrShape, ErrForeign, ErrClosed,
// ErrOverlap.
//
// Source: softcapping, Gemma 2 report, arXiv:2408.00118.
func SoftcapArgmax(p *runtime.Pass, token runtime.Slice[uint32], value, logits, softcap runtime.Slice[float32], n int) error {
	return softcapArgmax("nn.SoftcapArgmax", p, token, value, logits, softcap, n, nil)
}

// UnsafeSoftcapArgmax is [SoftcapArgmax] with scalar 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeSoftcapArgmax(p *runtime.Pass, token runtime.Slice[uint32], value, logits, softcap runtime.Slice[float32], n int,
	bind func(*runtime.ScalarBinder) error) error {
	return softcapArgmax("nn.UnsafeSoftcapArgmax", p, token, value, logits, softcap, n, bind)
}

func softcapArgmax(fn string, p *runtime.Pass, token runtime.Slice[uint32], value, logits, softcap runtime.Slice[float32], n int,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("n", n, 1)
	c.owned("logits", logits.View())
	c.owned("softcap", softcap.View())
	c.owned("token", token.View())
	c.owned("value", value.View())
	c.capacity("logits", logits.View(), n, 4, 4)
	c.capacity("softcap", softcap.View(), 1, 4, 4)
	c.capacity("token", token.View(), 1, 4, 4)
	c.capacity("value", value.View(), 1, 4, 4)
	if c.err != nil {
		return c.result()
	}
	in, limit := first(logits.View(), n, 4), first(softcap.View(), 1, 4)
	index, best := first(token.View(), 1, 4), first(value.View(), 1, 4)
	c.disjoint(2, operand{"token", index}, operand{"value", best}, operand{"logits", in}, operand{"softcap", limit})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("softcap_argmax_one_pass")
	l.Read(0, in)
	l.Write(1, index)
	l.Read(2, limit)
	l.Uint32(3, uint32(n))
	l.Write(4, best)
	l.Scalars(bind)
	return dispatchRows(l, 1, n)
}
