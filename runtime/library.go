package runtime

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// Origin is where a library, or the code of one kernel, came from.
type Origin uint8

const (
	// OriginNone: there is none, or the kernel has not been used yet.
	OriginNone Origin = iota
	// OriginEmbedded is the compiled library in this module.
	OriginEmbedded
	// OriginSource is this module's MSL, compiled on the device since it refused the compiled library or that kernel of it.
	OriginSource
	// OriginUser is a library of the user's, given to WithLibrary or Runtime.AddLibrary.
	OriginUser
)

// String is "embedded", "source", "user" or "none".
func (o Origin) String() string {
	return [...]string{"none", "embedded", "source", "user"}[min(o, 3)]
}

// library is a library on the device.
type library struct {
	mtl    mtl.Library
	origin Origin
	file   *libraryFile
}

// libraries are those that kernels are looked for in.
type libraries struct {
	primary library
	names   atomic.Pointer[map[string]library] // what AddLibrary added, by kernel

	mu        sync.Mutex
	added     []library
	source    library // compiled on first need
	sourceErr error
}

// loadLibrary loads the user's library or the embedded one, or, when the device refuses that, compiles its source.
func (rt *Runtime) loadLibrary() error {
	defer objc.NewPool().Drain()
	data, origin := rt.cfg.library, OriginUser
	if !rt.cfg.haveLibrary {
		data, origin = rt.cfg.builtin.data(), OriginEmbedded
	}
	lib, err := rt.newLibrary(data, origin)
	if err == nil {
		rt.libs.primary = lib
		return nil
	}
	refused := &Error{Func: "Open", Arg: origin.String() + " library", Err: deviceError("library", err)}
	if origin == OriginUser {
		return refused
	}
	rt.cfg.log.Warn("the device refuses the compiled library; compiling its source", "reason", err.Error())
	source, serr := rt.sourceLibrary()
	if serr != nil {
		return &Error{Func: "Open", Arg: "library", Have: refused.Error(), Need: "a library that the device takes as binary or as source", Err: serr}
	}
	source.mtl.Retain()
	rt.libs.primary = source
	return nil
}

// newLibrary loads a compiled library.
func (rt *Runtime) newLibrary(data []byte, origin Origin) (library, error) {
	lib, err := rt.dev.NewLibraryWithData(data)
	if err == nil && lib.IsNil() {
		err = &DeviceError{Op: "library", Text: "the device made no library"}
	}
	if err != nil {
		return library{}, err
	}
	lib.SetLabel("ingot " + origin.String())
	return library{lib, origin, &libraryFile{data: func() []byte { return data }}}, nil
}

// AddLibrary adds the kernels of a .metallib to those that there are. It is refused as a whole, with an error over
// [ErrKernel], when one of them has the name of a kernel that is there already: it would hide the other one, or be hidden.
// There is no fallback to source for it. It may be called at any time, from several goroutines. The data must not change
// afterwards.
func (rt *Runtime) AddLibrary(data []byte) error {
	const fn = "Runtime.AddLibrary"
	if len(data) == 0 {
		return &Error{Func: fn, Arg: "data", Have: "no data", Need: "a .metallib", Err: ErrMisuse}
	}
	if err := rt.enter(fn); err != nil {
		return err
	}
	defer rt.leave()
	defer objc.NewPool().Drain()
	lib, err := rt.newLibrary(data, OriginUser)
	if err != nil {
		return &Error{Func: fn, Arg: "data", Err: deviceError("library", err)}
	}
	l := &rt.libs
	l.mu.Lock()
	defer l.mu.Unlock()
	names := map[string]library{}
	if old := l.names.Load(); old != nil {
		maps.Copy(names, *old)
	}
	there := l.primary.mtl.FunctionNames().Strings()
	for _, name := range lib.mtl.FunctionNames().Strings() {
		if _, ok := names[name]; ok || slices.Contains(there, name) {
			lib.mtl.Release()
			return &Error{Func: fn, Arg: "data", Have: fmt.Sprintf("a kernel %q, which there is already", name), Need: "other names", Err: ErrKernel}
		}
		names[name] = lib
	}
	l.added = append(l.added, lib)
	l.names.Store(&names)
	return nil
}

// libraryOf is the library that has a kernel, or else the primary one.
func (rt *Runtime) libraryOf(kernel string) library {
	if names := rt.libs.names.Load(); names != nil {
		if lib, ok := (*names)[kernel]; ok {
			return lib
		}
	}
	return rt.libs.primary
}

// sourceLibrary compiles the embedded sources, once.
func (rt *Runtime) sourceLibrary() (library, error) {
	l := &rt.libs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source.origin == OriginNone && l.sourceErr == nil {
		l.source, l.sourceErr = rt.compile(rt.cfg.builtin.source())
	}
	return l.source, l.sourceErr
}

func (rt *Runtime) compile(text string) (library, error) {
	options, err := mtl.NewCompileOptions(rt.dev)
	if err != nil {
		return library{}, &Error{Func: "library", Err: because(ErrDevice, err)}
	}
	defer options.Release()
	// The default version follows the SDK that the program says it was linked with, which for Go is an old one.
	options.SetLanguageVersion(mtl.LanguageVersion3_1)
	options.SetFastMathEnabled(false)
	if options.RespondsTo("setMathMode:") { // macOS 15
		options.SetMathMode(mtl.MathModeSafe)
	}
	lib, err := rt.dev.NewLibraryWithSource(text, options)
	if err == nil && lib.IsNil() {
		err = &DeviceError{Op: "source", Text: "the device made no library"}
	}
	if err != nil {
		return library{}, &Error{Func: "library", Arg: "source", Err: deviceError("source library", err)}
	}
	lib.SetLabel("ingot source")
	return library{lib, OriginSource, &libraryFile{data: rt.cfg.builtin.data}}, nil
}

