//go:build linux && objcdouble

package double

const integers = 9

var registers = map[string]int{"x0": 0, "x1": 1, "x2": 2, "x3": 3, "x4": 4, "x5": 5, "x6": 6, "x7": 7, "x8": 8}

// selectorRegister is where the selector is, wherever the result goes.
func selectorRegister(inMemory bool) int { return 1 }
