package soft

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
	"github.com/ingot-metal/ingot/objc"
)

// A library is MTLLibrary: the kernels of a metallib, each read when it is asked for.
type library struct {
	object
	functions []*libraryFunction
	byName    map[string]*libraryFunction
}

// A libraryFunction is one kernel as it lies in the library.
type libraryFunction struct {
	name    string
	bitcode []byte

	mu       sync.Mutex
	loaded   bool
	err      error
	module   *air.Module
	kernel   *air.Kernel
	optional map[string]bool // constants that the kernel asks about before it uses them
	programs map[string]*simt.Program
}

// Dealloc lets go of what the library holds.
func (l *library) Dealloc() { l.dev.forget() }

func (l *library) find(name string) *libraryFunction { return l.byName[name] }

// newLibrary makes a library of the bytes of a metallib, which it keeps.
func (d *device) newLibrary(data []byte) (*library, *refusal) {
	if text := d.opts.RefuseLibraries; text != "" {
		return nil, refuse(mtl.LibraryErrorInternal, "%s", text)
	}
	return d.loadLibrary(data)
}

// loadLibrary reads a metallib.
func (d *device) loadLibrary(data []byte) (*library, *refusal) {
	if !bytes.HasPrefix(data, []byte("MTLB")) {
		return nil, refuse(mtl.LibraryErrorInternal, "Invalid library file: it does not begin with MTLB")
	}
	file, err := metallib.Read(data)
	if err != nil {
		return nil, refuse(mtl.LibraryErrorInternal, "Invalid library file: %v", err)
	}
	if r := d.admits(file); r != nil {
		return nil, r
	}
	l := &library{byName: map[string]*libraryFunction{}}
	for i := range file.Functions {
		f := &file.Functions[i]
		if f.Type != metallib.Kernel {
			continue
		}
		lf := &libraryFunction{name: f.Name, bitcode: f.Bitcode}
		l.functions = append(l.functions, lf)
		if l.byName[f.Name] == nil {
			l.byName[f.Name] = lf
		}
	}
	l.dev = d
	l.id = d.adopt(d.classes.library, l)
	return l, nil
}

// levels are the Metal language versions and AIR versions that systems take.
var levels = []struct{ os, metal, air Version }{
	{Version{11, 0}, Version{2, 3}, Version{2, 3}},
	{Version{12, 0}, Version{2, 4}, Version{2, 4}},
	{Version{13, 0}, Version{3, 0}, Version{2, 5}},
	{Version{14, 0}, Version{3, 1}, Version{2, 6}},
	{Version{15, 0}, Version{3, 2}, Version{2, 7}},
	{Version{26, 0}, Version{4, 0}, Version{2, 8}},
}

// level is what the device's system takes at most.
func (d *device) level() (metal, airVersion Version) {
	for _, l := range levels {
		if d.opts.OSVersion.less(l.os) {
			break
		}
		metal, airVersion = l.metal, l.air
	}
	return metal, airVersion
}

func versionOf(v metallib.Version) Version { return Version{int(v.Major), int(v.Minor)} }

// admits refuses what is newer than the device's system, as Metal does. Libraries for other platforms than macOS are taken:
// their kernels are no different.
func (d *device) admits(l *metallib.Library) *refusal {
	if l.Type != metallib.Executable {
		return refuse(mtl.LibraryErrorUnsupported, "This library is a %v; the software device takes executables", l.Type)
	}
	if l.Platform == metallib.MacOS && d.opts.OSVersion.less(versionOf(l.OS)) {
		return refuse(mtl.LibraryErrorUnsupported, "This library was built for macOS %v, which is newer than this OS (%v)", l.OS, d.opts.OSVersion)
	}
	metal, airVersion := d.level()
	for i := range l.Functions {
		switch f := &l.Functions[i]; {
		case metal.less(versionOf(f.Metal)):
			return refuse(mtl.LibraryErrorUnsupported, "This library is using language version %v which is not supported on this OS (%v)", f.Metal, d.opts.OSVersion)
		case airVersion.less(versionOf(f.AIR)):
			return refuse(mtl.LibraryErrorUnsupported, "This library is using AIR version %v which is not supported on this OS (%v)", f.AIR, d.opts.OSVersion)
		}
	}
	return nil
}

