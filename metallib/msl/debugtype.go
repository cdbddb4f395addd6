package msl

import (
	"strconv"
	"strings"
)

// A debugType is a type as the source has it, read from debug information.
type debugType struct {
	kind debugKind
	// name is MSL's name of the type: "uint", "float4", "Params".
	name        string
	size, align int
	// elem is the target of a pointer or reference, or the element of a vector or array; count is how many.
	elem  *debugType
	count int
	// constant is set for a pointer or reference to something const.
	constant bool
	members  []debugMember
}

type debugKind uint8

const (
	scalarType debugKind = iota
	vectorDebugType
	arrayType
	structType
	pointerType
	referenceType
	voidType
	otherType
)

// A debugMember is a member of a struct.
type debugMember struct {
	name   string
	offset int
	typ    *debugType
}

// scalarName is MSL's name of a basic type.
func scalarName(name, encoding string, bits int) string {
	if encoding == "DW_ATE_boolean" {
		return "bool"
	}
	if encoding == "DW_ATE_float" {
		switch name {
		case "__bf16":
			return "bfloat"
		case "half", "_Float16", "__fp16":
			return "half"
		case "float", "double":
			return name
		}
	}
	unsigned := strings.Contains(encoding, "unsigned")
	switch bits {
	case 8:
		name = "char"
	case 16:
		name = "short"
	case 32:
		name = "int"
	case 64:
		name = "long"
	}
	if unsigned {
		return "u" + name
	}
	return name
}

// debugType reads the type of a metadata node; "" and "null" are void. A type that contains itself, be it through a
// pointer, has no description where it does so.
func (t *irText) debugType(ref string) *debugType {
	if ref == "" || ref == "null" {
		return &debugType{kind: voidType, name: "void"}
	}
	d, known := t.types[ref]
	if !known {
		t.types[ref] = &debugType{kind: otherType}
		d = t.readType(ref)
		t.types[ref] = d
	}
	return d
}

func (t *irText) readType(ref string) *debugType {
	n := t.node(ref)
	bits, _ := strconv.Atoi(n["size"])
	size := bits / 8
	switch n[""] {
	case "DIBasicType":
		return &debugType{kind: scalarType, name: scalarName(n["name"], n["encoding"], bits), size: size, align: size}
	case "DIDerivedType":
		switch n["tag"] {
		case "DW_TAG_typedef":
			d := *t.debugType(n["baseType"])
			// A struct without a name, and our own templates, go by their alias.
			if name := strings.TrimPrefix(n["name"], "__msl_"); d.kind == structType && (d.name == "" || strings.HasPrefix(name, "atomic_") || strings.HasPrefix(name, "packed_")) {
				d.name = name
			}
			return &d
		case "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type":
			d := *t.debugType(n["baseType"])
			d.constant = d.constant || n["tag"] == "DW_TAG_const_type"
			return &d
		case "DW_TAG_pointer_type", "DW_TAG_reference_type":
			d := &debugType{kind: pointerType, elem: t.debugType(n["baseType"]), size: 8, align: 8}
			if n["tag"] == "DW_TAG_reference_type" {
				d.kind = referenceType
			}
			d.constant = d.elem.constant
			return d
		}
	case "DICompositeType":
		switch n["tag"] {
		case "DW_TAG_array_type":
			d := &debugType{kind: arrayType, elem: t.debugType(n["baseType"]), size: size, count: 1}
			d.align = d.elem.align
			for _, e := range t.list(n["elements"]) {
				c, _ := strconv.Atoi(t.node(e)["count"])
				d.count *= c
			}
			if strings.Contains(n["flags"], "DIFlagVector") {
				d.kind, d.align, d.name = vectorDebugType, size, d.elem.name+strconv.Itoa(d.count)
			}
			return d
		case "DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type":
			return t.structType(n, size)
		case "DW_TAG_enumeration_type":
			d := *t.debugType(n["baseType"])
			return &d
		}
	}
	return &debugType{kind: otherType, name: n["name"], size: size}
}

func (t *irText) structType(n map[string]string, size int) *debugType {
	d := &debugType{kind: structType, name: n["name"], size: size, align: 1}
	if n["tag"] == "DW_TAG_union_type" {
		d.kind = otherType
	}
	for _, e := range t.list(n["elements"]) {
		m := t.node(e)
		if m["tag"] == "DW_TAG_inheritance" {
			base := t.debugType(m["baseType"])
			d.members = append(d.members, base.members...)
			d.align = max(d.align, base.align)
		}
		if m["tag"] != "DW_TAG_member" || strings.Contains(m["flags"], "DIFlagStaticMember") {
			continue
		}
		offset, _ := strconv.Atoi(m["offset"])
		typ := t.debugType(m["baseType"])
		d.members = append(d.members, debugMember{name: m["name"], offset: offset / 8, typ: typ})
		d.align = max(d.align, typ.align)
	}
	if bits, err := strconv.Atoi(n["align"]); err == nil {
		d.align = max(d.align, bits/8)
	}
	return d
}
