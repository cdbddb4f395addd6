package runtime

import (
	"fmt"
	"maps"
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

	sets   sync.Map   // of *KernelSet: the threads that all of its kernels take
	mu     sync.Mutex // guards adding to it, and making
	making map[variant]*making
}

// variant is a kernel with its constants.
type variant struct {
	name   string
	n      int
	consts [MaxConstants]constant
}

// making is a pipeline that somebody makes, and others may wait for. Several are made at a time.
type making struct {
	done chan struct{}
	pl   *pipeline
	err  error
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
	if pl := rt.pipes.find(l.name, consts); pl != nil {
		return pl, nil
	}
	return rt.addPipeline(l.name, consts)
}

func (rt *Runtime) addPipeline(name string, consts []constant) (*pipeline, error) {
	p, key := &rt.pipes, variant{name: name, n: len(consts)}
	copy(key.consts[:], consts)
	p.mu.Lock()
	if pl := p.find(name, consts); pl != nil {
		p.mu.Unlock()
		return pl, nil // somebody else made it
	}
	if m := p.making[key]; m != nil {
		p.mu.Unlock()
		<-m.done
		return m.pl, m.err
	}
	if rt.closed.Load() {
		p.mu.Unlock()
		return nil, &Error{Func: name, Err: ErrClosed}
	}
	m := &making{done: make(chan struct{}), err: &Error{Func: name, Err: ErrMisuse}}
	if p.making == nil {
		p.making = map[variant]*making{}
	}
	p.making[key] = m
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		if m.err == nil {
			p.add(name, m.pl)
			rt.stats.pipelines.Add(1)
		}
		delete(p.making, key)
		p.mu.Unlock()
		close(m.done)
	}()
	span := rt.traceHost()
	if m.pl, m.err = rt.makePipeline(name, slices.Clone(consts)); m.err == nil {
		span.end(laneCompile, name, 0, 0)
		rt.cfg.log.Debug("pipeline made", "kernel", label(name, consts), "library", m.pl.origin.String(), "indirect", m.pl.indirect)
	}
	return m.pl, m.err
}

// find is the pipeline of a kernel with those constants, or nil.
func (p *pipelines) find(name string, consts []constant) *pipeline {
	if all := p.byName.Load(); all != nil {
		if k := (*all)[name]; k != nil {
			return k.find(consts)
		}
	}
	return nil
}

// add puts a pipeline into the cache. The lock is held.
func (p *pipelines) add(name string, pl *pipeline) {
	all := map[string]*kernel{}
	if old := p.byName.Load(); old != nil {
		if k := (*old)[name]; k != nil {
			list := append(slices.Clone(*k.variants.Load()), pl)
			k.variants.Store(&list)
			return
		}
		maps.Copy(all, *old)
	}
	k := new(kernel)
	k.variants.Store(&[]*pipeline{pl})
	all[name] = k
	p.byName.Store(&all)
}

// makePipeline tries the binary library and, where it is refused for this kernel, the source; each with the use in
// indirect command buffers, if the device has them, and without.
func (rt *Runtime) makePipeline(name string, consts []constant) (*pipeline, error) {
	defer objc.NewPool().Drain()
	lib := rt.libraryOf(name)
	pl, err := rt.pipelineFrom(lib, name, consts)
	if err == nil || lib.origin != OriginEmbedded || isNoKernel(err) {
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
		if pl.info, err = lib.file.reflect(name, state); err != nil {
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