// load reads the kernel.
func (f *libraryFunction) load() (*air.Kernel, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loadLocked()
}

func (f *libraryFunction) loadLocked() (*air.Kernel, error) {
	if f.loaded {
		return f.kernel, f.err
	}
	f.loaded = true
	f.module, f.err = air.Read(f.bitcode)
	if f.err != nil {
		return nil, f.err
	}
	kernels, err := f.module.Kernels()
	if err != nil {
		f.err = err
		return nil, err
	}
	for _, k := range kernels {
		if k.Name == f.name {
			f.kernel = k
		}
	}
	if f.kernel == nil {
		f.err = fmt.Errorf("its module has no kernel of that name")
		return nil, f.err
	}
	f.optional = optionalConstants(f.module, f.kernel)
	return f.kernel, nil
}

// optionalConstants are the function constants whose definedness the module asks for.
func optionalConstants(m *air.Module, k *air.Kernel) map[string]bool {
	optional := map[string]bool{}
	for _, fn := range m.Functions {
		for _, b := range fn.Blocks {
			for _, in := range b.Instrs {
				callee := in.CalleeFunction()
				if in.Op != air.OpCall || callee == nil || callee.Name != "air.is_function_constant_defined" || len(in.Args) == 0 {
					continue
				}
				g := globalOf(in.Args[0])
				for _, fc := range k.Constants {
					if g != nil && fc.Global == g {
						optional[fc.Name] = true
					}
				}
			}
		}
	}
	return optional
}

// globalOf is the global that a pointer operand comes from.
func globalOf(v air.Value) *air.Global {
	for {
		switch x := v.(type) {
		case *air.Global:
			return x
		case *air.Const:
			if x.Kind != air.ExprConst || len(x.Elems) == 0 {
				return nil
			}
			v = x.Elems[0]
		case *air.Instr:
			if (x.Op != air.OpBitCast && x.Op != air.OpGetElementPtr) || len(x.Args) == 0 {
				return nil
			}
			v = x.Args[0]
		default:
			return nil
		}
	}
}

// compile makes the program of the kernel with constants, or gives the one that was made before.
func (f *libraryFunction) compile(values *simt.Options) (*simt.Program, *air.Kernel, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, err := f.loadLocked()
	if err != nil {
		return nil, nil, err
	}
	var opt simt.Options
	if values != nil {
		opt = *values
	}
	key := constantsKey(opt)
	if p := f.programs[key]; p != nil {
		return p, k, nil
	}
	p, err := simt.Compile(f.module, f.name, opt)
	if err != nil {
		return nil, nil, err
	}
	if f.programs == nil {
		f.programs = map[string]*simt.Program{}
	}
	f.programs[key] = p
	return p, k, nil
}

// constantsKey tells sets of constants apart.
func constantsKey(o simt.Options) string {
	var indices []int
	for i := range o.Constants {
		indices = append(indices, i)
	}
	slices.Sort(indices)
	var key []byte
	for _, i := range indices {
		key = binary.LittleEndian.AppendUint64(key, uint64(i))
		key = append(key, byte(o.Constants[i].Kind))
		key = binary.LittleEndian.AppendUint64(key, o.Constants[i].Bits)
	}
	return string(key)
}

