package nn

import (
	"fmt"
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
)

// RoPEPairing says which two elements of a head rotary position embedding turns together. A head has HeadDim elements, of
// which it turns RotaryDim, in pairs p < RotaryDim/2, each by the angle that InvFreq[p] gives.
//
// Checkpoints are made for one of them: with another one, every number is plausible and wrong.
type RoPEPairing int

const (
	// RoPEHalves pairs p and p + HeadDim/2, whatever RotaryDim is: Gemma. If all of the head turns, which is RotaryDim ==
	// HeadDim, this is the pairing of Hugging Face's Llama, Qwen and Mistral too, whose rotate_half it is.
	RoPEHalves RoPEPairing = iota
	// RoPERotaryHalves pairs p and p + RotaryDim/2, and leaves the elements from RotaryDim on as they are: the
	// partial_rotary_factor of Hugging Face (Phi, GPT-NeoX, StableLM, Nemotron), and what GGUF calls NeoX.
	RoPERotaryHalves
	// RoPENeighbours pairs 2p and 2p + 1, and leaves the elements from RotaryDim on as they are: the RoFormer paper, GPT-J,
	// Llama as Meta publishes it and as GGUF files have it, and MLX's traditional form.
	RoPENeighbours
)

// String is the name of the constant.
func (p RoPEPairing) String() string {
	switch p {
	case RoPEHalves:
		return "RoPEHalves"
	case RoPERotaryHalves:
		return "RoPERotaryHalves"
	case RoPENeighbours:
		return "RoPENeighbours"
	}
	return "RoPEPairing(" + strconv.Itoa(int(p)) + ")"
}

// Operands that the kernels of not all models have: bits of slot 25.
const (
	ropeQWeight = 1 << iota
	ropeKWeight
	ropeQBias
	ropeKBias
	ropeVBias
)

// orView is v, or w if v is the zero View: a slot must not be empty.
func orView(v, w runtime.View) runtime.View {
	if isZero(v) {
		return w
	}
	return v
}

// operands are the bits of what there is.
func (a *QKVHeads) operands() (bits uint32) {
	for i, s := range [...]*runtime.Slice[float32]{&a.QWeight, &a.KWeight, &a.QBias, &a.KBias, &a.VBias} {
		if !isZero(s.View()) {
			bits |= 1 << i
		}
	}
	return bits
}

// options says whether the call needs a kernel with options.
func (a *QKVHeads) options() bool {
	norms := uint32(ropeQWeight)
	if a.HeadsKV > 0 {
		norms |= ropeKWeight
	}
	return a.operands() != norms || a.Pairing != RoPEHalves || a.AttentionFactor != 0 && a.AttentionFactor != 1
}

// ropeScalars refuses the scalars of norms and rotation.
func (c *check) ropeScalars(a *QKVHeads) {
	if a.operands()&(ropeQWeight|ropeKWeight) != 0 || a.VNorm {
		c.positive("Eps", a.Eps)
	} else {
		c.finite("Eps", a.Eps)
	}
	if a.AttentionFactor != 0 {
		c.positive("AttentionFactor", a.AttentionFactor)
	}
	if c.err == nil && (a.Pairing < RoPEHalves || a.Pairing > RoPENeighbours) {
		c.refuse("Pairing", a.Pairing.String(), fmt.Sprintf("%v, %v or %v", RoPEHalves, RoPERotaryHalves, RoPENeighbours), runtime.ErrScalar)
	}
}
