package metallib

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// What zero values stand for in libraries made from scratch: macOS 14.
var (
	defaultContainer = Version{1, 2, 7}
	defaultOS        = Version{Major: 14}
	defaultAIR       = Version{Major: 2, Minor: 6}
	defaultMetal     = Version{Major: 3, Minor: 1}
	// defaultOrder is the order of tags of the writer that Apple's compiler uses when it links at once.
	defaultOrder = []string{"NAME", "TYPE", "HASH", "OFFT", "VERS", "MDSZ"}
)

const platform64 = 0x80 // the bit of the platform byte that says 64 bits

// Write writes a library. One that was read and not changed gives the bytes it was read from; equal libraries give equal
// bytes.
func Write(l *Library) ([]byte, error) {
	if l == nil {
		return nil, errors.New("metallib: cannot write library: it is nil")
	}
	w := &writer{l: *l}
	w.l.Functions = slices.Clone(l.Functions)
	w.l.Extension = slices.Clone(l.Extension)
	w.defaults()
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("metallib: cannot write library: %w", err)
	}
	return w.write()
}

// A writer writes one library; its own copy, so that the caller's stays as it is.
type writer struct {
	l Library
	// derive is set when the UUID is to be derived from the content.
	derive bool
}

func (w *writer) defaults() {
	l := &w.l
	if !l.fromFile {
		if l.Container == (Version{}) {
			l.Container = defaultContainer
		}
		if l.Platform == UnknownPlatform {
			l.Platform = MacOS
		}
		if l.Platform == MacOS {
			l.ForMac = true
			if l.OS == (Version{}) {
				l.OS = defaultOS
			}
		}
		l.platformBits = platform64
		if !slices.ContainsFunc(l.Extension, func(e Entry) bool { return e.Tag == "UUID" }) {
			l.Extension = append(l.Extension, Entry{Tag: "UUID", Data: make([]byte, 16)})
			w.derive = true
		}
	}
	for i := range l.Functions {
		f := &l.Functions[i]
		if f.place != nil {
			continue
		}
		f.place = &place{order: slices.Clone(defaultOrder), public: math.MaxUint64, private: math.MaxUint64, code: math.MaxUint64}
		for _, t := range f.Extra {
			f.place.order = append(f.place.order, t.Name)
		}
		if f.AIR == (Version{}) {
			f.AIR = defaultAIR
		}
		if f.Metal == (Version{}) {
			f.Metal = defaultMetal
		}
	}
}

func (w *writer) check() error {
	names := map[string]bool{}
	if len(w.l.Functions) == 0 && !w.l.fromFile {
		return errors.New("it has no functions")
	}
	for i, f := range w.l.Functions {
		switch {
		case f.Name == "" && !w.l.fromFile:
			return fmt.Errorf("function %d has no name", i)
		case bytes.IndexByte([]byte(f.Name), 0) >= 0 || len(f.Name) >= math.MaxUint16:
			return fmt.Errorf("function name %s contains a zero or is too long", clip(f.Name))
		case names[f.Name] && !w.l.fromFile:
			return fmt.Errorf("function %s is there twice", clip(f.Name))
		case len(f.Bitcode) == 0 || len(f.Bitcode)%16 != 0 && !w.l.fromFile:
			return fmt.Errorf("function %s has %d bytes of bitcode, a positive multiple of 16 is needed", clip(f.Name), len(f.Bitcode))
		case len(f.Constants) > math.MaxUint16:
			return fmt.Errorf("function %s has %d function constants", clip(f.Name), len(f.Constants))
		}
		names[f.Name] = true
		size := 2
		for _, c := range f.Constants {
			if size += len(c.Name) + 5; size > math.MaxUint16 {
				return fmt.Errorf("the function constants of %s take more than %d bytes", clip(f.Name), math.MaxUint16)
			}
			if bytes.IndexByte([]byte(c.Name), 0) >= 0 {
				return fmt.Errorf("function constant %s of %s contains a zero", clip(c.Name), clip(f.Name))
			}
		}
		for _, ts := range [][]Tag{f.Public, f.Private, f.Extra} {
			for _, t := range ts {
				if err := checkTag(t.Name, len(t.Data)); err != nil {
					return fmt.Errorf("function %s: %w", clip(f.Name), err)
				}
			}
		}
	}
	for _, e := range w.l.Extension {
		n := len(e.Data)
		if e.Section {
			n = 16
		}
		if e.Tag == "" && e.Section {
			continue
		}
		if err := checkTag(e.Tag, n); err != nil {
			return err
		}
		if e.Section != sectionTags[e.Tag] {
			return fmt.Errorf("header extension %s: Section is %t", clip(e.Tag), e.Section)
		}
	}
	return nil
}

