package runtime

// builtin is the library that this module brings: compiled, and as source.
type builtin struct {
	data   []byte
	source func() string
}
