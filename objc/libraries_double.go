//go:build linux && objcdouble && (amd64 || arm64)

package objc

import "os"

// libraryPaths: the C double stands for all of Apple's libraries.
func libraryPaths() [Libraries][]string {
	path := os.Getenv("OBJCDOUBLE")
	if path == "" {
		path = "(OBJCDOUBLE is not set)"
	}
	return [Libraries][]string{System: {path}, Metal: {path}}
}
