package metallib

import (
	_ "embed" // the default library
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// The library, the description beside it and the source are made from the shaders:
//
//go:generate go run ../cmd/buildmetallib -route clang -o default.metallib -info default.json -source default.metal -I ../shaders ../shaders

//go:embed default.metallib
var defaultLibrary string

//go:embed default.json
var defaultInfo []byte

//go:embed default.metal
var defaultSource string

// Default is the library of Ingot's own kernels, compiled from the shaders of this repository. Each call gives a copy.
func Default() []byte { return []byte(defaultLibrary) }

// Source is the source of the default library as one string, for devices that are to compile it themselves. The language
// version to ask for is that of [DefaultInfo].
func Source() string { return defaultSource }

// Info describes a library that buildmetallib made.
type Info struct {
	// SHA256 is the hash of the library, SourceSHA256 that of the source it was compiled from, flattened.
	SHA256       string `json:"sha256"`
	SourceSHA256 string `json:"source_sha256"`
	// MetalVersion is the language version of the source, AIRVersion that of the code.
	MetalVersion string `json:"metal_version"`
	AIRVersion   string `json:"air_version"`
	// MinMacOS is the least version of macOS that takes the library.
	MinMacOS string `json:"min_macos"`
	// Route is how it was compiled: "clang" or "xcrun".
	Route string `json:"route"`
	// Compiler names the programs that compiled it, by role, with their exact versions.
	Compiler map[string]string `json:"compiler"`
	// Kernels are the names of its functions, sorted.
	Kernels []string `json:"kernels"`
}

var parseDefaultInfo = sync.OnceValues(func() (Info, error) {
	var info Info
	err := json.Unmarshal(defaultInfo, &info)
	return info, err
})

// DefaultInfo describes the default library.
func DefaultInfo() Info {
	info, err := parseDefaultInfo()
	if err != nil {
		// The file is embedded and checked by a test.
		panic(fmt.Sprintf("metallib: default.json: %v", err))
	}
	compiler := map[string]string{}
	for k, v := range info.Compiler {
		compiler[k] = v
	}
	info.Compiler = compiler
	info.Kernels = slices.Clone(info.Kernels)
	return info
}
