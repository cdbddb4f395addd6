package metallib

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	headerSize = 88
	magic      = "MTLB"
	endTag     = "ENDT"
)

// Read reads a library. The result refers to data, which must not change.
func Read(data []byte) (*Library, error) {
	h, l, err := readHeader(data)
	if err != nil {
		return nil, err
	}
	r := &reader{data: data, h: h, l: l}
	if err := r.functions(); err != nil {
		return nil, err
	}
	if err := r.extension(); err != nil {
		return nil, err
	}
	for i := range l.Functions {
		if err := r.function(i); err != nil {
			return nil, fmt.Errorf("metallib: function %d (%s): %w", i, clip(l.Functions[i].Name), err)
		}
	}
	if err := r.tail(); err != nil {
		return nil, err
	}
	return l, nil
}

// A span is a part of the file.
type span struct{ off, size uint64 }

func (s span) end() uint64 { return s.off + s.size }

// A header is where the sections are.
type header struct{ list, public, private, code span }

func readHeader(data []byte) (h header, l *Library, err error) {
	if len(data) < headerSize || string(data[:4]) != magic {
		return h, nil, fmt.Errorf("metallib: not a Metal library: it begins with % x and has %d bytes", data[:min(4, len(data))], len(data))
	}
	u16, u64 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint64
	l = &Library{fromFile: true}
	l.ForMac = data[5]&0x80 != 0
	l.Container = Version{u16(data[4:]) & 0x7FFF, u16(data[6:]), u16(data[8:])}
	l.Type, l.Stub = FileType(data[10]&0x7F), data[10]&0x80 != 0
	l.Platform, l.platformBits = Platform(data[11]&0x7F), data[11]&0x80
	l.OS = Version{u16(data[12:]), uint16(data[14]), uint16(data[15])}
	if l.Container.Major != 1 {
		return h, nil, fmt.Errorf("metallib: container version %s, only 1.x is known", l.Container)
	}
	if size := u64(data[16:]); size != uint64(len(data)) {
		return h, nil, fmt.Errorf("metallib: the header says %d bytes, the file has %d", size, len(data))
	}
	for i, s := range []*span{&h.list, &h.public, &h.private, &h.code} {
		*s = span{u64(data[24+16*i:]), u64(data[32+16*i:])}
		if i == 0 {
			s.size += 4 // the header leaves out the count
		}
		if s.off < headerSize || s.off > uint64(len(data)) || s.size > uint64(len(data))-s.off || i == 0 && s.size < 4 {
			return h, nil, fmt.Errorf("metallib: section %d is %d bytes at %d, the file has %d", i, s.size, s.off, len(data))
		}
	}
	if h.list.off != headerSize || h.public.off < h.list.end() || h.private.off != h.public.end() || h.code.off != h.private.end() {
		return h, nil, fmt.Errorf("metallib: the sections do not follow one another: %v", h)
	}
	return h, l, nil
}

// A reader reads one file.
type reader struct {
	data  []byte
	h     header
	l     *Library
	items []item
}

// An item is what the function list says about a function beyond what Function keeps.
type item struct {
	public, private, code uint64
	size                  uint64
	sized                 bool // MDSZ is there
}

// tags reads tags until the end mark and returns them with what follows.
func tags(data []byte) (ts []Tag, rest []byte, err error) {
	for {
		if len(data) < 4 {
			return nil, nil, fmt.Errorf("tags without an end")
		}
		name := string(data[:4])
		if data = data[4:]; name == endTag {
			return ts, data, nil
		}
		if len(data) < 2 {
			return nil, nil, fmt.Errorf("tag %q is cut short", name)
		}
		n := int(binary.LittleEndian.Uint16(data))
		if data = data[2:]; n > len(data) {
			return nil, nil, fmt.Errorf("tag %q has %d bytes, %d are left", name, n, len(data))
		}
		ts = append(ts, Tag{name, data[:n:n]})
		data = data[n:]
	}
}

