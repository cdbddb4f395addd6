package runtime

// What stands in for the device until the layers below are there.

type buffer struct{}
type platformConfig struct{}
type pipelineState struct{ info kernelInfo }

var errNoDevice = &Error{Func: "Open", Have: "no device layer", Err: ErrDevice}

// Open opens the best device of the system.
func Open(opts ...Option) (*Runtime, error) { return nil, errNoDevice }

func (rt *Runtime) allocate(fn string, n int, zero bool) (*allocation, error) {
	return nil, errNoDevice
}
func (rt *Runtime) recycle(a *allocation)                      {}
func (rt *Runtime) await(fn string, seq uint64) error          { return nil }
func (rt *Runtime) passed(seq uint64) bool                     { return true }
func (rt *Runtime) pipeline(l *Launch) (*pipelineState, error) { return nil, errNoDevice }

// Run encodes, commits and waits.
func (rt *Runtime) Run(encode func(p *Pass) error) error { return errNoDevice }

// Submit encodes and commits without waiting.
func (rt *Runtime) Submit(encode func(p *Pass) error) (Submission, error) {
	return Submission{}, errNoDevice
}

// Record makes a program of what encode encodes.
func (rt *Runtime) Record(encode func(p *Pass) error) (*Program, error) { return nil, errNoDevice }

// Close waits for pending work and releases everything.
func (rt *Runtime) Close() error { return nil }

// Reopen closes the runtime and opens a new one with the same options.
func (rt *Runtime) Reopen() (*Runtime, error) { return nil, errNoDevice }

// SelfTest runs known answers per kernel family on the device at hand.
func (rt *Runtime) SelfTest() error { return errNoDevice }

// Origin is where a kernel's code came from.
type Origin uint8

// Where a kernel's code comes from.
const (
	OriginNone Origin = iota
	OriginEmbedded
	OriginUser
	OriginSource
)

// LibraryOrigin is where the library came from.
func (rt *Runtime) LibraryOrigin() Origin { return OriginNone }

// KernelOrigin is where one kernel's code came from.
func (rt *Runtime) KernelOrigin(name string) Origin { return OriginNone }

// DeviceInfo is what the device reports.
type DeviceInfo struct {
	Name                 string
	MaxThreads           Size
	MaxThreadgroupMemory int
	MaxBufferBytes       int
	Indirect             bool
	BFloat               bool
}

// Device describes the device.
func (rt *Runtime) Device() DeviceInfo { return DeviceInfo{} }

// KernelLimits are those of one kernel's pipeline.
type KernelLimits struct {
	MaxThreads            int
	ExecutionWidth        int
	StaticThreadgroupByte int
}

// Program is recorded work.
type Program struct{}

// Replay submits the program's work.
func (prog *Program) Replay() (Submission, error) { return Submission{}, errNoDevice }

// Release gives the program back.
func (prog *Program) Release() error { return nil }

// Indirect says whether replays execute an indirect command buffer, and if not, why not.
func (prog *Program) Indirect() (bool, string) { return false, "" }
