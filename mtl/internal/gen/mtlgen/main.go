// Command mtlgen writes the generated files of package mtl into the current folder. It is run by "go generate" there.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ingot-metal/ingot/mtl/internal/gen"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "mtlgen:", err)
		os.Exit(1)
	}
}

// run writes what has changed and removes generated files that are no more.
func run(dir string) error {
	spec, err := gen.Load()
	if err != nil {
		return err
	}
	files, err := gen.Generate(spec)
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "zz_*.go"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, ok := files[filepath.Base(path)]; !ok {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, text) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
