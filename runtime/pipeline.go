package runtime

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// executionWidth is the width of a simdgroup that kernels are written for. All GPUs that Metal runs on have it but some
// Intel ones.
const executionWidth = 32

// pipeline is a kernel with its function constants, ready to run. Direct and recorded work use the same one.
type pipeline struct {
	info     kernelInfo
	state    mtl.ComputePipelineState
	indirect bool // can be used in indirect command buffers
	origin   Origin
	consts   []constant
}

// pipelines is the cache: by name, then by constants. Looking up takes no lock.
type pipelines struct {
	byName atomic.Pointer[map[string]*kernel]

	mu sync.Mutex // guards making
}

// kernel is what there is of one kernel name.
type kernel struct {
	variants atomic.Pointer[[]*pipeline]
}

// find is the pipeline with those constants, or nil.
func (k *kernel) find(consts []constant) *pipeline {
	for _, pl := range *k.variants.Load() {
		if slices.Equal(pl.consts, consts) {
			return pl
		}
	}
	return nil
}

// pipeline is the pipeline of a launch, made on first use.
func (rt *Runtime) pipeline(l *Launch) (*pipeline, error) {
	consts := l.consts[:l.nconst]
	if all := rt.pipes.byName.Load(); all != nil {
		if k := (*all)[l.name]; k != nil {
			if pl := k.find(consts); pl != nil {
				return pl, nil
			}
		}
	}
	return rt.addPipeline(l.name, consts)
}

func (rt *Runtime) addPipeline(name string, consts []constant) (*pipeline, error) {
	p := &rt.pipes
	p.mu.Lock()
	defer p.mu.Unlock()
	var k *kernel
	if all := p.byName.Load(); all != nil {
		if k = (*all)[name]; k != nil {
			if pl := k.find(consts); pl != nil {
				return pl, nil // somebody else made it
			}
		}
	}
	if rt.closed.Load() {
		return nil, &Error{Func: name, Err: ErrClosed}
	}
	span := rt.traceHost()
	pl, err := rt.makePipeline(name, slices.Clone(consts))
	if err != nil {
		return nil, err
	}
	span.end(laneCompile, name, 0, 0)
	rt.cfg.log.Debug("pipeline made", "kernel", label(name, consts), "library", pl.origin.String(), "indirect", pl.indirect)
	if k == nil {
		k = new(kernel)
		k.variants.Store(&[]*pipeline{pl})
		all := map[string]*kernel{name: k}
		if old := p.byName.Load(); old != nil {
			for n, o := range *old {
				all[n] = o
			}
		}
		p.byName.Store(&all)
	} else {
		list := append(slices.Clone(*k.variants.Load()), pl)
		k.variants.Store(&list)
	}
	rt.stats.pipelines.Add(1)
	return pl, nil
}

// makePipeline tries the binary library and, where it is refused for this kernel, the source; each with the use in
// indirect command buffers, if the device has them, and without.
func (rt *Runtime) makePipeline(name string, consts []constant) (*pipeline, error) {
	defer objc.NewPool().Drain()
	pl, err := rt.pipelineFrom(rt.libs.primary, name, consts)
	if err == nil || rt.libs.primary.origin != OriginEmbedded || isNoKernel(err) {
		return pl, err
	}
	source, serr := rt.sourceLibrary()
	if serr == nil {
		pl, serr = rt.pipelineFrom(source, name, consts)
	}
	if serr != nil {
		return nil, &Error{Func: name, Have: "a kernel that the device refuses as binary: " + err.Error(), Need: "one that it takes as binary or as source", Err: serr}
	}
	rt.cfg.log.Warn("kernel compiled from source, since the device refused the binary", "kernel", name, "reason", err.Error())
	return pl, nil
}

func isNoKernel(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Err == ErrKernel
}

func (rt *Runtime) pipelineFrom(lib library, name string, consts []constant) (*pipeline, error) {
	fn, err := rt.function(lib, name, consts)
	if err != nil {
		return nil, err
	}
	defer fn.Release()
	desc, err := mtl.NewComputePipelineDescriptor(rt.dev)
	if err != nil {
		return nil, &Error{Func: name, Err: because(ErrDevice, err)}
	}
	defer desc.Release()
	desc.SetComputeFunction(fn)
	desc.SetLabel(label(name, consts))
	pl := &pipeline{origin: lib.origin, consts: consts, indirect: rt.info.Indirect}
	if pl.indirect {
		desc.SetSupportIndirectCommandBuffers(true)
	}
	state, reflection, err := rt.dev.NewComputePipelineStateWithDescriptor(desc, mtl.PipelineOptionBindingInfo|mtl.PipelineOptionBufferTypeInfo)
	if err != nil && pl.indirect {
		pl.indirect = false
		desc.SetSupportIndirectCommandBuffers(false)
		var again error
		if state, reflection, again = rt.dev.NewComputePipelineStateWithDescriptor(desc, mtl.PipelineOptionBindingInfo|mtl.PipelineOptionBufferTypeInfo); again == nil {
			rt.cfg.log.Warn("kernel cannot be used in indirect command buffers", "kernel", name, "reason", err.Error())
			err = nil
		}
	}
	if err != nil {
		return nil, &Error{Func: name, Err: deviceError("pipeline "+name, err)}
	}
	defer reflection.Release()
	pl.state = state
	if w := int(state.ThreadExecutionWidth()); w != executionWidth {
		state.Release()
		return nil, &Error{Func: name, Have: fmt.Sprintf("a pipeline of execution width %d", w), Need: fmt.Sprint(executionWidth), Err: ErrLimit}
	}
	if reflection.IsNil() {
		if pl.info, err = rt.reflectFile(name, state); err != nil {
			state.Release()
			return nil, err
		}
		return pl, nil
	}
	pl.info = reflect(name, state, reflection)
	return pl, nil
}

// label names a pipeline for tools: the kernel and its constants.
func label(name string, consts []constant) string {
	if len(consts) == 0 {
		return name
	}
	var b strings.Builder
	b.WriteString(name)
	for _, c := range consts {
		fmt.Fprintf(&b, " %d=%s", c.index, c)
	}
	return b.String()
}

// closePipelines releases all pipelines.
func (rt *Runtime) closePipelines() {
	rt.pipes.mu.Lock()
	defer rt.pipes.mu.Unlock()
	all := rt.pipes.byName.Swap(nil)
	if all == nil {
		return
	}
	for _, k := range *all {
		for _, pl := range *k.variants.Load() {
			pl.state.Release()
		}
	}
}