func checkTag(name string, n int) error {
	if len(name) != 4 || name == endTag {
		return fmt.Errorf("tag %s is not four characters, or is the end mark", clip(name))
	}
	if n > math.MaxUint16 {
		return fmt.Errorf("tag %s has %d bytes, at most %d fit", clip(name), n, math.MaxUint16)
	}
	return nil
}

func appendTag(b []byte, name string, data []byte) []byte {
	b = append(b, name...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

// pack lays out one part per function. Parts stand in the order of the file they come from, new ones last; parts of the same
// place with the same bytes are one.
func pack(parts [][]byte, was []uint64) (data []byte, offs []uint64) {
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(was[a], was[b]) })
	offs = make([]uint64, len(parts))
	for n, i := range order {
		if n > 0 {
			if p := order[n-1]; was[p] == was[i] && was[i] != math.MaxUint64 && bytes.Equal(parts[p], parts[i]) {
				offs[i] = offs[p]
				continue
			}
		}
		offs[i] = uint64(len(data))
		data = append(data, parts[i]...)
	}
	return data, offs
}

func (w *writer) write() ([]byte, error) {
	fs := w.l.Functions
	n := len(fs)
	parts := func(part func(f *Function) ([]byte, uint64)) ([]byte, []uint64) {
		data, was := make([][]byte, n), make([]uint64, n)
		for i := range fs {
			data[i], was[i] = part(&fs[i])
		}
		return pack(data, was)
	}
	public, publicAt := parts(func(f *Function) ([]byte, uint64) {
		return group(publicTags(f), f.place.publicExcl), f.place.public
	})
	private, privateAt := parts(func(f *Function) ([]byte, uint64) {
		return group(f.Private, f.place.privateExcl), f.place.private
	})
	code, codeAt := parts(func(f *Function) ([]byte, uint64) { return f.Bitcode, f.place.code })

	list := binary.LittleEndian.AppendUint32(nil, uint32(n))
	for i := range fs {
		list = append(list, entry(&fs[i], publicAt[i], privateAt[i], codeAt[i])...)
	}
	ext, tail := w.extension(headerSize+len(list), len(public)+len(private)+len(code))

	size := headerSize + len(list) + len(ext) + len(public) + len(private) + len(code) + len(tail)
	out := w.header(uint64(size))
	at := uint64(headerSize)
	for i, s := range [][]byte{list, public, private, code} {
		length := uint64(len(s))
		if i == 0 {
			length -= 4
		}
		out = binary.LittleEndian.AppendUint64(out, at)
		out = binary.LittleEndian.AppendUint64(out, length)
		at += uint64(len(s))
		if i == 0 {
			at += uint64(len(ext))
		}
	}
	extAt := len(out) + len(list)
	for _, s := range [][]byte{list, ext, public, private, code, tail} {
		out = append(out, s...)
	}
	if w.derive {
		w.setUUID(out, out[extAt:extAt+len(ext)])
	}
	return out, nil
}

// setUUID puts a UUID made from the file's hash in place of the zeros in the extension.
func (w *writer) setUUID(file, ext []byte) {
	sum := sha256.Sum256(file)
	const version8, variant = 0x80, 0x80
	sum[6] = sum[6]&0x0F | version8
	sum[8] = sum[8]&0x3F | variant
	mark := appendTag(nil, "UUID", make([]byte, 16))
	copy(ext[bytes.LastIndex(ext, mark)+6:], sum[:16])
}

