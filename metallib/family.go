package metallib

import (
	"slices"
	"strings"
)

// Family is functions of a library whose names differ only in what they are instantiated for.
type Family struct {
	Name      string
	Functions int
	Bytes     int // of their modules
}

// Families sums up a library's functions by family, the largest first. The family of a function is its name up to the first
// part with a digit, parts being separated by underscores: gemm_dense_f16_t32 belongs to gemm_dense. Instances of a
// template are named for types, sizes and counts, which have digits; what has none is told from a family only by a reader.
func (l *Library) Families() []Family {
	byName := map[string]*Family{}
	for i := range l.Functions {
		f := &l.Functions[i]
		name := familyOf(f.Name)
		if byName[name] == nil {
			byName[name] = &Family{Name: name}
		}
		byName[name].Functions++
		byName[name].Bytes += len(f.Bitcode)
	}
	families := make([]Family, 0, len(byName))
	for _, f := range byName {
		families = append(families, *f)
	}
	slices.SortFunc(families, func(a, b Family) int {
		if a.Bytes != b.Bytes {
			return b.Bytes - a.Bytes
		}
		return strings.Compare(a.Name, b.Name)
	})
	return families
}

func familyOf(name string) string {
	digit := strings.IndexAny(name, "0123456789")
	if digit < 0 {
		return name
	}
	// A name whose first part has a digit is its own family.
	if end := strings.LastIndexByte(name[:digit], '_'); end > 0 {
		return name[:end]
	}
	return name
}