func (r *reader) functions() error {
	list := r.data[r.h.list.off:r.h.list.end()]
	count := binary.LittleEndian.Uint32(list)
	list = list[4:]
	const leastGroup = 8
	if uint64(count) > uint64(len(list))/leastGroup {
		return fmt.Errorf("metallib: %d functions in a list of %d bytes", count, len(list))
	}
	for i := range int(count) {
		if len(list) < 4 {
			return fmt.Errorf("metallib: the function list ends after %d of %d functions", i, count)
		}
		size := binary.LittleEndian.Uint32(list)
		if size < leastGroup || uint64(size) > uint64(len(list)) {
			return fmt.Errorf("metallib: function %d has an entry of %d bytes, %d are left", i, size, len(list))
		}
		ts, rest, err := tags(list[4:size])
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%d bytes after its end mark", len(rest))
		}
		if err != nil {
			return fmt.Errorf("metallib: function %d: %w", i, err)
		}
		if err := r.entry(ts); err != nil {
			return fmt.Errorf("metallib: function %d: %w", i, err)
		}
		list = list[size:]
	}
	if len(list) > 0 {
		return fmt.Errorf("metallib: %d bytes after the function list", len(list))
	}
	return nil
}

// entry takes the tags of one function's entry in the list.
func (r *reader) entry(ts []Tag) error {
	f := Function{Type: NoType, place: &place{}}
	var it item
	seen := map[string]bool{}
	for _, t := range ts {
		if seen[t.Name] {
			return fmt.Errorf("tag %q is there twice", t.Name)
		}
		seen[t.Name] = true
		f.place.order = append(f.place.order, t.Name)
		need := map[string]int{"TYPE": 1, "HASH": 32, "MDSZ": 8, "OFFT": 24, "VERS": 8}[t.Name]
		if need != 0 && len(t.Data) != need {
			return fmt.Errorf("tag %q has %d bytes, not %d", t.Name, len(t.Data), need)
		}
		switch t.Name {
		case "NAME":
			if n := len(t.Data); n == 0 || bytes.IndexByte(t.Data, 0) != n-1 {
				return fmt.Errorf("the name %s does not end with a zero", clip(string(t.Data)))
			}
			f.Name = string(t.Data[:len(t.Data)-1])
		case "TYPE":
			f.Type = FunctionType(t.Data[0])
		case "HASH":
			copy(f.Hash[:], t.Data)
		case "MDSZ":
			it.size, it.sized = binary.LittleEndian.Uint64(t.Data), true
		case "OFFT":
			it.public = binary.LittleEndian.Uint64(t.Data)
			it.private = binary.LittleEndian.Uint64(t.Data[8:])
			it.code = binary.LittleEndian.Uint64(t.Data[16:])
		case "VERS":
			var v [4]uint16
			for i := range v {
				v[i] = binary.LittleEndian.Uint16(t.Data[2*i:])
			}
			f.AIR, f.Metal = Version{Major: v[0], Minor: v[1]}, Version{Major: v[2], Minor: v[3]}
		default:
			f.Extra = append(f.Extra, t)
		}
	}
	for _, name := range []string{"NAME", "OFFT"} {
		if !seen[name] {
			return fmt.Errorf("tag %q is missing", name)
		}
	}
	r.l.Functions = append(r.l.Functions, f)
	r.items = append(r.items, it)
	return nil
}

// function reads a function's metadata and bitcode.
func (r *reader) function(i int) error {
	f, it := &r.l.Functions[i], r.items[i]
	p := f.place
	p.public, p.private, p.code = it.public, it.private, it.code
	public, excl, err := r.group(r.h.public, it.public)
	if err != nil {
		return fmt.Errorf("public metadata: %w", err)
	}
	p.publicExcl = excl
	for _, t := range public {
		p.publicOrder = append(p.publicOrder, t.Name)
		if t.Name != "CNST" {
			f.Public = append(f.Public, t)
			continue
		}
		if f.Constants != nil {
			return fmt.Errorf("public metadata: tag CNST is there twice")
		}
		if f.Constants, err = readConstants(t.Data); err != nil {
			return err
		}
	}
	if f.Private, p.privateExcl, err = r.group(r.h.private, it.private); err != nil {
		return fmt.Errorf("private metadata: %w", err)
	}
	if it.code > r.h.code.size {
		return fmt.Errorf("bitcode at %d, the section has %d bytes", it.code, r.h.code.size)
	}
	size := it.size
	if !it.sized {
		// Before AIR 2 the size is not written down: the next function's bitcode, or the section, ends it.
		end := r.h.code.size
		for _, o := range r.items {
			if o.code > it.code {
				end = min(end, o.code)
			}
		}
		size = end - it.code
	}
	if size > r.h.code.size-it.code {
		return fmt.Errorf("%d bytes of bitcode at %d, the section has %d bytes", size, it.code, r.h.code.size)
	}
	start := r.h.code.off + it.code
	f.Bitcode = r.data[start : start+size : start+size]
	if slices.Contains(p.order, "HASH") && it.sized {
		if sum := sha256.Sum256(f.Bitcode); sum != f.Hash {
			return fmt.Errorf("its bitcode has the hash %x, the list says %x", sum, f.Hash)
		}
	}
	return nil
}

