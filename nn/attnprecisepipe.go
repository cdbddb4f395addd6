package nn

import (
	"context"
	"strconv"
	"strings"

	"github.com/ingot-metal/ingot/runtime"
)

// PreciseForm is the form of V in [FlashAttnPrecise].
type PreciseForm uint8

// The forms of V.
const (
	PreciseF32 PreciseForm = iota + 1
	PreciseF16
	PreciseCodes
)

// String is the form as kernel names have it.
func (f PreciseForm) String() string {
	switch f {
	case PreciseF32:
		return "v32"
	case PreciseF16:
		return "v16"
	case PreciseCodes:
		return "vcodes"
	}
	return "PreciseForm(" + strconv.Itoa(int(f)) + ")"
}

// PrecisePipeline names one of the pipelines that [FlashAttnPrecise] launches: a kernel and its function constants.
type PrecisePipeline struct {
	HeadDim int
	V       PreciseForm
	AlignQ  bool // constant 200: the query rows fill whole tiles
	AlignK  bool // 201: the keys do
	Mask    bool // 300
	Causal  bool // 301
	Blocks  bool // 303
	Window  bool // 310
	Softcap bool // 311
	Sinks   bool // 312
}

// preciseKernels are the kernels' names by head dimension and form.
var preciseKernels = func() map[PrecisePipeline]string {
	names := map[PrecisePipeline]string{}
	for _, d := range []int{64, 128, 256, 512} {
		for _, f := range []PreciseForm{PreciseF32, PreciseF16, PreciseCodes} {
			names[PrecisePipeline{HeadDim: d, V: f}] = "flash_attn_prefill_precise_d" + strconv.Itoa(d) + "_" + f.String()
		}
	}
	return names
}()

// Kernel is the kernel's name, empty for a head dimension or a form that there is none for.
func (p PrecisePipeline) Kernel() string {
	return preciseKernels[PrecisePipeline{HeadDim: p.HeadDim, V: p.V}]
}

// preciseConstant is a function constant of a pipeline. Those that are not always in the label are there only where they hold.
type preciseConstant struct {
	index         int
	value, always bool
}

// list is the function constants by index.
func (p PrecisePipeline) list() [8]preciseConstant {
	return [8]preciseConstant{{200, p.AlignQ, true}, {201, p.AlignK, true}, {300, p.Mask, true}, {301, p.Causal, true},
		{303, p.Blocks, true}, {310, p.Window, p.HeadDim < 512}, {311, p.Softcap, false}, {312, p.Sinks, false}}
}

// has says whether the kernel has a function constant.
func (p PrecisePipeline) has(c preciseConstant) bool {
	return p.HeadDim < 512 || c.index != 300 && c.index != 303
}

// constants sets the function constants that the kernel has.
func (p PrecisePipeline) constants(l *runtime.Launch) {
	for _, c := range p.list() {
		if p.has(c) {
			l.ConstantBool(c.index, c.value)
		}
	}
}

// Label names the pipeline: the kernel and its function constants, as in "flash_attn_prefill_precise_d256_v16|200:b1|201:b0|…".
func (p PrecisePipeline) Label() string {
	var b strings.Builder
	b.WriteString(p.Kernel())
	for _, c := range p.list() {
		if !c.always && !c.value {
			continue
		}
		b.WriteString("|" + strconv.Itoa(c.index) + ":b")
		b.WriteString(strconv.Itoa(int(flagOf(c.value))))
	}
	return b.String()
}

// PrewarmFlashAttnPrecise makes the pipelines that calls of [FlashAttnPrecise] launch which differ in the numbers of rows and keys only,
// whole tiles of them or not: four for each pipeline given, whose AlignQ and AlignK do not count. It returns the labels of all, in the
// order they were asked for. If one cannot be made, or is none that a call launches, it returns the error and no labels.
//
// Errors: ErrShape, ErrLimit for a device without simdgroup matrices; those of [runtime.Runtime.PrewarmSpecialized].
func PrewarmFlashAttnPrecise(ctx context.Context, rt *runtime.Runtime, pipelines ...PrecisePipeline) ([]string, error) {
	c := startOn("nn.PrewarmFlashAttnPrecise", rt)
	c.needsMatrices()
	var labels []string
	var all []runtime.Specialization
	for i, p := range pipelines {
		if c.err == nil && p.Kernel() == "" {
			c.refuse("pipelines", strconv.Itoa(i)+": head dimension "+strconv.Itoa(p.HeadDim)+", "+p.V.String(), "64, 128, 256 or 512; v32, v16 or vcodes", runtime.ErrShape)
		}
		if c.err == nil && (p.Mask && (p.HeadDim == 512 || p.Causal || p.Window) || p.Blocks && !p.Mask) {
			c.refuse("pipelines", strconv.Itoa(i)+": "+p.Label(), "what a call launches: a Mask without HeadDim 512, Causal and Window, Blocks with a Mask", runtime.ErrShape)
		}
		if c.err != nil {
			return nil, c.result()
		}
		for _, align := range [4][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			p.AlignQ, p.AlignK = align[0], align[1]
			s := runtime.Specialization{Kernel: p.Kernel()}
			for _, c := range p.list() {
				if p.has(c) {
					s.Constants = append(s.Constants, runtime.ConstantBool(c.index, c.value))
				}
			}
			labels, all = append(labels, p.Label()), append(all, s)
		}
	}
	if c.err != nil { // without pipelines
		return nil, c.result()
	}
	if err := rt.PrewarmSpecialized(ctx, all...); err != nil {
		return nil, err
	}
	return labels, nil
}
