package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// errDiffer makes the command fail when libraries differ, after what differs has been printed.
var errDiffer = errors.New("the libraries differ")

// diff compares what two libraries offer: their kernels, the kernels' arguments, constants and limits, and the metadata
// of the modules. The code itself is compared for equality only.
func diff(args []string, w io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: buildmetallib diff LIBRARY LIBRARY")
	}
	a, _, err := readLibrary(args[0])
	if err != nil {
		return err
	}
	b, _, err := readLibrary(args[1])
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range a.Functions {
		names[a.Functions[i].Name] = true
	}
	for i := range b.Functions {
		names[b.Functions[i].Name] = true
	}
	differ := false
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fa, fb := a.Function(name), b.Function(name)
		switch {
		case fa == nil:
			fmt.Fprintf(w, "%s: only in %s\n", name, args[1])
			differ = true
		case fb == nil:
			fmt.Fprintf(w, "%s: only in %s\n", name, args[0])
			differ = true
		default:
			lines, err := diffFunction(fa, fb)
			if err != nil {
				return err
			}
			for _, l := range lines {
				fmt.Fprintf(w, "%s: %s\n", name, l)
			}
			differ = differ || len(lines) > 0
		}
	}
	if differ {
		return errDiffer
	}
	_, err = fmt.Fprintf(w, "%d functions, no difference\n", len(names))
	return err
}

func diffFunction(a, b *metallib.Function) ([]string, error) {
	if bytes.Equal(a.Bitcode, b.Bitcode) {
		return nil, nil
	}
	fa, err := facts(a)
	if err != nil {
		return nil, err
	}
	fb, err := facts(b)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(merge(fa, fb))) {
		if fa[key] != fb[key] {
			lines = append(lines, fmt.Sprintf("%s: %s | %s", key, orNone(fa[key]), orNone(fb[key])))
		}
	}
	if len(lines) == 0 {
		lines = []string{"the code differs, arguments and metadata are equal"}
	}
	return lines, nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func merge(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

// facts are what is compared of a function, by what each is called.
func facts(f *metallib.Function) (map[string]string, error) {
	m, err := f.Module()
	if err != nil {
		return nil, err
	}
	kernels, err := m.Kernels()
	if err != nil {
		return nil, err
	}
	out := map[string]string{"type": f.Type.String(), "AIR": f.AIR.String(), "Metal": f.Metal.String(), "target": m.Triple}
	for _, c := range f.Constants {
		out["constant "+c.Name] = fmt.Sprintf("%s at %d", c.Type, c.Index)
	}
	for _, n := range m.NamedMD {
		switch n.Name {
		case "air.version", "air.language_version", "air.compile_options", "llvm.ident":
			var parts []string
			for _, op := range n.Ops {
				parts = append(parts, text(op))
			}
			out[n.Name] = strings.Join(parts, " ")
		}
	}
	for _, k := range kernels {
		if k.Name != f.Name {
			continue
		}
		out["most threads"] = fmt.Sprint(k.MaxThreads)
		out["threadgroup bytes"] = fmt.Sprint(k.ThreadgroupBytes)
		for i, a := range k.Args {
			out[fmt.Sprintf("argument %02d", i)] = argument(a)
		}
	}
	return out, nil
}

func argument(a air.KernelArg) string {
	s := fmt.Sprintf("%s %s", a.TypeName, a.Name)
	if a.Unused {
		s += " unused"
	}
	switch a.Kind {
	case air.BufferArg:
		s += fmt.Sprintf(" buffer(%d) space %d", a.Index, a.Space)
	case air.ThreadgroupArg:
		s += fmt.Sprintf(" threadgroup(%d)", a.Index)
	default:
		return s + " " + a.Builtin
	}
	if a.Writable {
		s += " written"
	}
	return s + fmt.Sprintf(" size %d align %d whole %d", a.Size, a.Align, a.BufferSize)
}

// text prints strings and integers of a metadata node.
func text(md air.Metadata) string {
	switch md := md.(type) {
	case *air.MDString:
		return md.S
	case *air.MDValue:
		if c, ok := md.V.(*air.Const); ok {
			return fmt.Sprint(c.Bits)
		}
	case *air.MDNode:
		var parts []string
		for _, op := range md.Ops {
			parts = append(parts, text(op))
		}
		return strings.Join(parts, ".")
	}
	return "?"
}
