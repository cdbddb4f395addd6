package checkpoint

// source is the tensors of a checkpoint by name, in whatever format. Ranges were checked against the files.
type source interface {
	names() []string
	tensor(name string) (tensor, bool)
	read(t tensor) ([]byte, error)
	files() []string // paths
	Close() error
}

// tensor is where a source has a tensor.
type tensor struct {
	name   string
	kind   string  // its type, as the format calls it
	shape  []int64 // rows first
	padded bool    // leading ones do not count
	in     string  // the name of its file
	file   int     // index in files(), -1 if there are none
	offset int64   // in the file
	size   int64   // in bytes
}
