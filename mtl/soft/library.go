package soft

import (
	"bytes"
	"encoding/binary"
	"fmt"
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
func (f *libraryFunction) compile(values *simt.Options, dev *Options) (*simt.Program, *air.Kernel, error) {
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
	opt.Checks, opt.NoLockStep, opt.Counts = dev.Checks, dev.NoLockStep, dev.Counts
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
