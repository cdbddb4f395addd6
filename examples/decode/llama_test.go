package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/examples/decode/internal/oracle"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// variant is a model that differs from llama.
type variant struct {
	name   string
	kind   func(checkpoint.Role, int) weightKind
	config *checkpoint.Config
	change func(f *fake)
	bound  float64 // of the logits' difference, for models with bfloat16 activations
}

// variants are models with everything that a configuration can ask for, and all types of weights.
func variants() []variant {
	f32 := all(plain(nn.WeightF32))
	with := func(change func(c *checkpoint.Config)) *checkpoint.Config {
		c := llama()
		change(c)
		return c
	}
	list := []variant{
		{name: "llama", kind: f32, config: llama()},
		{name: "tied", kind: f32, config: with(func(c *checkpoint.Config) { c.Tied = true })},
		{name: "window", kind: f32, config: with(func(c *checkpoint.Config) { c.Window, c.Sliding = 3, []bool{true, false} })},
		{name: "gelu", kind: f32, config: with(func(c *checkpoint.Config) { c.Activation = checkpoint.GELUTanh })},
		{name: "post norms, softcaps", kind: f32, config: with(func(c *checkpoint.Config) {
			c.PostNorms, c.Softcap, c.AttnSoftcap, c.EmbedScale = true, 3, 2, 8
		})},
		{name: "q/k norms", kind: f32, config: with(func(c *checkpoint.Config) { c.QKNorm, c.Eps = true, 1e-2 })},
		{name: "heads of 64", kind: f32, config: with(func(c *checkpoint.Config) {
			c.Heads, c.KVHeads, c.HeadDim = 3, 1, 64
			rope(c, checkpoint.RoPE{Theta: 1e4, Dim: 64})
		})},
	}
	biased := with(func(c *checkpoint.Config) { c.AttentionBias, c.Tied = true, true })
	list = append(list,
		variant{name: "qwen2", kind: f32, config: biased},
		variant{name: "output bias", kind: f32, config: llama(), change: func(f *fake) { f.outputBias = true }},
		variant{name: "biases, q/k norms", kind: f32, config: with(func(c *checkpoint.Config) { c.AttentionBias, c.QKNorm = true, true })},
		variant{name: "neighbours", kind: f32, config: with(func(c *checkpoint.Config) { rope(c, checkpoint.RoPE{Theta: 1e4, Dim: 16, Neighbours: true}) })},
		variant{name: "neighbours of heads of 8", kind: f32, config: with(func(c *checkpoint.Config) {
			c.HeadDim, c.QueryScale = 8, 1/math.Sqrt(8)
			rope(c, checkpoint.RoPE{Theta: 1e4, Dim: 8, Neighbours: true})
		})},
		variant{name: "partial", kind: f32, config: with(func(c *checkpoint.Config) { rope(c, checkpoint.RoPE{Theta: 1e4, Dim: 8}) })},
		variant{name: "partial neighbours", kind: f32, config: with(func(c *checkpoint.Config) { rope(c, checkpoint.RoPE{Theta: 1e4, Dim: 4, Neighbours: true}) })},
		variant{name: "linear", kind: f32, config: with(func(c *checkpoint.Config) {
			rope(c, checkpoint.RoPE{Theta: 500, Dim: 16, Scaling: checkpoint.Scaling{Kind: checkpoint.ScalingLinear, Factor: 4}})
		})},
		variant{name: "llama 3", kind: f32, config: with(func(c *checkpoint.Config) {
			rope(c, checkpoint.RoPE{Theta: 100, Dim: 16, Scaling: checkpoint.Scaling{Kind: checkpoint.ScalingLlama3, Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalPositions: 32}})
		})},
		variant{name: "YaRN", kind: f32, config: with(func(c *checkpoint.Config) {
			rope(c, checkpoint.RoPE{Theta: 100, Dim: 16, Scaling: checkpoint.Scaling{Kind: checkpoint.ScalingYaRN, Factor: 4, BetaFast: 4, BetaSlow: 1, OriginalPositions: 32,
				AttentionFactor: 1.14, Truncate: true}})
		})},
		variant{name: "YaRN, not truncated, partial", kind: f32, config: with(func(c *checkpoint.Config) {
			rope(c, checkpoint.RoPE{Theta: 50, Dim: 12, Scaling: checkpoint.Scaling{Kind: checkpoint.ScalingYaRN, Factor: 4, BetaFast: 5, BetaSlow: 0.5, OriginalPositions: 64,
				AttentionFactor: 0.9}})
		})},
		variant{name: "frequency factors", kind: f32, config: with(func(c *checkpoint.Config) {
			rope(c, checkpoint.RoPE{Theta: 100, Dim: 16, Neighbours: true, Scaling: checkpoint.Scaling{Factors: []float32{1, 1, 1.5, 2, 3, 4, 8, 8}}})
		})},
		variant{name: "rope by layer", kind: f32, config: with(func(c *checkpoint.Config) {
			c.RoPE[1] = checkpoint.RoPE{Theta: 30, Dim: 8, Neighbours: true, Scaling: checkpoint.Scaling{Factor: 1}}
		})},
		variant{name: "MLX 4 bits", kind: all(weightKind{nn.WeightBF16, 4, 32}), config: llama(), bound: bf16Difference},
		variant{name: "MLX 4 bits, GELU", kind: all(weightKind{nn.WeightBF16, 4, 64}), config: with(func(c *checkpoint.Config) {
			c.Activation, c.FFN = checkpoint.GELUTanh, 128
		}), bound: bf16Difference},
		variant{name: "MLX 4 bits, biases", kind: all(weightKind{nn.WeightBF16, 4, 32}), config: biased, bound: bf16Difference},
		variant{name: "MLX of all kinds", config: wide(llama()), kind: func(r checkpoint.Role, layer int) weightKind {
			i := int(r) + layer + 1
			return weightKind{[]nn.WeightType{nn.WeightF32, nn.WeightF16, nn.WeightBF16}[i%3], []int{4, 6, 8}[i/3%3], []int{32, 64, 128}[i%3]}
		}},
		variant{name: "MLX 4 bits, output in BF16", config: llama(), kind: func(r checkpoint.Role, _ int) weightKind {
			if r == checkpoint.Output {
				return plain(nn.WeightBF16)
			}
			return weightKind{nn.WeightBF16, 4, 32}
		}},
		variant{name: "mixed numbers", config: llama(), kind: func(r checkpoint.Role, layer int) weightKind {
			return plain([]nn.WeightType{nn.WeightF32, nn.WeightF16, nn.WeightBF16, nn.WeightQ8_0}[(int(r)+layer+1)%4])
		}},
	)
	for _, scale := range []nn.WeightType{nn.WeightF32, nn.WeightF16, nn.WeightBF16} {
		for _, bits := range []int{4, 6, 8} {
			if bits != 4 || scale != nn.WeightBF16 {
				list = append(list, variant{name: fmt.Sprintf("MLX %d bits, %v", bits, scale), kind: all(weightKind{scale, bits, 32}), config: llama()})
			}
		}
	}
	for _, w := range nn.WeightTypes() {
		c := llama()
		if w.Block().Values() == 256 {
			c = wide(c)
			c.Layers, c.RoPE = 1, c.RoPE[:1]
		}
		list = append(list, variant{name: w.String(), kind: all(plain(w)), config: c})
	}
	return list
}

