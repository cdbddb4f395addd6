package safetensors

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/bounded"
	"github.com/ingot-metal/ingot/examples/decode/internal/plainjson"
)

// Tensors gives access to the tensors of a checkpoint.
type Tensors struct {
	tensors map[string]located
	files   []fs.File
	names   []string // of the files
}

type located struct {
	Info
	reader io.ReaderAt
}

// The names that Hugging Face gives to a checkpoint's files.
const (
	SingleFile = "model.safetensors"
	IndexFile  = "model.safetensors.index.json"
)

const maxIndexBytes = 64 << 20

// Open opens the checkpoint in dir: the shards that model.safetensors.index.json lists, or else model.safetensors.
// Files must allow reading at an offset, as those of os.DirFS and embed.FS do.
func Open(dir fs.FS) (*Tensors, error) {
	t := &Tensors{tensors: map[string]located{}}
	if err := t.open(dir); err != nil {
		t.Close()
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return t, nil
}

func (t *Tensors) open(dir fs.FS) error {
	index, err := readIndex(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return t.add(dir, SingleFile, nil)
	}
	if err != nil {
		return err
	}
	byFile := map[string][]string{}
	for name, file := range index {
		byFile[file] = append(byFile[file], name)
	}
	for _, file := range sortedKeys(byFile) {
		if err := t.add(dir, file, byFile[file]); err != nil {
			return err
		}
	}
	return nil
}

// readIndex reads which shard holds each tensor.
func readIndex(dir fs.FS) (map[string]string, error) {
	data, err := bounded.ReadFile(dir, IndexFile, maxIndexBytes)
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := plainjson.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", IndexFile, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: it has no weight_map", IndexFile)
	}
	for name, file := range index.WeightMap {
		if path.Base(file) != file || !strings.HasSuffix(file, ".safetensors") || !fs.ValidPath(file) {
			return nil, fmt.Errorf("%s: tensor %q is said to be in %q, which is not the name of a safetensors file", IndexFile, name, file)
		}
	}
	return index.WeightMap, nil
}

// add takes the wanted tensors of one file, all if wanted is nil.
func (t *Tensors) add(dir fs.FS, file string, wanted []string) error {
	f, err := dir.Open(file)
	if err != nil {
		return err // names the file
	}
	t.files, t.names = append(t.files, f), append(t.names, file)
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	if !stat.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", file)
	}
	r, ok := f.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("%s cannot be read at an offset", file)
	}
	infos, start, err := readHeader(r, stat.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if wanted == nil {
		wanted = sortedKeys(infos)
	}
	for _, name := range wanted {
		info, ok := infos[name]
		if !ok {
			return fmt.Errorf("%s has no tensor %q, though %s says so", file, name, IndexFile)
		}
		info.File, info.Offset = file, start+info.Begin
		t.tensors[name] = located{info, r}
	}
	return nil
}

// Close closes the files.
func (t *Tensors) Close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	t.files = nil
	return errors.Join(errs...)
}

// Files are the names of the files.
func (t *Tensors) Files() []string { return slices.Clone(t.names) }

// Names lists the tensors in order.
func (t *Tensors) Names() []string { return sortedKeys(t.tensors) }

// Info describes a tensor and says whether there is one of this name.
func (t *Tensors) Info(name string) (Info, bool) {
	l, ok := t.tensors[name]
	return l.Info, ok
}

// Expect refuses a tensor that is missing or has another type or shape than is needed. Several types may be acceptable;
// which it is, Info tells.
func (t *Tensors) Expect(name string, shape []int64, dtypes ...string) error {
	l, ok := t.tensors[name]
	switch {
	case !ok:
		return fmt.Errorf("safetensors: there is no tensor %q", name)
	case !slices.Contains(dtypes, l.DType):
		return fmt.Errorf("safetensors: %s: tensor %q is of type %s, needed is %s", l.File, name, l.DType, strings.Join(dtypes, " or "))
	case !slices.Equal(l.Shape, shape):
		return fmt.Errorf("safetensors: %s: tensor %q has shape %v, needed is %v", l.File, name, l.Shape, shape)
	}
	return nil
}

// Read reads the bytes of a tensor that is as Expect expects.
func (t *Tensors) Read(name string, shape []int64, dtypes ...string) ([]byte, Info, error) {
	if err := t.Expect(name, shape, dtypes...); err != nil {
		return nil, Info{}, err
	}
	l := t.tensors[name]
	data := make([]byte, l.End-l.Begin)
	if err := readFull(l.reader, data, l.Offset); err != nil {
		return nil, l.Info, fmt.Errorf("safetensors: %s: tensor %q: %w", l.File, name, err)
	}
	return data, l.Info, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
