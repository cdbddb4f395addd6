package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/examples/decode/internal/plainjson"
)

// folderRoPE is rope_scaling, or a part of rope_parameters.
type folderRoPE struct {
	Theta   *float64 `json:"rope_theta"`
	Partial *float64 `json:"partial_rotary_factor"`
	Type    string   `json:"rope_type"`
	Type2   string   `json:"type"` // its former name

	Factor            *float64 `json:"factor"`
	OriginalPositions *int64   `json:"original_max_position_embeddings"`
	LowFreqFactor     *float64 `json:"low_freq_factor"`
	HighFreqFactor    *float64 `json:"high_freq_factor"`
	BetaFast          *float64 `json:"beta_fast"`
	BetaSlow          *float64 `json:"beta_slow"`
	AttentionFactor   *float64 `json:"attention_factor"`
	MScale            *float64 `json:"mscale"`
	MScaleAllDim      *float64 `json:"mscale_all_dim"`
	Truncate          *bool    `json:"truncate"`
}

// Names of the kinds of layers in rope_parameters.
const (
	fullLayers    = "full_attention"
	slidingLayers = "sliding_attention"
)

// rope gives every layer its parameters.
func (raw *folderConfig) rope(c *Config) error {
	full, sliding, err := raw.ropeParts()
	if err != nil {
		return err
	}
	var parts [2]RoPE
	for i, p := range []struct {
		raw   *folderRoPE
		name  string
		theta float64
	}{{full, fullLayers, 1e4}, {sliding, slidingLayers, 1e4}} {
		if p.name == fullLayers && raw.family().gemma {
			p.theta = 1e6
		}
		if parts[i], err = p.raw.rope(c, p.name, p.theta); err != nil {
			return err
		}
	}
	for i := range c.Layers {
		part := parts[0]
		if c.Sliding[i] {
			part = parts[1]
		}
		c.RoPE = append(c.RoPE, part)
	}
	return nil
}

// ropeParts are the parameters of full and of sliding layers. Only Gemma's differ.
func (raw *folderConfig) ropeParts() (full, sliding *folderRoPE, err error) {
	old := folderRoPE{}
	if raw.Scaling != nil {
		old = *raw.Scaling
	}
	if old.Theta == nil {
		old.Theta = raw.Theta
	}
	if old.Partial == nil {
		old.Partial = raw.PartialRoPE
	}
	full, sliding = &old, &old
	gemma := raw.family().gemma
	if gemma {
		sliding = &folderRoPE{Theta: raw.LocalTheta, Partial: raw.PartialRoPE}
	}
	if len(raw.RoPE) == 0 || string(raw.RoPE) == "null" {
		return full, sliding, nil
	}
	var keys map[string]json.RawMessage
	if err := plainjson.Unmarshal(raw.RoPE, &keys); err != nil {
		return nil, nil, fmt.Errorf("rope_parameters: %w", err)
	}
	byLayers := keys[fullLayers] != nil || keys[slidingLayers] != nil
	switch {
	case byLayers && !gemma:
		return nil, nil, fmt.Errorf("rope_parameters: there are some for kinds of layers, but layers of %s models do not differ", raw.ModelType)
	case gemma && !byLayers && len(keys) > 0:
		return nil, nil, fmt.Errorf("rope_parameters: needed are those of %s and %s", fullLayers, slidingLayers)
	case gemma:
		var parts map[string]*folderRoPE
		if err := plainjson.Unmarshal(raw.RoPE, &parts); err != nil {
			return nil, nil, fmt.Errorf("rope_parameters: %w", err)
		}
		if p := parts[fullLayers]; p != nil {
			full = p
		}
		if p := parts[slidingLayers]; p != nil {
			sliding = p
		}
		return full, sliding, nil
	}
	part := old
	if err := plainjson.Unmarshal(raw.RoPE, &part); err != nil {
		return nil, nil, fmt.Errorf("rope_parameters: %w", err)
	}
	return &part, &part, nil
}