func (w *writer) header(size uint64) []byte {
	l := &w.l
	out := append(make([]byte, 0, size), magic...)
	major, kind := l.Container.Major, uint8(l.Type)
	if l.ForMac {
		major |= 0x8000
	}
	if l.Stub {
		kind |= 0x80
	}
	for _, v := range []uint16{major, l.Container.Minor, l.Container.Patch} {
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	out = append(out, kind, uint8(l.Platform)|l.platformBits)
	out = binary.LittleEndian.AppendUint16(out, l.OS.Major)
	out = append(out, uint8(l.OS.Minor), uint8(l.OS.Patch))
	return binary.LittleEndian.AppendUint64(out, size)
}

// group is a group of metadata.
func group(ts []Tag, exclusive bool) []byte {
	b := make([]byte, 4)
	for _, t := range ts {
		b = appendTag(b, t.Name, t.Data)
	}
	b = append(b, endTag...)
	n := len(b)
	if exclusive {
		n -= 4
	}
	binary.LittleEndian.PutUint32(b, uint32(n))
	return b
}

// publicTags are the tags of a function's public metadata, with its function constants where they were.
func publicTags(f *Function) []Tag {
	var constants []Tag
	if f.Constants != nil && (len(f.Constants) > 0 || slices.Contains(f.place.publicOrder, "CNST")) {
		b := binary.LittleEndian.AppendUint16(nil, uint16(len(f.Constants)))
		for _, c := range f.Constants {
			b = append(b, c.Name...)
			b = append(b, 0, uint8(c.Type))
			b = binary.LittleEndian.AppendUint16(b, c.Index)
			if c.Active {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
		constants = []Tag{{"CNST", b}}
	}
	before := max(slices.Index(f.place.publicOrder, "CNST"), 0)
	before = min(before, len(f.Public))
	return slices.Concat(f.Public[:before], constants, f.Public[before:])
}

// entry is a function's entry in the list.
func entry(f *Function, public, private, code uint64) []byte {
	b := make([]byte, 4)
	for _, name := range f.place.order {
		var data []byte
		switch name {
		case "NAME":
			data = append([]byte(f.Name), 0)
		case "TYPE":
			data = []byte{uint8(f.Type)}
		case "HASH":
			sum := f.Hash
			if slices.Contains(f.place.order, "MDSZ") {
				sum = sha256.Sum256(f.Bitcode)
			}
			data = sum[:]
		case "MDSZ":
			data = binary.LittleEndian.AppendUint64(nil, uint64(len(f.Bitcode)))
		case "OFFT":
			for _, v := range []uint64{public, private, code} {
				data = binary.LittleEndian.AppendUint64(data, v)
			}
		case "VERS":
			for _, v := range []uint16{f.AIR.Major, f.AIR.Minor, f.Metal.Major, f.Metal.Minor} {
				data = binary.LittleEndian.AppendUint16(data, v)
			}
		default:
			i := slices.IndexFunc(f.Extra, func(t Tag) bool { return t.Name == name })
			if i < 0 {
				continue // the caller removed it
			}
			data = f.Extra[i].Data
		}
		b = appendTag(b, name, data)
	}
	for _, t := range f.Extra {
		if !slices.Contains(f.place.order, t.Name) {
			b = appendTag(b, t.Name, t.Data)
		}
	}
	b = append(b, endTag...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

// extension is the header extension, which begins at the given place, and the sections that it points to, which follow
// the other sections' bytes.
func (w *writer) extension(at, between int) (ext, tail []byte) {
	if w.l.bare && len(w.l.Extension) == 0 {
		return nil, nil
	}
	size := 4
	for _, e := range w.l.Extension {
		switch {
		case e.Tag == "":
		case e.Section:
			size += 6 + 16
		default:
			size += 6 + len(e.Data)
		}
	}
	if w.l.bare && size == 4 {
		size = 0
	}
	start := uint64(at + size + between)
	places := map[int]span{}
	order := make([]int, len(w.l.Extension))
	for i := range order {
		order[i] = i
	}
	// Sections stand in the order of the file they come from; new ones, which come from none, last.
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(w.l.Extension[a].at-1, w.l.Extension[b].at-1)
	})
	for _, i := range order {
		if e := w.l.Extension[i]; e.Section {
			places[i] = span{start + uint64(len(tail)), uint64(len(e.Data))}
			tail = append(tail, e.Data...)
		}
	}
	for i, e := range w.l.Extension {
		data := e.Data
		if e.Tag == "" {
			continue
		}
		if e.Section {
			data = binary.LittleEndian.AppendUint64(nil, places[i].off)
			data = binary.LittleEndian.AppendUint64(data, places[i].size)
		}
		ext = appendTag(ext, e.Tag, data)
	}
	if size > 0 {
		ext = append(ext, endTag...)
	}
	return ext, tail
}

// clipLength is how many bytes of a name an error shows.
const clipLength = 80

// clip quotes a name for an error, and only the begin of a long one.
func clip(name string) string {
	if len(name) <= clipLength {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q… (%d bytes)", name[:clipLength], len(name))
}
