//go:build amd64 || arm64

package objc

// libraryPaths are the libraries to open. A program without a window gets no default device unless CoreGraphics is loaded.
func libraryPaths() [Libraries][]string {
	const frameworks = "/System/Library/Frameworks/"
	return [Libraries][]string{
		System: {"/usr/lib/libobjc.A.dylib", "/usr/lib/libSystem.B.dylib", frameworks + "Foundation.framework/Foundation"},
		Metal:  {frameworks + "Metal.framework/Metal", frameworks + "CoreGraphics.framework/CoreGraphics"},
	}
}
