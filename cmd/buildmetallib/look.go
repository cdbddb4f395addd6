package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

func readLibrary(file string) (*metallib.Library, []byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	lib, err := metallib.Read(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return lib, data, nil
}

func inspect(args []string, w io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: buildmetallib inspect LIBRARY")
	}
	lib, _, err := readLibrary(args[0])
	if err != nil {
		return err
	}
	return metallib.Inspect(w, lib)
}

// verify reads everything in a library: the container, whose bytes must come out again as they are, and every module,
// which must be well formed, reflect, and hash to what the container says.
func verify(args []string, w io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: buildmetallib verify LIBRARY")
	}
	lib, data, err := readLibrary(args[0])
	if err != nil {
		return err
	}
	again, err := metallib.Write(lib)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		return fmt.Errorf("%s: written again it has other bytes", args[0])
	}
	var failed []error
	for i := range lib.Functions {
		if err := verifyFunction(&lib.Functions[i]); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", lib.Functions[i].Name, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	_, err = fmt.Fprintf(w, "%s: %d functions, all well formed\n", args[0], len(lib.Functions))
	return err
}

func verifyFunction(f *metallib.Function) error {
	if sha256.Sum256(f.Bitcode) != f.Hash {
		return errors.New("the hash in the function list is not that of the module")
	}
	m, err := f.Module()
	if err != nil {
		return err
	}
	if err := air.Verify(m); err != nil {
		return err
	}
	kernels, err := m.Kernels()
	if err != nil {
		return err
	}
	for _, k := range kernels {
		if k.Name == f.Name {
			return nil
		}
	}
	if f.Type == metallib.Kernel {
		return errors.New("the module has no kernel of this name")
	}
	return nil
}
