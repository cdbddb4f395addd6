package checkpoint

import (
	"fmt"
	"math"
	"slices"
)

// Config is a model's configuration, checked and with defaults filled in.
type Config struct {
	Architecture string // as the file calls it: "gemma3_text", "llama", …

	Vocab     int // rows of the embedding
	Hidden    int // width of the residual stream
	Layers    int
	Heads     int // of queries
	KVHeads   int
	HeadDim   int
	FFN       int // width of the feed-forward block
	Positions int // longest text the model was made for

	Eps         float64 // of every norm, inside the root
	QueryScale  float64 // attention's factor on q·k
	EmbedScale  float64 // factor on embeddings: Gemma's sqrt(Hidden), otherwise 1
	Softcap     float64 // of the final logits: cap·tanh(x/cap); 0 for none
	AttnSoftcap float64 // of attention's scores; 0 for none

	Activation    Activation // of the feed-forward block's gate
	PostNorms     bool       // norms after attention and after the feed-forward block, before the residual is added
	QKNorm        bool       // norms of query and key heads, before RoPE
	AttentionBias bool       // biases of queries, keys and values

	Window  int    // how many positions a sliding layer sees, its own included; 0 if none slides
	Sliding []bool // per layer
	RoPE    []RoPE // per layer

	BOS    uint32
	AddBOS bool     // a text begins with BOS
	EOS    []uint32 // any of them ends a text
	Tied   bool     // the output matrix is the embedding

	outputBias bool // attention's output has a bias
}

// Activation is a function of numbers.
type Activation int

// The activations.
const (
	GELUTanh Activation = iota // GELU in its tanh form
	SiLU                       // x·sigmoid(x)
)

// RoPE are the parameters of a layer's rotary position embedding: pair p of a head turns by position·Theta^(−2p/Dim), with
// Scaling.
type RoPE struct {
	Theta      float64
	Dim        int  // how many numbers of a head turn, the first ones; even
	Neighbours bool // pair p is of the numbers 2p and 2p+1; otherwise p and p + Dim/2
	Scaling    Scaling
}

// Scaling changes the frequencies of RoPE for longer texts than a model was first trained with. Its fields are those of
// Hugging Face's configurations; those that do not belong to Kind are 0.
type Scaling struct {
	Kind   ScalingKind
	Factor float64 // frequencies, or some of them, are divided by it; 1 if Kind is ScalingNone

	OriginalPositions int     // ScalingLlama3, ScalingYaRN: the longest text before
	LowFreqFactor     float64 // ScalingLlama3
	HighFreqFactor    float64 // ScalingLlama3
	BetaFast          float64 // ScalingYaRN: how many turns within OriginalPositions leave a frequency alone
	BetaSlow          float64 // ScalingYaRN: how many divide it by Factor
	Truncate          bool    // ScalingYaRN: the range between them is widened to whole pairs
	AttentionFactor   float64 // ScalingYaRN: sines and cosines are multiplied by it

	// Factors, if there are any, are Dim/2 further divisors, one for each frequency: rope_freqs.weight of GGUF files.
	Factors []float32
}

// ScalingKind is a way to scale.
type ScalingKind int

// The kinds of scaling.
const (
	ScalingNone   ScalingKind = iota
	ScalingLinear             // all frequencies by Factor
	ScalingLlama3             // Llama 3.1's: slow ones by Factor, fast ones not, with a ramp between
	ScalingYaRN               // arXiv:2309.00071: likewise, another ramp, and scores are scaled
)

// Limits of sizes: far beyond any model, and small enough that no product of a few overflows.
const (
	maxVocab     = 1 << 22
	maxHidden    = 1 << 16
	maxLayers    = 1 << 10
	maxHeads     = 1 << 10
	maxHeadDim   = 1 << 10
	maxFFN       = 1 << 18
	maxPositions = 1 << 24
)

// size checks one of them.
func size(name string, value int64, limit int) (int, error) {
	if value < 1 || value > int64(limit) {
		return 0, fmt.Errorf("%s is %d: it must be from 1 to %d", name, value, limit)
	}
	return int(value), nil
}

// positive checks a number that must be positive and fit a float32.
func positive(name string, value float64) (float64, error) {
	if v := float32(value); !(v > 0) || math.IsInf(float64(v), 0) {
		return 0, fmt.Errorf("%s is %g: it must be a positive number", name, value)
	}
	return value, nil
}

// epsilon checks the small number of norms.
func epsilon(name string, value float64) (float64, error) {
	if _, err := positive(name, value); err != nil {
		return 0, err
	}
	if value >= 1 {
		return 0, fmt.Errorf("%s is %g: it must be smaller than 1", name, value)
	}
	return value, nil
}

// heads checks how many there are and how wide they are; the names are the file's for the fields.
func (c *Config) heads(headsName, kvName, dimName string) error {
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("%s %d is not a multiple of %s %d", headsName, c.Heads, kvName, c.KVHeads)
	}
	if c.HeadDim%2 != 0 {
		return fmt.Errorf("%s %d is odd", dimName, c.HeadDim)
	}
	return nil
}

// pattern makes every n-th layer global and the others slide; 0 makes all slide.
func (c *Config) pattern(n int) {
	for i := range c.Sliding {
		c.Sliding[i] = n == 0 || (i+1)%n != 0
	}
}

func (c *Config) slides() bool { return slices.Contains(c.Sliding, true) }
