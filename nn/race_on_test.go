//go:build race

package nn

// raceEnabled: the race detector's instrumentation allocates where the compiler otherwise does not.
const raceEnabled = true
