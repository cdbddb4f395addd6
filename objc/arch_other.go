//go:build !amd64

package objc

// Architectures other than amd64 and arm64 have no Objective-C runtime, so that theirs does not matter.
var thisArch = arm64
