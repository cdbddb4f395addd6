package objc

// Library is a dynamic library that [CallC] finds functions in.
type Library int

const (
	System    Library = iota // libobjc, libdispatch and the C library
	Metal                    // Metal.framework
	Libraries                // how many there are
)

// Available says why there is no Objective-C runtime here, or nil when there is one. Go objects need none.
func Available() error { return backendAvailable() }

// CallC calls a C function of integer words, and gives its result: for the few functions that are no methods.
func CallC(l Library, name string, words ...uintptr) (uintptr, error) {
	if err := Available(); err != nil {
		return 0, err
	}
	return backendCallC(l, name, words)
}

// Constant is an object that a library exports as a constant, such as the name of an error domain. It is borrowed for good.
func Constant(l Library, name string) (ID, error) {
	if err := Available(); err != nil {
		return 0, err
	}
	return backendConstant(l, name)
}