func (r *folderRoPE) rope(c *Config, layers string, theta float64) (out RoPE, err error) {
	if r.Theta != nil {
		theta = *r.Theta
	}
	if out.Theta, err = positive("rope_theta of "+layers, theta); err != nil {
		return out, err
	}
	out.Dim = c.HeadDim
	if r.Partial != nil {
		if !(*r.Partial > 0 && *r.Partial <= 1) {
			return out, fmt.Errorf("partial_rotary_factor is %g: it must be greater than 0 and at most 1", *r.Partial)
		}
		out.Dim = int(float64(c.HeadDim) * *r.Partial)
		if out.Dim < 2 || out.Dim%2 != 0 {
			return out, fmt.Errorf("partial_rotary_factor is %g: %d of the %d numbers of a head turn, which is no positive even number", *r.Partial, out.Dim, c.HeadDim)
		}
	}
	out.Scaling, err = r.scaling(c, layers)
	return out, err
}

func (r *folderRoPE) scaling(c *Config, layers string) (s Scaling, err error) {
	kind := r.Type
	if kind == "" {
		kind = r.Type2
	}
	need := func(name string, v *float64) float64 {
		if err != nil {
			return 0
		}
		name = name + " of the " + kind + " RoPE scaling of " + layers
		if v == nil {
			err = fmt.Errorf("%s is missing", name)
			return 0
		}
		var out float64
		out, err = positive(name, *v)
		return out
	}
	either := func(name string, v *float64, missing float64) float64 {
		if v == nil {
			return missing
		}
		return need(name, v)
	}
	switch kind {
	case "", "default":
		return Scaling{Factor: 1}, nil
	case "linear":
		s = Scaling{Kind: ScalingLinear, Factor: need("factor", r.Factor)}
	case "llama3":
		s = Scaling{Kind: ScalingLlama3, Factor: need("factor", r.Factor),
			LowFreqFactor: need("low_freq_factor", r.LowFreqFactor), HighFreqFactor: need("high_freq_factor", r.HighFreqFactor)}
		if err == nil && s.HighFreqFactor <= s.LowFreqFactor {
			err = fmt.Errorf("high_freq_factor %g of the RoPE scaling of %s is not above low_freq_factor %g", s.HighFreqFactor, layers, s.LowFreqFactor)
		}
	case "yarn":
		s = Scaling{Kind: ScalingYaRN, Truncate: r.Truncate == nil || *r.Truncate,
			BetaFast: either("beta_fast", r.BetaFast, 32), BetaSlow: either("beta_slow", r.BetaSlow, 1)}
		if err == nil && s.BetaFast <= s.BetaSlow {
			err = fmt.Errorf("beta_fast %g of the RoPE scaling of %s is not above beta_slow %g", s.BetaFast, layers, s.BetaSlow)
		}
	default:
		return s, fmt.Errorf("the RoPE type of %s is %q: known are default, linear, llama3 and yarn", layers, kind)
	}
	if err != nil || s.Kind == ScalingLinear {
		return s, err
	}
	if s.OriginalPositions, err = r.originalPositions(c, s.Kind); err != nil || s.Kind == ScalingLlama3 {
		return s, err
	}
	// Without a factor it follows from the lengths.
	s.Factor = either("factor", r.Factor, float64(c.Positions)/float64(s.OriginalPositions))
	s.AttentionFactor = yarnScale(s.Factor, 1)
	if r.MScale != nil && r.MScaleAllDim != nil && *r.MScale != 0 && *r.MScaleAllDim != 0 {
		s.AttentionFactor = yarnScale(s.Factor, need("mscale", r.MScale)) / yarnScale(s.Factor, need("mscale_all_dim", r.MScaleAllDim))
	}
	s.AttentionFactor = either("attention_factor", r.AttentionFactor, s.AttentionFactor)
	if s.Factor < 1 && err == nil {
		err = fmt.Errorf("factor of the yarn RoPE scaling of %s is %g: it must be at least 1", layers, s.Factor)
	}
	return s, err
}

func (r *folderRoPE) originalPositions(c *Config, kind ScalingKind) (int, error) {
	const name = "original_max_position_embeddings"
	if r.OriginalPositions == nil {
		if kind == ScalingYaRN {
			return c.Positions, nil
		}
		return 0, fmt.Errorf("%s of the RoPE scaling is missing", name)
	}
	return size(name, *r.OriginalPositions, maxPositions)
}

// yarnScale is by how much YaRN scales sines and cosines, so that scores of longer texts stay as peaked.
func yarnScale(factor, m float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*m*math.Log(factor) + 1
}
