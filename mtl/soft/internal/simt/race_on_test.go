//go:build race

package simt

// raceDetector: under the race detector sync.Pool drops things at random, so allocations cannot be counted.
const raceDetector = true
