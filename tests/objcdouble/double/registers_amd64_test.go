//go:build linux && objcdouble

package double

const integers = 6

var registers = map[string]int{"rdi": 0, "rsi": 1, "rdx": 2, "rcx": 3, "r8": 4, "r9": 5}

// selectorRegister is where the selector is; one further when the result is returned in memory.
func selectorRegister(inMemory bool) int {
	if inMemory {
		return 2
	}
	return 1
}
