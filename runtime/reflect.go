package runtime

import "github.com/ingot-metal/ingot/mtl"

// reflect takes from Metal's reflection what launches are checked against. It is preferred to that of the library's file: it
// is right for whatever was compiled, and after function constants have been applied.
func reflect(name string, state mtl.ComputePipelineState, r mtl.ComputePipelineReflection) kernelInfo {
	k := newKernelInfo(name, state)
	bindings := r.Bindings()
	for i := range bindings.Len() {
		b := mtl.BindingOf(bindings.At(i).ID())
		index := b.Index()
		if index >= MaxBuffers {
			continue
		}
		switch b.Type() {
		case mtl.BindingTypeBuffer:
			k.slot(int(index), reflectBuffer(mtl.BufferBindingOf(b.ID())))
		case mtl.BindingTypeThreadgroupMemory:
			if b.IsUsed() {
				k.groups |= 1 << index
			}
		}
	}
	return k
}

// newKernelInfo is what the pipeline itself says.
func newKernelInfo(name string, state mtl.ComputePipelineState) kernelInfo {
	return kernelInfo{name: name, maxThreads: int(state.MaxTotalThreadsPerThreadgroup()), staticTG: int(state.StaticThreadgroupMemoryLength())}
}

// slot adds a buffer argument.
func (k *kernelInfo) slot(index int, s slotInfo) {
	k.declared |= 1 << index
	if s.used {
		k.needed |= 1 << index
	}
	k.slots[index] = s
}

func reflectBuffer(b mtl.BufferBinding) slotInfo {
	access := b.Access()
	s := slotInfo{
		name:     b.Name(),
		writable: access != mtl.BindingAccessReadOnly,
		used:     b.IsUsed(),
		size:     int(b.BufferDataSize()),
		align:    int(b.BufferAlignment()),
	}
	if !s.writable {
		switch b.BufferDataType() {
		case mtl.DataTypeFloat:
			s.scalar = kindFloat32
		case mtl.DataTypeInt:
			s.scalar = kindInt32
		case mtl.DataTypeUInt:
			s.scalar = kindUint32
		}
	}
	return s
}