// group reads one group of metadata. Apple's two writers disagree on whether its size counts itself.
func (r *reader) group(s span, at uint64) (ts []Tag, exclusive bool, err error) {
	if at > s.size || s.size-at < 4 {
		return nil, false, fmt.Errorf("at %d, the section has %d bytes", at, s.size)
	}
	data := r.data[s.off+at : s.end()]
	ts, rest, err := tags(data[4:])
	if err != nil {
		return nil, false, err
	}
	size, used := uint64(binary.LittleEndian.Uint32(data)), uint64(len(data)-len(rest))
	if size != used && size != used-4 {
		return nil, false, fmt.Errorf("a group of %d bytes that says %d", used, size)
	}
	return ts, size == used-4, nil
}

func readConstants(data []byte) ([]Constant, error) {
	fail := func() ([]Constant, error) {
		return nil, fmt.Errorf("its function constants are cut short")
	}
	if len(data) < 2 {
		return fail()
	}
	n := binary.LittleEndian.Uint16(data)
	data = data[2:]
	cs := []Constant{}
	for range n {
		end := bytes.IndexByte(data, 0)
		if end < 0 || len(data) < end+5 {
			return fail()
		}
		c := Constant{Name: string(data[:end]), Type: DataType(data[end+1]), Index: binary.LittleEndian.Uint16(data[end+2:])}
		if active := data[end+4]; active > 1 {
			return nil, fmt.Errorf("function constant %s is active %d", clip(c.Name), active)
		}
		c.Active = data[end+4] == 1
		cs = append(cs, c)
		data = data[end+5:]
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%d bytes after its function constants", len(data))
	}
	return cs, nil
}

// extension reads the entries between function list and public metadata.
func (r *reader) extension() error {
	data := r.data[r.h.list.end():r.h.public.off]
	if len(data) == 0 {
		r.l.bare = true
		return nil
	}
	ts, rest, err := tags(data)
	if err != nil {
		return fmt.Errorf("metallib: header extension: %w", err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("metallib: %d bytes after the header extension", len(rest))
	}
	for _, t := range ts {
		e := Entry{Tag: t.Name, Data: t.Data}
		if sectionTags[t.Name] {
			if len(t.Data) != 16 {
				return fmt.Errorf("metallib: header extension: tag %q has %d bytes, not 16", t.Name, len(t.Data))
			}
			s := span{binary.LittleEndian.Uint64(t.Data), binary.LittleEndian.Uint64(t.Data[8:])}
			if s.off < r.h.code.end() || s.off > uint64(len(r.data)) || s.size > uint64(len(r.data))-s.off {
				return fmt.Errorf("metallib: section %q is %d bytes at %d, between the bitcode and the end there is %d to %d",
					t.Name, s.size, s.off, r.h.code.end(), len(r.data))
			}
			e.Section, e.at, e.Data = true, s.off, r.data[s.off:s.end():s.end()]
		}
		r.l.Extension = append(r.l.Extension, e)
	}
	return nil
}

// tail keeps the bytes after the bitcode that no entry points to.
func (r *reader) tail() error {
	var sections []Entry
	for _, e := range r.l.Extension {
		if e.Section {
			sections = append(sections, e)
		}
	}
	slices.SortStableFunc(sections, func(a, b Entry) int { return int(int64(a.at) - int64(b.at)) })
	at := r.h.code.end()
	gap := func(end uint64) {
		if end > at {
			r.l.Extension = append(r.l.Extension, Entry{Section: true, Data: r.data[at:end:end], at: at})
		}
	}
	for _, s := range sections {
		if s.at < at {
			return fmt.Errorf("metallib: section %q at %d lies in another one, which ends at %d", s.Tag, s.at, at)
		}
		gap(s.at)
		at = s.at + uint64(len(s.Data))
	}
	gap(uint64(len(r.data)))
	return nil
}