func libraryMethods() methods[*library] {
	type lib = *library
	m := methods[lib]{
		"type":        func(l lib, c *objc.Call) { c.Return(uintptr(mtl.LibraryTypeExecutable)) },
		"installName": func(l lib, c *objc.Call) { c.Return(0) },
		"functionNames": func(l lib, c *objc.Call) {
			var names []objc.ID
			for _, f := range l.functions {
				names = append(names, objc.NSString(f.name))
			}
			list := objc.NSArray(names...)
			for _, id := range names {
				id.Release()
			}
			c.ReturnBorrowed(list.Autorelease())
		},
		"newFunctionWithName:": func(l lib, c *objc.Call) {
			f, r := l.newFunction(objc.GoString(c.Object(0)), 0, "")
			if r != nil {
				l.dev.refuse("newFunctionWithName:", fmt.Errorf("%s", r.text))
				c.Return(0)
				return
			}
			c.ReturnNew(f.id)
		},
		"newFunctionWithName:constantValues:error:": func(l lib, c *objc.Call) {
			f, r := l.newFunction(objc.GoString(c.Object(0)), c.Object(1), "")
			giveFunction(c, f, r, 2)
		},
		"newFunctionWithName:constantValues:completionHandler:": func(l lib, c *objc.Call) {
			name, constants := objc.GoString(c.Object(0)), c.Object(1)
			later(l.dev, objc.Block(c.Word(2)), l.id, constants, func() (objc.ID, *refusal) {
				return functionID(l.newFunction(name, constants, ""))
			})
		},
		"newFunctionWithDescriptor:error:": func(l lib, c *objc.Call) {
			f, r := l.described(c.Object(0))
			giveFunction(c, f, r, 1)
		},
		"newFunctionWithDescriptor:completionHandler:": func(l lib, c *objc.Call) {
			desc := c.Object(0)
			later(l.dev, objc.Block(c.Word(1)), l.id, desc, func() (objc.ID, *refusal) { return functionID(l.described(desc)) })
		},
	}
	return m.with(labelled[lib]()).with(deviced[lib]())
}

// described makes the function that an MTLFunctionDescriptor asks for.
func (l *library) described(desc objc.ID) (*function, *refusal) {
	if desc == 0 {
		return nil, refuse(mtl.LibraryErrorInternal, "there is no function descriptor")
	}
	defer objc.NewPool().Drain()
	return l.newFunction(readString(desc, "name"), readID(desc, "constantValues"), readString(desc, "specializedName"))
}

func giveFunction(c *objc.Call, f *function, r *refusal, i int) {
	if r != nil {
		give(c, 0, r, i)
		return
	}
	give(c, f.id, nil, i)
}

func functionID(f *function, r *refusal) (objc.ID, *refusal) {
	if r != nil {
		return 0, r
	}
	return f.id, nil
}

// later makes an object on another goroutine and hands it, or an NSError, to a block. What it is made from stays until then.
func later(d *device, block objc.Block, owner, from objc.ID, work func() (objc.ID, *refusal)) {
	d.background(block, owner, from, func() {
		id, r := work()
		var err objc.ID
		if r != nil {
			err = r.nsError()
		}
		d.invoke(block, uintptr(id), uintptr(err))
		id.Release()
	})
}

// laterPipeline does the same for a pipeline and its reflection.
func (d *device) laterPipeline(block objc.Block, from objc.ID, work func() (*pipeline, *refusal)) {
	d.background(block, d.id, from, func() {
		p, r := work()
		if r != nil {
			d.invoke(block, 0, 0, uintptr(r.nsError()))
			return
		}
		d.invoke(block, uintptr(p.id), uintptr(p.reflection()), 0)
		p.id.Release()
	})
}

// background runs f on another goroutine, and holds some objects until it is done.
func (d *device) background(block objc.Block, owner, from objc.ID, f func()) {
	if block == 0 {
		d.misuse("a completion handler is nil")
		return
	}
	block.Retain()
	from.Retain()
	owner.Retain()
	d.goroutines.Add(1)
	go func() {
		defer d.goroutines.Add(-1)
		pool := objc.NewPool()
		f()
		pool.Drain()
		block.Release()
		from.Release()
		owner.Release()
	}()
}

func (d *device) invoke(block objc.Block, args ...uintptr) {
	if err := objc.InvokeBlock(block, args...); err != nil {
		d.misuse("a completion handler: %v", err)
	}
}

