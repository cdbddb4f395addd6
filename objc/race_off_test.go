//go:build !race

package objc

const raceEnabled = false
