package soft

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
	"github.com/ingot-metal/ingot/objc"
)

// A pipeline is MTLComputePipelineState: a kernel compiled for this machine.
type pipeline struct {
	object
	kernel     string
	index      int // unique among the living pipelines of the device, for bit sets
	holder     atomic.Uint64
	freed      atomic.Bool
	program    *simt.Program
	counts     *kernelCounts // if the device counts
	args       []pipelineArg // buffers and threadgroup memory that exist
	maxThreads int
	static     int
	width      int
	indirect   bool
	multiple   bool // threadgroup sizes are multiples of the execution width
	required   [3]uint32

	// bufferSlots and memorySlots are what a dispatch has to remember.
	bufferSlots, memorySlots []int

	once     sync.Once
	bindings objc.ID // the reflection, made when asked for
}

// A pipelineArg is an argument that a dispatch has to supply.
type pipelineArg struct {
	air.KernelArg
	needed bool // something must be bound
}

// A pipelineRequest is what a pipeline is made from.
type pipelineRequest struct {
	function   objc.ID
	label      string
	indirect   bool
	multiple   bool
	maxThreads uint64
	required   [3]uint64
}

// readRequest reads an MTLComputePipelineDescriptor.
func readRequest(desc objc.ID) pipelineRequest {
	return pipelineRequest{
		function:   readID(desc, "computeFunction"),
		label:      readString(desc, "label"),
		indirect:   readBool(desc, "supportIndirectCommandBuffers"),
		multiple:   readBool(desc, "threadGroupSizeIsMultipleOfThreadExecutionWidth"),
		maxThreads: readUint(desc, "maxTotalThreadsPerThreadgroup"),
		required:   readSize(desc),
	}
}

// newPipeline compiles a kernel.
func (d *device) newPipeline(r pipelineRequest) (*pipeline, *refusal) {
	f := valueOf[*function](uintptr(r.function))
	switch {
	case f == nil || f.dev != d:
		return nil, refuse(mtl.LibraryErrorInternal, "%s is no function of this device", describe(r.function))
	case d.fails(&d.faults.pipeline):
		return nil, refuse(mtl.LibraryErrorInternal, "kernel %q: this pipeline was told to fail", f.source.name)
	case slices.Contains(d.opts.RefuseKernels, f.source.name) || slices.Contains(d.opts.RefuseKernels, "*"):
		return nil, refuse(mtl.LibraryErrorInternal, "kernel %q: the device refuses it", f.source.name)
	case !f.ready:
		return nil, refuse(mtl.LibraryErrorInternal, "kernel %q has function constants and was not specialised with values for them", f.source.name)
	case r.indirect && d.opts.NoIndirectCompute:
		return nil, refuse(mtl.LibraryErrorUnsupported, "kernel %q: this device has no indirect command buffers for compute", f.source.name)
	}
	program, k, err := f.source.compile(f.values, &d.opts)
	if err != nil {
		return nil, refuse(mtl.LibraryErrorCompileFailure, "kernel %q: %v", f.source.name, err)
	}
	p := &pipeline{kernel: f.source.name, program: program, static: program.StaticThreadgroupMemory(), width: d.opts.ExecutionWidth,
		indirect: r.indirect, multiple: r.multiple, maxThreads: min(program.MaxThreadsPerThreadgroup(), d.opts.MaxThreads)}
	if n := d.opts.KernelThreads[p.kernel]; n > 0 {
		p.maxThreads = min(p.maxThreads, n)
	}
	if r.maxThreads > 0 {
		if r.maxThreads > uint64(d.opts.MaxThreads) {
			return nil, refuse(mtl.LibraryErrorInternal, "kernel %q: maxTotalThreadsPerThreadgroup is %d; the device allows %d",
				p.kernel, r.maxThreads, d.opts.MaxThreads)
		}
		p.maxThreads = min(p.maxThreads, int(r.maxThreads))
	}
	for i, n := range r.required {
		if n > uint64(p.maxThreads) {
			return nil, refuse(mtl.LibraryErrorInternal, "kernel %q: requiredThreadsPerThreadgroup is %v; the pipeline allows %d", p.kernel, r.required, p.maxThreads)
		}
		p.required[i] = uint32(n)
	}
	if p.static > d.opts.ThreadgroupMemory {
		return nil, refuse(mtl.LibraryErrorInternal, "kernel %q declares %d bytes of threadgroup memory; the device has %d",
			p.kernel, p.static, d.opts.ThreadgroupMemory)
	}
	for _, a := range k.Args {
		if a.Constant != "" && !f.enabled(a.Constant, k) {
			continue
		}
		switch a.Kind {
		case air.BufferArg:
			if a.Index < 0 || a.Index >= bufferSlots {
				return nil, refuse(mtl.LibraryErrorInternal, "kernel %q: argument %q is at buffer index %d; there are %d", p.kernel, a.Name, a.Index, bufferSlots)
			}
			p.bufferSlots = append(p.bufferSlots, a.Index)
		case air.ThreadgroupArg:
			if a.Index < 0 || a.Index >= threadgroupSlots {
				return nil, refuse(mtl.LibraryErrorInternal, "kernel %q: argument %q is at threadgroup index %d; there are %d", p.kernel, a.Name, a.Index, threadgroupSlots)
			}
			p.memorySlots = append(p.memorySlots, a.Index)
		case air.TextureArg, air.SamplerArg:
			return nil, refuse(mtl.LibraryErrorUnsupported, "kernel %q: argument %q is a %s, which the software device does not have", p.kernel, a.Name, a.TypeName)
		case air.OtherArg:
			return nil, refuse(mtl.LibraryErrorUnsupported, "kernel %q: argument %q (%s) is not supported by the software device", p.kernel, a.Name, a.Builtin)
		default:
			continue
		}
		p.args = append(p.args, pipelineArg{a, !a.Unused})
	}
	p.dev = d
	if d.opts.Counts {
		p.counts = d.countsOf(p.kernel)
	}
	if r.label != "" {
		p.setLabel(r.label)
	}
	p.index = d.pipelineIndices.take()
	p.id = d.adopt(d.classes.pipeline, p)
	return p, nil
}

