package runtime

import (
	"fmt"
	"sync"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
)

// libraryFile is the library as a file, read for what it says of its kernels, which is needed only where Metal's own
// reflection is not given.
type libraryFile struct {
	data func() []byte
	once sync.Once
	lib  *metallib.Library
	err  error
}

// reflect takes from the library's file what launches are checked against.
func (f *libraryFile) reflect(name string, state mtl.ComputePipelineState) (kernelInfo, error) {
	f.once.Do(func() { f.lib, f.err = metallib.Read(f.data()) })
	refuse := func(err error) (kernelInfo, error) {
		return kernelInfo{}, &Error{Func: name, Have: "no reflection from the device, and none from the library's file", Err: because(ErrKernel, err)}
	}
	if f.err != nil {
		return refuse(f.err)
	}
	for i := range f.lib.Functions {
		fn := &f.lib.Functions[i]
		if fn.Name != name {
			continue
		}
		module, err := air.Read(fn.Bitcode)
		if err != nil {
			return refuse(err)
		}
		kernels, err := module.Kernels()
		if err != nil {
			return refuse(err)
		}
		for _, k := range kernels {
			if k.Name == name {
				return kernelFromFile(k, state), nil
			}
		}
	}
	return refuse(fmt.Errorf("the file has no kernel %s", name))
}

func kernelFromFile(k *air.Kernel, state mtl.ComputePipelineState) kernelInfo {
	info := newKernelInfo(k.Name, state)
	for i := range k.Args {
		a := &k.Args[i]
		if a.Index < 0 || a.Index >= MaxBuffers {
			continue
		}
		// Whether an argument under a function constant exists is not known here: it may be bound, and need not be.
		used := !a.Unused && a.Constant == ""
		switch a.Kind {
		case air.BufferArg:
			s := slotInfo{name: a.Name, writable: a.Writable, used: used, size: max(a.Size, a.BufferSize), align: a.Align}
			if !a.Writable {
				s.scalar = map[string]bindKind{"float": kindFloat32, "int": kindInt32, "uint": kindUint32}[a.TypeName]
			}
			info.slot(a.Index, s)
		case air.ThreadgroupArg:
			if used {
				info.groups |= 1 << a.Index
			}
		}
	}
	return info
}
