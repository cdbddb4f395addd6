//go:build race

package soft

// racing says that the race detector is on: it makes pools forget, so that allocations cannot be counted.
const racing = true