// enabled tells whether the function constant that an argument depends on is true. Metadata names it, or a global of the
// module that stands for it.
func (f *function) enabled(constant string, k *air.Kernel) bool {
	for _, fc := range k.Constants {
		if fc.Name == constant || fc.Global != nil && fc.Global.Name == constant {
			if f.values == nil {
				return false
			}
			return f.values.Constants[fc.Index].Bits != 0
		}
	}
	return true
}

// Dealloc lets go of the reflection.
func (p *pipeline) Dealloc() {
	p.freed.Store(true)
	p.bindings.Release()
	p.dev.pipelineIndices.give(p.index)
	p.dev.forget()
}

// arg finds the argument at a slot.
func (p *pipeline) arg(kind air.ArgKind, slot int) *pipelineArg {
	for i := range p.args {
		if a := &p.args[i]; a.Kind == kind && a.Index == slot {
			return a
		}
	}
	return nil
}

// argName is how error texts call a slot.
func (p *pipeline) argName(slot int) string {
	if a := p.arg(air.BufferArg, slot); a != nil && a.Name != "" {
		return fmt.Sprintf("slot %d (%s)", slot, a.Name)
	}
	return fmt.Sprintf("slot %d", slot)
}

func pipelineMethods() methods[*pipeline] {
	type pipe = *pipeline
	m := methods[pipe]{
		"label":                         func(p pipe, c *objc.Call) { c.ReturnString(p.label()) },
		"maxTotalThreadsPerThreadgroup": func(p pipe, c *objc.Call) { c.Return(uintptr(p.maxThreads)) },
		"threadExecutionWidth":          func(p pipe, c *objc.Call) { c.Return(uintptr(p.width)) },
		"staticThreadgroupMemoryLength": func(p pipe, c *objc.Call) { c.Return(uintptr(p.static)) },
		"supportIndirectCommandBuffers": func(p pipe, c *objc.Call) { c.ReturnBool(p.indirect) },
		"gpuResourceID":                 func(p pipe, c *objc.Call) { c.Return(uintptr(p.index) + 1) },
		"shaderValidation":              func(p pipe, c *objc.Call) { c.Return(0) },
		"allocatedSize":                 func(p pipe, c *objc.Call) { c.Return(0) },
		"imageblockMemoryLengthForDimensions:": func(p pipe, c *objc.Call) {
			c.Return(0)
		},
		"requiredThreadsPerThreadgroup": func(p pipe, c *objc.Call) {
			c.Return(uintptr(p.required[0]), uintptr(p.required[1]), uintptr(p.required[2]))
		},
		"reflection": func(p pipe, c *objc.Call) { c.ReturnBorrowed(p.reflection()) },
		"newComputePipelineStateWithAdditionalBinaryFunctions:error:": func(p pipe, c *objc.Call) {
			c.Fail(1, libraryDomain, int(mtl.LibraryErrorUnsupported), "additional binary functions are not supported by the software device")
		},
	}
	return m.with(deviced[pipe]())
}