func (rt *Runtime) closeLibraries() {
	rt.libs.primary.mtl.Release()
	rt.libs.mu.Lock()
	for _, l := range rt.libs.added {
		l.mtl.Release()
	}
	rt.libs.source.mtl.Release()
	rt.libs.mu.Unlock()
}

// function finds a kernel with its constants applied; the caller releases it.
func (rt *Runtime) function(lib library, name string, consts []constant) (mtl.Function, error) {
	var fn mtl.Function
	var err error
	if len(consts) == 0 {
		fn = lib.mtl.NewFunctionWithName(name)
	} else {
		var values mtl.FunctionConstantValues
		if values, err = mtl.NewFunctionConstantValues(rt.dev); err != nil {
			return fn, &Error{Func: name, Err: because(ErrDevice, err)}
		}
		defer values.Release()
		for _, c := range consts {
			if err := c.set(values); err != nil {
				return fn, &Error{Func: name, Arg: fmt.Sprintf("constant %d", c.index), Err: because(ErrDevice, err)}
			}
		}
		fn, err = lib.mtl.NewFunctionWithNameConstantValues(name, values)
	}
	if err == nil && !fn.IsNil() {
		return fn, nil
	}
	for _, n := range lib.mtl.FunctionNames().Strings() {
		if n == name {
			if err == nil {
				err = &DeviceError{Text: "the library made no function; function constants may be missing"}
			}
			return fn, &Error{Func: name, Err: deviceError("function "+name, err)}
		}
	}
	if name == "" {
		name = `kernel ""`
	}
	return fn, &Error{Func: name, Have: "a kernel that the " + lib.origin.String() + " library does not have", Err: ErrKernel}
}

// set puts the constant into Metal's object.
func (c constant) set(values mtl.FunctionConstantValues) error {
	index := uint(c.index)
	switch c.kind {
	case constantBool:
		values.SetBool(index, c.bits != 0)
	case constantInt32:
		values.SetInt32(index, int32(c.bits))
	case constantUint32:
		values.SetUint32(index, c.bits)
	default:
		return values.Set(index, mtl.DataTypeFloat, []byte{byte(c.bits), byte(c.bits >> 8), byte(c.bits >> 16), byte(c.bits >> 24)})
	}
	return nil
}

// String is the value.
func (c constant) String() string {
	switch c.kind {
	case constantBool:
		return fmt.Sprint(c.bits != 0)
	case constantInt32:
		return fmt.Sprint(int32(c.bits))
	case constantFloat32:
		return fmt.Sprint(math.Float32frombits(c.bits))
	}
	return fmt.Sprint(c.bits)
}

// LibraryOrigin is where the library came from that kernels are looked for in.
func (rt *Runtime) LibraryOrigin() Origin {
	if rt == nil {
		return OriginNone
	}
	return rt.libs.primary.origin
}

// KernelOrigin is where the code of a kernel came from: another place than the library's if the device refused the
// compiled form of this kernel alone. It is OriginNone for a kernel that has not been used, or prepared by [Runtime.Kernel].
func (rt *Runtime) KernelOrigin(name string) Origin {
	if rt == nil {
		return OriginNone
	}
	if all := rt.pipes.byName.Load(); all != nil {
		if k := (*all)[name]; k != nil {
			return (*k.variants.Load())[0].origin
		}
	}
	return OriginNone
}

// KernelInfo is what a device says of a kernel.
type KernelInfo struct {
	Name string
	// MaxThreads is how many threads a threadgroup of this kernel can have on this device.
	MaxThreads int
	// StaticThreadgroupMemory is the threadgroup memory, in bytes, that the kernel has without being given any.
	StaticThreadgroupMemory int
	// Indirect says whether the kernel can be used in indirect command buffers.
	Indirect bool
	Origin   Origin
	Slots    []SlotInfo
}

// SlotInfo is what a device says of one buffer argument of a kernel.
type SlotInfo struct {
	Slot      int
	Name      string
	Writable  bool
	Used      bool
	Size      int // of what the argument points to, in bytes; 0 if not known
	Alignment int
}

// Kernel makes the pipeline of a kernel without function constants, unless it is there, and describes it: to know the
// kernel's limits, or to have it ready before it is needed. It may be called from several goroutines.
func (rt *Runtime) Kernel(name string) (KernelInfo, error) {
	if err := rt.enter("Runtime.Kernel"); err != nil {
		return KernelInfo{}, err
	}
	defer rt.leave()
	pl, err := rt.pipeline(&Launch{name: name})
	if err != nil {
		return KernelInfo{}, err
	}
	info := KernelInfo{Name: name, MaxThreads: pl.info.maxThreads, StaticThreadgroupMemory: pl.info.staticTG, Indirect: pl.indirect, Origin: pl.origin}
	for slot := range pl.info.slots {
		if s := &pl.info.slots[slot]; pl.info.declared&(1<<slot) != 0 {
			info.Slots = append(info.Slots, SlotInfo{slot, s.name, s.writable, s.used, s.size, s.align})
		}
	}
	return info, nil
}
