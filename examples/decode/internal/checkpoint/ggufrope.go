package checkpoint

import "fmt"

// rope reads the parameters of full layers, and those of sliding ones, which are never scaled.
func (m *metadata) rope(c *Config) error {
	full := RoPE{Theta: 1e4, Neighbours: ggufArchitectures[m.architecture].neighbours}
	var err error
	if full.Dim, err = m.size("rope.dimension_count", maxHeadDim, func() (int, error) { return c.HeadDim, nil }); err != nil {
		return err
	}
	if full.Dim > c.HeadDim || full.Dim%2 != 0 {
		return fmt.Errorf("%s is %d: it must be even and at most %d, the length of a head", m.key("rope.dimension_count"), full.Dim, c.HeadDim)
	}
	sliding := full
	if theta, ok, err := m.float("rope.freq_base"); err != nil {
		return err
	} else if ok {
		full.Theta = theta
	}
	if theta, ok, err := m.float("rope.freq_base_swa"); err != nil {
		return err
	} else if ok {
		sliding.Theta = theta
	}
	sliding.Scaling.Factor = 1
	if full.Scaling, err = m.scaling(c); err != nil {
		return err
	}
	for i := range c.Layers {
		part := full
		if c.Sliding[i] {
			part = sliding
		}
		c.RoPE = append(c.RoPE, part)
	}
	return nil
}

func (m *metadata) scaling(c *Config) (s Scaling, err error) {
	key := m.key("rope.scaling.type")
	kind, ok, err := m.file.String(key)
	if err != nil {
		return s, err
	}
	if !ok {
		kind = "linear"
	}
	factor, ok, err := m.float("rope.scaling.factor")
	if err == nil && !ok {
		factor, ok, err = m.float("rope.scale_linear") // its former name
	}
	if err != nil {
		return s, err
	}
	if !ok {
		factor = 1
	}
	switch {
	case kind == "none", kind == "linear" && factor == 1:
		return Scaling{Factor: 1}, nil
	case kind == "linear":
		return Scaling{Kind: ScalingLinear, Factor: factor}, nil
	case kind != "yarn":
		return s, fmt.Errorf("%s is %q: known are none, linear and yarn", key, kind)
	}
	if factor < 1 {
		return s, fmt.Errorf("%s is %g: it must be at least 1 for yarn", m.key("rope.scaling.factor"), factor)
	}
	s = Scaling{Kind: ScalingYaRN, Factor: factor, Truncate: true, BetaFast: 32, BetaSlow: 1, AttentionFactor: yarnScale(factor, 1)}
	if s.OriginalPositions, err = m.size("rope.scaling.original_context_length", maxPositions, func() (int, error) { return c.Positions, nil }); err != nil {
		return s, err
	}
	for name, into := range map[string]*float64{"rope.scaling.yarn_beta_fast": &s.BetaFast, "rope.scaling.yarn_beta_slow": &s.BetaSlow} {
		v, ok, err := m.float(name)
		if err != nil {
			return s, err
		}
		if ok {
			*into = v
		}
	}
	if s.BetaFast <= s.BetaSlow {
		return s, fmt.Errorf("%s %g is not above that of slow ones, %g", m.key("rope.scaling.yarn_beta_fast"), s.BetaFast, s.BetaSlow)
	}
	attention, ok, err := m.float("rope.scaling.attn_factor")
	if ok {
		s.AttentionFactor *= attention
	}
	return s, err
}
