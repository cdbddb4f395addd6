package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/plainjson"
	"github.com/ingot-metal/ingot/nn/quant"
)

// affineSettings is MLX's description of a quantised checkpoint: of all matrices, and of some by their names without ".weight".
type affineSettings struct {
	all affineSetting
	own map[string]affineSetting
}

type affineSetting struct {
	Bits  int    `json:"bits"`
	Group int    `json:"group_size"`
	Mode  string `json:"mode"`
	off   bool   // the matrix is left alone
}

// affine reads it, nil if there is none. MLX writes it twice, under its own name and under that of Hugging Face, which others write
// their own formats to.
func (raw *folderConfig) affine() (*affineSettings, error) {
	field, values := "quantization", raw.Quantization
	if values == nil {
		field, values = "quantization_config", raw.QuantizationConfig
	}
	if values == nil {
		return nil, nil
	}
	if method, ok := values["quant_method"]; ok {
		return nil, fmt.Errorf("%s: %s.quant_method is %.40s: only MLX's affine format is supported", configFile, field, method)
	}
	a := &affineSettings{own: map[string]affineSetting{}}
	for key, into := range map[string]any{"bits": &a.all.Bits, "group_size": &a.all.Group, "mode": &a.all.Mode} {
		if value, ok := values[key]; ok {
			if err := plainjson.Unmarshal(value, into); err != nil {
				return nil, fmt.Errorf("%s: %s.%s: %w", configFile, field, key, err)
			}
		}
	}
	if err := a.all.check(); err != nil {
		return nil, fmt.Errorf("%s: %s.%w", configFile, field, err)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch key {
		case "bits", "group_size", "mode":
			continue
		}
		own, err := a.setting(values[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %s.%q.%w", configFile, field, key, err)
		}
		a.own[key] = own
	}
	return a, nil
}

// setting reads a matrix's own settings: an object, or whether it is quantised at all.
func (a *affineSettings) setting(value json.RawMessage) (affineSetting, error) {
	switch string(value) {
	case "false":
		return affineSetting{off: true}, nil
	case "true":
		return a.all, nil
	}
	own := a.all
	if err := plainjson.Unmarshal(value, &own); err != nil {
		return own, err
	}
	return own, own.check()
}

func (s affineSetting) check() error {
	switch {
	case s.Bits != 4 && s.Bits != 6 && s.Bits != 8:
		return fmt.Errorf("bits is %d: it must be 4, 6 or 8", s.Bits)
	case s.Group != 32 && s.Group != 64 && s.Group != 128:
		return fmt.Errorf("group_size is %d: it must be 32, 64 or 128", s.Group)
	case s.Mode != "" && s.Mode != "affine":
		return fmt.Errorf("mode is %q: only affine is supported", s.Mode)
	}
	return nil
}

const weightSuffix = ".weight"

// slot checks a matrix of type U32 with its scales and biases; done is false for one that is not quantised.
func (a *affineSettings) slot(src source, s *slot) (done bool, err error) {
	base := strings.TrimSuffix(s.tensor.name, weightSuffix)
	scales, haveScales := src.tensor(base + ".scales")
	biases, haveBiases := src.tensor(base + ".biases")
	switch {
	case s.tensor.kind == "U32":
	case haveScales || haveBiases:
		return false, s.tensor.error("is of type %s, but there are scales or biases for it: needed is U32", s.tensor.kind)
	default:
		return false, nil
	}
	set, ok := a.own[base]
	if !ok {
		set = a.all
	}
	f := quant.AffineFormat{Bits: set.Bits, GroupSize: set.Group, Scale: scaleTypes[scales.kind]}
	switch {
	case set.off:
		return false, s.tensor.error("is of type U32, but %s says that it is not quantised", configFile)
	case !haveScales || !haveBiases:
		return false, s.tensor.error("is of type U32, but there is no tensor %q or no %q", base+".scales", base+".biases")
	case f.Scale == 0:
		return false, scales.error("is of type %s, needed is F32, F16 or BF16", scales.kind)
	case biases.kind != scales.kind:
		return false, biases.error("is of type %s, needed is %s, as that of the scales", biases.kind, scales.kind)
	case s.cols%set.Group != 0:
		return false, s.tensor.error("has %d columns, which groups of %d do not divide", s.cols, set.Group)
	}
	s.affine = &affineSlot{format: f, scales: scales, biases: biases}
	groups := int64(s.cols / set.Group)
	return true, errors.Join(s.tensor.expect(int64(s.rows), int64(s.cols/32*set.Bits)),
		scales.expect(int64(s.rows), groups), biases.expect(int64(s.rows), groups))
}
