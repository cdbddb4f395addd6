package air

// A Kernel is what a module's `!air.kernel` metadata says about one entry point.
type Kernel struct {
	Name     string
	Function *Function
	Args     []KernelArg
	// MaxThreads is the declared max_total_threads_per_threadgroup, 0 if none.
	MaxThreads int
	// ThreadgroupBytes is the memory of the module's static threadgroup variables.
	ThreadgroupBytes uint64
	// Constants are the function constants of the module.
	Constants []FunctionConstant
}

// ArgKind says what a kernel argument is.
type ArgKind uint8

// The kinds of kernel arguments.
const (
	// BufferArg is device or constant memory bound at Index.
	BufferArg ArgKind = iota
	// ThreadgroupArg is threadgroup memory whose length is set at Index.
	ThreadgroupArg
	// BuiltinArg is a position or size that the hardware supplies; KernelArg.Builtin names it.
	BuiltinArg
	// TextureArg and SamplerArg are reflected and not executed.
	TextureArg
	SamplerArg
	// OtherArg is anything else; KernelArg.Builtin holds its tag.
	OtherArg
)

// A KernelArg is one parameter of a kernel.
type KernelArg struct {
	Kind ArgKind
	// Param is the parameter's position in the LLVM function.
	Param int
	// Name is the parameter's name in the source.
	Name string
	// TypeName is the pointee or value type as written in the source, such as "float" or "uint3".
	TypeName string
	// Index is the buffer, threadgroup, texture or sampler slot.
	Index int
	// Space is the address space: 1 device, 2 constant, 3 threadgroup.
	Space int
	// Writable is set for air.read_write and air.write.
	Writable bool
	// Size and Align are those of the pointee, 0 when unknown (void pointers); BufferSize is the size of a reference's target.
	Size, Align, BufferSize int
	// Builtin is the built-in's tag without "air.", such as "thread_position_in_grid".
	Builtin string
	// Unused is set when the kernel does not use the argument.
	Unused bool
	// Constant names the function constant that must be true for the argument to exist, empty if none.
	Constant string
}

// A FunctionConstant is one function constant of a module.
type FunctionConstant struct {
	Name     string
	TypeName string
	Index    int
	Active   bool
	Global   *Global
}