func deviceLibraryMethods() methods[*device] {
	type dev = *device
	return methods[dev]{
		"newDefaultLibrary": func(d dev, c *objc.Call) {
			d.refuse("newDefaultLibrary", fmt.Errorf("a Go program has no bundle with a default library"))
			c.Return(0)
		},
		"newLibraryWithFile:error:": func(d dev, c *objc.Call) {
			l, r := d.libraryFile(objc.GoString(c.Object(0)))
			giveLibrary(c, l, r, 1)
		},
		"newLibraryWithData:error:": func(d dev, c *objc.Call) {
			data, ok := objc.DataBytes(c.Object(0))
			if !ok {
				c.Fail(1, libraryDomain, int(mtl.LibraryErrorInternal), "newLibraryWithData: "+describe(c.Object(0))+" is no data for this device")
				return
			}
			l, r := d.newLibrary(data)
			giveLibrary(c, l, r, 1)
		},
		"newLibraryWithSource:options:error:": func(d dev, c *objc.Call) {
			l, r := d.librarySource(objc.GoString(c.Object(0)), c.Object(1))
			giveLibrary(c, l, r, 2)
		},
		"newLibraryWithSource:options:completionHandler:": func(d dev, c *objc.Call) {
			source, options := objc.GoString(c.Object(0)), c.Object(1)
			later(d, objc.Block(c.Word(2)), d.id, options, func() (objc.ID, *refusal) {
				l, r := d.librarySource(source, options)
				if r != nil {
					return 0, r
				}
				return l.id, nil
			})
		},
		"newComputePipelineStateWithFunction:error:": func(d dev, c *objc.Call) {
			p, r := d.newPipeline(pipelineRequest{function: c.Object(0)})
			givePipeline(c, p, r, 0, -1, 1)
		},
		"newComputePipelineStateWithFunction:options:reflection:error:": func(d dev, c *objc.Call) {
			p, r := d.newPipeline(pipelineRequest{function: c.Object(0)})
			givePipeline(c, p, r, mtl.PipelineOption(c.Word(1)), 2, 3)
		},
		"newComputePipelineStateWithDescriptor:options:reflection:error:": func(d dev, c *objc.Call) {
			p, r := d.describedPipeline(c.Object(0))
			givePipeline(c, p, r, mtl.PipelineOption(c.Word(1)), 2, 3)
		},
		"newComputePipelineStateWithFunction:completionHandler:": func(d dev, c *objc.Call) {
			fn := c.Object(0)
			later(d, objc.Block(c.Word(1)), d.id, fn, func() (objc.ID, *refusal) {
				return pipelineID(d.newPipeline(pipelineRequest{function: fn}))
			})
		},
		"newComputePipelineStateWithFunction:options:completionHandler:": func(d dev, c *objc.Call) {
			fn := c.Object(0)
			d.laterPipeline(objc.Block(c.Word(2)), fn, func() (*pipeline, *refusal) { return d.newPipeline(pipelineRequest{function: fn}) })
		},
		"newComputePipelineStateWithDescriptor:options:completionHandler:": func(d dev, c *objc.Call) {
			desc := c.Object(0)
			d.laterPipeline(objc.Block(c.Word(2)), desc, func() (*pipeline, *refusal) { return d.describedPipeline(desc) })
		},
	}
}

func giveLibrary(c *objc.Call, l *library, r *refusal, i int) {
	if r != nil {
		give(c, 0, r, i)
		return
	}
	give(c, l.id, nil, i)
}

// reflects are the options that ask for a reflection.
const reflects = mtl.PipelineOptionBindingInfo | mtl.PipelineOptionBufferTypeInfo

// givePipeline answers with a pipeline, and with its reflection through the pointer in word at, if it is asked for.
func givePipeline(c *objc.Call, p *pipeline, r *refusal, options mtl.PipelineOption, at, i int) {
	if r != nil {
		give(c, 0, r, i)
		return
	}
	if options&reflects != 0 {
		if out := (*objc.ID)(c.Pointer(at)); out != nil {
			*out = p.reflection()
		}
	}
	give(c, p.id, nil, i)
}

func pipelineID(p *pipeline, r *refusal) (objc.ID, *refusal) {
	if r != nil {
		return 0, r
	}
	return p.id, nil
}

// libraryFile reads a metallib from a file.
func (d *device) libraryFile(path string) (*library, *refusal) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, refuse(mtl.LibraryErrorFileNotFound, "library not found: %v", err)
	}
	return d.newLibrary(data)
}

// describedPipeline makes the pipeline that an MTLComputePipelineDescriptor asks for.
func (d *device) describedPipeline(desc objc.ID) (*pipeline, *refusal) {
	if desc == 0 {
		return nil, refuse(mtl.LibraryErrorInternal, "there is no pipeline descriptor")
	}
	defer objc.NewPool().Drain()
	return d.newPipeline(readRequest(desc))
}