// Every part of a configuration and every type of weights: the logits after a prompt that is read in tiles, and after steps, are
// those of the model in float64.
func TestVariants(t *testing.T) {
	numbersOnly(t)
	rt := openRuntimeFor(t)
	for i, v := range variants() {
		if testing.Short() && i%5 != 0 {
			continue
		}
		t.Run(v.name, func(t *testing.T) { v.compare(t, rt, 9) }) // tiles of 9, 9 and 2 tokens
	}
}

// Devices without simdgroup matrices read prompts with the products of steps, up to nn.MaxRowExactRows vectors at once.
func TestWithoutMatrices(t *testing.T) {
	d := soft.New(soft.Options{Families: soft.AppleFamilies(6)})
	defer d.Release()
	rt := openRuntimeFor(t, runtime.WithDevice(d))
	if rt.Device().SIMDMatrix {
		t.Fatal("the device has them")
	}
	names := []string{"q/k norms", "MLX 4 bits, GELU", "mixed numbers", "Q6_K"}
	for _, v := range variants() {
		if slices.Contains(names, v.name) {
			t.Run(v.name, func(t *testing.T) { v.compare(t, rt, 20) })
		}
	}
}

// compare reads a prompt of 20 tokens in tiles of so many, and takes three steps.
func (v variant) compare(t *testing.T, rt *runtime.Runtime, tileRows int) {
	const prompt, steps = 20, 3
	f := newFake(t, v.config, v.kind)
	if v.change != nil {
		v.change(f)
	}
	truth, err := oracle.Load(f.config, f)
	if err != nil {
		t.Fatal(err)
	}
	m := openFake(t, rt, f, settings{sequences: 1, longest: prompt, n: steps + 1, tileRows: tileRows})
	r, tokens := rand.New(rand.NewPCG(1, 1)), make([]uint32, prompt)
	for i := range tokens {
		tokens[i] = r.Uint32N(uint32(f.config.Vocab))
	}
	text, ctx := truth.Start(), context.Background()
	var want []float64
	for _, id := range tokens {
		want, _ = text.Step(id)
	}
	last, err := m.readPrompts(ctx, replayed, [][]uint32{tokens})
	worst, largest := 0.0, 0.0
	for i := 0; ; i++ {
		if err == nil {
			err = last.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		for j, got := range capped(m, readLogits(t, m)) {
			worst, largest = max(worst, math.Abs(got-want[j])), max(largest, math.Abs(want[j]))
		}
		if i == steps {
			break
		}
		var choice [1]uint32
		if err := m.choice.Read(choice[:]); err != nil {
			t.Fatal(err)
		}
		want, _ = text.Step(choice[0])
		last, err = m.submit(replayed)
	}
	bound := v.bound
	if bound == 0 {
		bound = f32Difference
	}
	t.Logf("worst difference %.2g of logits up to %.2g", worst, largest)
	if worst > bound {
		t.Errorf("logits differ by %g, allowed is %g", worst, bound)
	}
}

const (
	// f32Difference is how far logits of some units may be from those in float64, when all is computed in float32 but weights
	// that are stored otherwise: sums of some 100 products, each rounded by 6e-8, through a few layers.
	f32Difference = 1e-5
	// bf16Difference is that with activations of bfloat16, rounded by 2e-3 each.
	bf16Difference = 0.05
)
