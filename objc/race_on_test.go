//go:build race

package objc

const raceEnabled = true
