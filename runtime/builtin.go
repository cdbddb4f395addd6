package runtime

import "github.com/ingot-metal/ingot/metallib"

// builtin is the library that this module brings: compiled, and as source.
type builtin struct {
	data   func() []byte
	source func() string
}

func embedded() builtin { return builtin{metallib.Default, metallib.Source} }
