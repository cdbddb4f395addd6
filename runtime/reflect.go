package runtime

import "github.com/ingot-metal/ingot/mtl"

// reflect takes from Metal's reflection what launches are checked against. Metal's own is used, not that of the library's
// file: it is right for whatever was compiled, and after function constants have been applied.
func reflect(name string, state mtl.ComputePipelineState, r mtl.ComputePipelineReflection) kernelInfo {
	k := kernelInfo{name: name, maxThreads: int(state.MaxTotalThreadsPerThreadgroup()), staticTG: int(state.StaticThreadgroupMemoryLength())}
	bindings := r.Bindings()
	for i := range bindings.Len() {
		b := mtl.BindingOf(bindings.At(i).ID())
		index := b.Index()
		if index >= MaxBuffers {
			continue
		}
		switch b.Type() {
		case mtl.BindingTypeBuffer:
			k.declared |= 1 << index
			if b.IsUsed() {
				k.needed |= 1 << index
			}
			k.slots[index] = reflectBuffer(mtl.BufferBindingOf(b.ID()))
		case mtl.BindingTypeThreadgroupMemory:
			if b.IsUsed() {
				k.groups |= 1 << index
			}
		}
	}
	return k
}

func reflectBuffer(b mtl.BufferBinding) slotInfo {
	access := b.Access()
	s := slotInfo{
		name:     b.Name(),
		readable: access != mtl.BindingAccessWriteOnly,
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
