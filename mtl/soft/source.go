package soft

import (
	"context"
	"errors"
	"time"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/msl"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// compileTimeout bounds how long a source may take to compile.
const compileTimeout = 10 * time.Minute

// librarySource compiles MSL with clang, where it is installed. The settings for fast math make no difference: the device
// computes exactly as the source says.
func (d *device) librarySource(source string, options objc.ID) (*library, *refusal) {
	if text := d.opts.RefuseSource; text != "" {
		return nil, refuse(mtl.LibraryErrorCompileFailure, "%s", text)
	}
	if options != 0 {
		if r := d.admitsOptions(options); r != nil {
			return nil, r
		}
	}
	if err := msl.Available(); err != nil {
		return nil, refuse(mtl.LibraryErrorCompileFailure, "the software device compiles source with clang-22 and opt-22: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), compileTimeout)
	defer cancel()
	lib, err := msl.Compile(ctx, source, msl.Options{})
	var mistakes *msl.Error
	switch {
	case errors.As(err, &mistakes):
		return nil, refuse(mtl.LibraryErrorCompileFailure, "program_source: %v", err)
	case err != nil:
		return nil, refuse(mtl.LibraryErrorInternal, "compilation failed: %v", err)
	}
	data, err := metallib.Write(lib)
	if err != nil {
		return nil, refuse(mtl.LibraryErrorInternal, "compilation failed: %v", err)
	}
	return d.loadLibrary(data)
}

// admitsOptions checks an MTLCompileOptions.
func (d *device) admitsOptions(options objc.ID) *refusal {
	defer objc.NewPool().Drain()
	if readID(options, "preprocessorMacros") != 0 {
		return refuse(mtl.LibraryErrorUnsupported, "preprocessor macros are not supported by the software device: write #define into the source")
	}
	if t := mtl.LibraryType(readUint(options, "libraryType")); t != mtl.LibraryTypeExecutable {
		return refuse(mtl.LibraryErrorUnsupported, "dynamic libraries are not supported by the software device")
	}
	if v := readUint(options, "languageVersion"); v != 0 {
		asked := Version{int(v >> 16), int(v & 0xffff)}
		if known := (Version{3, 1}); known.less(asked) {
			return refuse(mtl.LibraryErrorUnsupported, "language version %v is asked for; the software device compiles up to %v", asked, known)
		}
		if most, _ := d.level(); most.less(asked) {
			return refuse(mtl.LibraryErrorUnsupported, "language version %v is not supported on this OS (%v)", asked, d.opts.OSVersion)
		}
	}
	return nil
}
